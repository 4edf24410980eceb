"""Rubbish in, a clear error out: what was expected, what was found, and where.

Each table row is an input, the path of the fault and the message. Nothing here may end in a panic of the native code,
whose exception is deliberately no `Exception` and would fail any of these tests.
"""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fasttok
from fasttok import EncodedConversation, Encoder, FasttokError

MODELS = [
    "kimi-k2-0711",
    "kimi-k2",
    "kimi-k2-thinking",
    "kimi-k2.5",
    "kimi-k2.6",
    "kimi-k2.7-code",
    "kimi-k3",
    "kimi-linear",
    "kimi-vl",
    "moonlight",
]
USER = {"role": "user", "content": "hi"}
MISSING = "missing"
SURROGATE = "expected text that UTF-8 can hold, found half of a surrogate pair"
NOT_A_CONVERSATION = "expected a list of messages or an object with `messages`, found "
NOT_CONTENT = "expected a string, a list of parts or null, found "
NOT_A_PART = 'expected an object such as {"type": "text", …}, found '
NOT_TEXT_OR_MEDIA = "expected `text`, or a `type` of image, image_url, video or video_url"
NOT_ARGUMENTS = "expected a string or an object, found "
NOT_A_VALUE = "expected a str, number, bool, None, list or dict, found "
TOO_DEEP = "expected at most 200 levels of nesting, found more"
ARGUMENTS = "messages[1].tool_calls[0].function.arguments"
EMPTY = "expected at least one message, found an empty list"


def user(**fields: Any) -> list[dict[str, Any]]:
    return [{"role": "user", **fields}]


def assistant(**fields: Any) -> list[dict[str, Any]]:
    return [USER, {"role": "assistant", **fields}]


def call(**fields: Any) -> list[dict[str, Any]]:
    return assistant(tool_calls=[fields])


def called(**function: Any) -> list[dict[str, Any]]:
    return call(function=function)


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def cyclic_list() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def cyclic_message() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["name"] = value
    return value


class Unreadable:
    """Nothing that a conversation may hold."""


# The input, the path, the message.
CONVERSATION_FAULTS: dict[str, tuple[Any, str, str]] = {
    "none": (None, "", NOT_A_CONVERSATION + "null"),
    "number": (3, "", NOT_A_CONVERSATION + "a number"),
    "object": (Unreadable(), "messages", NOT_A_VALUE + "`Unreadable`"),
    "generator": ((message for message in [USER]), "messages", NOT_A_VALUE + "`generator`"),
    "json number": ("3", "", NOT_A_CONVERSATION + "a number"),
    "json string": ('"hi"', "", NOT_A_CONVERSATION + "a string"),
    # The reference (transformers 5.24) raises too: tests/golden/*/empty.json.
    "no messages": ([], "messages", EMPTY),
    "no messages in json": (b"[]", "messages", EMPTY),
    "no messages in dict": ({"messages": []}, "messages", EMPTY),
    "dict without messages": ({"message": [USER]}, "messages", MISSING),
    "messages none": ({"messages": None}, "messages", MISSING),
    "messages str": ({"messages": "[]"}, "messages", "expected a list of messages, found a string"),
    "message str": ([USER, "hi"], "messages[1]", "expected an object, found a string"),
    "message none": ([None], "messages[0]", "expected an object, found null"),
    "role missing": ([{"content": "hi"}], "messages[0].role", MISSING),
    "role none": ([{"role": None}], "messages[0].role", MISSING),
    "role number": ([{"role": 1}], "messages[0].role", "expected a string, found a number"),
    "name list": (user(name=["Bob"]), "messages[0].name", "expected a string, found a list"),
    "content number": (user(content=1.5), "messages[0].content", NOT_CONTENT + "a number"),
    "content nan": (user(content=float("nan")), "messages[0].content", NOT_CONTENT + "a number"),
    "content numpy": (user(content=np.float32(1)), "messages[0].content", NOT_CONTENT + "a number"),
    "content bool": (user(content=True), "messages[0].content", NOT_CONTENT + "a boolean"),
    "content dict": (user(content={"type": "text"}), "messages[0].content", NOT_CONTENT + "an object"),
    "content bytes": (user(content=b"hi"), "messages[0].content", NOT_A_VALUE + "`bytes`"),
    "content set": (user(content={"hi"}), "messages[0].content", NOT_A_VALUE + "`set`"),
    "part str": (user(content=["hi"]), "messages[0].content[0]", NOT_A_PART + "a string"),
    "part none": (user(content=[{"text": "a"}, None]), "messages[0].content[1]", NOT_A_PART + "null"),
    "part text number": (
        user(content=[{"type": "text", "text": 1}]),
        "messages[0].content[0].text",
        "expected a string, found a number",
    ),
    "part without text": (user(content=[{"type": "text"}]), "messages[0].content[0]", NOT_TEXT_OR_MEDIA),
    "part of another type": (user(content=[{"type": "audio"}]), "messages[0].content[0]", NOT_TEXT_OR_MEDIA),
    "part type number": (
        user(content=[{"type": 3}]),
        "messages[0].content[0].type",
        "expected a string, found a number",
    ),
    "reasoning_content": (
        assistant(reasoning_content=1),
        "messages[1].reasoning_content",
        "expected a string, found a number",
    ),
    "reasoning": (assistant(reasoning=[]), "messages[1].reasoning", "expected a string, found a list"),
    "thinking": (assistant(thinking=True), "messages[1].thinking", "expected a string, found a boolean"),
    "tool_call_id": (
        [{"role": "tool", "tool_call_id": 1}],
        "messages[0].tool_call_id",
        "expected a string, found a number",
    ),
    "calls dict": (assistant(tool_calls={}), "messages[1].tool_calls", "expected a list or null, found an object"),
    "calls str": (assistant(tool_calls="[]"), "messages[1].tool_calls", "expected a list or null, found a string"),
    "call none": (assistant(tool_calls=[None]), "messages[1].tool_calls[0]", "expected an object, found null"),
    "call id": (
        call(id=1, function={"arguments": ""}),
        "messages[1].tool_calls[0].id",
        "expected a string, found a number",
    ),
    "function missing": (call(id="x"), "messages[1].tool_calls[0].function", MISSING),
    "function str": (
        call(function="f"),
        "messages[1].tool_calls[0].function",
        "expected an object, found a string",
    ),
    "function name": (
        called(name=1, arguments=""),
        "messages[1].tool_calls[0].function.name",
        "expected a string, found a number",
    ),
    "arguments missing": (called(name="f"), ARGUMENTS, MISSING),
    "arguments none": (called(arguments=None), ARGUMENTS, "missing"),
    "arguments list": (called(arguments=[1]), ARGUMENTS, NOT_ARGUMENTS + "a list"),
    "arguments number": (called(arguments=1), ARGUMENTS, NOT_ARGUMENTS + "a number"),
    "surrogate in content": (user(content="a\ud800b"), "messages[0].content", SURROGATE),
    "surrogate in role": ([{"role": "\udfff"}], "messages[0].role", SURROGATE),
    "surrogate in key": ([{"role": "user", "\ud800": 1}], "messages[0]", SURROGATE),
    "surrogate in arguments": (
        called(arguments={"a": ["\ud800"]}),
        ARGUMENTS + ".a[0]",
        SURROGATE,
    ),
    "object in arguments": (
        called(arguments={"a": {"b": Unreadable()}}),
        ARGUMENTS + ".a.b",
        NOT_A_VALUE + "`Unreadable`",
    ),
    "nested deeply": (user(content=nested(250)), "messages[0].content" + "[0]" * 199, TOO_DEEP),
    "cyclic list": (cyclic_list(), "messages" + "[0]" * 201, TOO_DEEP),
    "cyclic message": ([cyclic_message()], "messages[0]" + ".name" * 200, TOO_DEEP),
    "own tools number": ({"messages": [USER], "tools": 3}, "tools", "expected a list of tools, found a number"),
    "own tools of str": ({"messages": [USER], "tools": ["f"]}, "tools[0]", "expected an object, found a string"),
}

TOOL_FAULTS: dict[str, tuple[Any, str, str, str]] = {
    "number": (3, "conversation", "tools", "expected a list of tools, found a number"),
    "dict": ({"type": "function"}, "conversation", "tools", "expected a list of tools, found an object"),
    "list of numbers": ([{}, 1], "conversation", "tools[1]", "expected an object, found a number"),
    "surrogate": ([{"type": "\ud800"}], "conversation", "tools[0].type", SURROGATE),
    "not json": ("{", "json", "tools", "not valid JSON at byte 1: EOF while parsing an object"),
}

JSON_FAULTS: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "not valid JSON at byte 0: EOF while parsing a value"),
    "cut": ('[{"role"', "not valid JSON at byte 8: EOF while parsing an object"),
    "more after the end": ("[] []", "not valid JSON at byte 3: trailing characters"),
    "python quotes": ("[{'role': 'user'}]", "not valid JSON at byte 2: key must be a string"),
    "not utf-8": (b'[{"role": "\xff"}]', "not valid JSON at byte 11: invalid unicode code point"),
    "utf-16": ("[]".encode("utf-16"), "not valid JSON at byte 0: expected value"),
    "half a surrogate pair": ('["\\ud800"]', "not valid JSON at byte 8: unexpected end of hex escape"),
    "nested deeply": ("[" * 300 + "]" * 300, "not valid JSON at byte 201: recursion limit exceeded"),
}


def assert_fault(raised: pytest.ExceptionInfo[FasttokError], kind: str, path: str, message: str) -> None:
    error = raised.value
    assert (error.kind, error.path, error.message) == (kind, path, message)
    assert (error.file, error.line) == (None, None)
    assert str(error) == (f"{path}: {message}" if path else message)


@pytest.mark.parametrize("case", CONVERSATION_FAULTS)
def test_a_faulty_conversation(encoder: Encoder, case: str) -> None:
    conversation, path, message = CONVERSATION_FAULTS[case]
    with pytest.raises(FasttokError) as raised:
        encoder.encode_conversation(conversation)
    assert_fault(raised, "conversation", path, message)


@pytest.mark.parametrize("case", CONVERSATION_FAULTS)
def test_a_faulty_conversation_in_a_batch(encoder: Encoder, case: str) -> None:
    conversation, path, message = CONVERSATION_FAULTS[case]
    with pytest.raises(FasttokError) as raised:
        encoder.encode_batch([[USER], conversation, [USER]])
    place = "conversations[1]" + (f".{path}" if path else "")
    assert_fault(raised, "conversation", place, message)


@pytest.mark.parametrize("case", JSON_FAULTS)
def test_faulty_json(encoder: Encoder, case: str) -> None:
    text, message = JSON_FAULTS[case]
    with pytest.raises(FasttokError) as raised:
        encoder.encode_conversation(text)
    assert_fault(raised, "json", "", message)


@pytest.mark.parametrize("case", TOOL_FAULTS)
def test_faulty_tools(encoder: Encoder, case: str) -> None:
    tools, kind, path, message = TOOL_FAULTS[case]
    with pytest.raises(FasttokError) as raised:
        encoder.render([USER], tools=tools)
    assert_fault(raised, kind, path, message)


def test_render_and_the_function_raise_what_the_method_raises(encoder: Encoder) -> None:
    for encode in (encoder.render, fasttok.encode_conversation):
        with pytest.raises(FasttokError) as raised:
            encode(user(content=1))
        assert_fault(raised, "conversation", "messages[0].content", NOT_CONTENT + "a number")


def test_the_first_fault_of_a_batch_is_raised_whatever_the_threads(encoder: Encoder) -> None:
    chats = [json.dumps(user(content=1 if i in (30, 60) else "word " * (100 - i))) for i in range(90)]
    for num_threads in (1, 2, 4):
        with pytest.raises(FasttokError) as raised:
            encoder.encode_batch(chats, num_threads=num_threads)
        assert_fault(raised, "conversation", "conversations[30].messages[0].content", NOT_CONTENT + "a number")


def test_an_error_survives_pickling(encoder: Encoder) -> None:
    with pytest.raises(FasttokError) as raised:
        encoder.encode_conversation(user(content=1))
    assert isinstance(raised.value, ValueError)
    copy: FasttokError = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.kind, copy.path) == (str(raised.value), "conversation", "messages[0].content")


def test_numbers_that_json_does_not_have_are_printed_as_python_prints_them(encoder: Encoder) -> None:
    arguments = {"a": float("nan"), "b": [float("inf"), -float("inf")], "c": 10**30, "d": -0.0}
    assert json.dumps(arguments) in encoder.render(called(arguments=arguments))
    assert json.dumps(arguments) in encoder.render(json.dumps(called(arguments=arguments)))


def test_depth_is_limited_and_not_the_number_of_messages(encoder: Encoder) -> None:
    # Message, call, function, arguments and the list of messages take six levels of the 200.
    text = encoder.render(called(arguments={"a": nested(194)}))
    assert '{"a": ' + "[" * 194 + "]" * 194 + "}" in text
    with pytest.raises(FasttokError, match=TOO_DEEP):
        encoder.render(called(arguments={"a": nested(196)}))
    assert len(encoder.encode_conversation([USER] * 10_000).spans) == 30_000


# Arguments of the wrong type are TypeErrors, as with any function


@pytest.mark.parametrize("option", ["add_generation_prompt", "thinking", "preserve_thinking"])
@pytest.mark.parametrize("value", [0, 1, "false", []])
def test_a_switch_takes_a_bool_only(encoder: Encoder, option: str, value: Any) -> None:
    options: dict[str, Any] = {option: value}
    for call in (
        lambda: encoder.encode_conversation([USER], **options),
        lambda: encoder.encode_batch([[USER]], **options),
        lambda: encoder.render([USER], **options),
    ):
        with pytest.raises(FasttokError, match=f"^{option}: expected true or false, found ") as raised:
            call()
        assert raised.value.kind == "option"


def test_an_unknown_option_is_a_type_error(encoder: Encoder) -> None:
    options: dict[str, Any] = {"enable_thinking": False}
    with pytest.raises(TypeError, match="enable_thinking"):
        encoder.encode_conversation([USER], **options)


@pytest.mark.parametrize(
    ("num_threads", "error"), [(0, FasttokError), (-1, FasttokError), (2**70, FasttokError), (1.5, TypeError)]
)
def test_num_threads_counts_from_one(
    encoder: Encoder, tmp_path: Path, num_threads: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        encoder.encode_batch([[USER]], num_threads=num_threads)
    with pytest.raises(error):
        fasttok.prepare(encoder, [], tmp_path, num_threads=num_threads)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "[1e400]"])
def test_an_id_that_is_not_json_fails_its_record(encoder: Encoder, tmp_path: Path, number: str) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_text(f'{{"id": {number}, "messages": {json.dumps([USER])}}}\n')
    summary = fasttok.prepare(encoder, [chats], tmp_path / "out")
    assert [(failure.path, failure.kind) for failure in summary["failures"]] == [("id", "conversation")]


def test_arguments_that_python_reads_and_fasttok_cannot_hold_are_no_raw_text(encoders: dict[str, Encoder]) -> None:
    def chat(arguments: str) -> list[dict[str, Any]]:
        call = {"id": "functions.f:0", "function": {"name": "f", "arguments": arguments}}
        return [USER, {"role": "assistant", "tool_calls": [call]}]

    k3 = encoders["kimi-k3"]
    for arguments in ('{"a": ' + "[" * 300 + "]" * 300 + "}", r'{"a": "\ud83d"}'):
        with pytest.raises(FasttokError, match=r"^messages\[1\]\.tool_calls\[0\]\.function\.arguments: not valid JSON"):
            k3.encode_conversation(chat(arguments))
    for arguments in (r'{"a": "\ud83d"', r'{"a": "\ud8', "{"):
        assert f'<|open|>json type="object"<|sep|>{arguments}<|close|>' in k3.render(chat(arguments))


@pytest.mark.parametrize("conversations", ["[]", b"[]", {"messages": [USER]}])
def test_one_conversation_is_no_batch(encoder: Encoder, conversations: Any) -> None:
    with pytest.raises(FasttokError, match=r"^conversations: expected a list of conversations, found `\w+`: enc"):
        encoder.encode_batch(conversations)


def test_far_too_many_threads_are_no_error(encoder: Encoder) -> None:
    conversations = [[USER]] * 1000
    assert len(encoder.encode_batch(conversations, num_threads=2**40)) == len(conversations)


def test_a_batch_must_be_iterable(encoder: Encoder) -> None:
    conversations: Any = 3
    with pytest.raises(TypeError, match="not iterable"):
        encoder.encode_batch(conversations)


@pytest.mark.parametrize("ids", [3, [1.5], ["1"], [None], np.array([1.5]), np.array([[1, 2]])], ids=str)
def test_ids_are_integers(encoder: Encoder, ids: Any) -> None:
    for decode in (encoder.tokenizer.decode, encoder.tokenizer.decode_bytes):
        with pytest.raises(TypeError):
            decode(ids)


@pytest.mark.parametrize(
    "token",
    [163_840, -1, 2**40, 2**70, -(2**70)],
)
def test_an_id_outside_the_vocabulary(encoder: Encoder, token: int) -> None:
    message = f"expected an id from 0 to 163839, found {token}"
    for decode in (encoder.tokenizer.decode, encoder.tokenizer.decode_bytes):
        with pytest.raises(FasttokError) as raised:
            decode([0, 1, token])
        assert_fault(raised, "vocab", "ids[2]", message)


def test_a_tokenizer_takes_text_only(encoder: Encoder) -> None:
    tokenizer = encoder.tokenizer
    for encode in (tokenizer.encode_ordinary, tokenizer.encode_with_special_tokens, tokenizer.encode_as_served):
        with pytest.raises(FasttokError) as raised:
            encode("a\ud800")
        assert_fault(raised, "conversation", "text", SURROGATE)
        not_text: Any = b"a"
        with pytest.raises(TypeError, match="'str'"):
            encode(not_text)


@pytest.mark.parametrize("name", ["EncodedConversation", "EncodedBatch", "Span", "Spans", "Tokenizer"])
def test_results_are_made_by_encoding_only(name: str) -> None:
    with pytest.raises(TypeError, match="cannot create"):
        getattr(fasttok, name)()


# Models


@pytest.mark.parametrize("name", ["kimi-k4", "", "gpt-4", "kimi-k2.5 ", "other/kimi-k2.5", "ki\x00mi"])
def test_an_unknown_model_lists_the_known_ones(name: str) -> None:
    message = f"unknown model `{name}`: the known ones are {', '.join(MODELS)}"
    makers: list[tuple[str, Callable[[], object]]] = [
        ("", lambda: Encoder(name)),
        ("template", lambda: Encoder("kimi-k2.5", template=name)),
        ("", lambda: fasttok.encode_conversation([USER], name)),
    ]
    for path, make in makers:
        with pytest.raises(FasttokError) as raised:
            make()
        assert_fault(raised, "unknown_model", path, message)


def test_a_folder_called_like_a_model_does_not_stand_in_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kimi-k2.5").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Encoder("kimi-k2.5").template == "kimi-k2.5"


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(FasttokError) as raised:
        Encoder("./no/such/folder")
    assert_fault(raised, "unknown_model", "", "expected a model folder, found nothing at `./no/such/folder`")


def test_a_folder_without_tokenizer_files(tmp_path: Path) -> None:
    with pytest.raises(FasttokError) as raised:
        Encoder(str(tmp_path), template="kimi-k2.5")
    assert (raised.value.kind, raised.value.file) == ("vocab", str(tmp_path))
    assert raised.value.message.startswith("expected a tiktoken.model")


def test_a_folder_whose_template_is_not_clear(tmp_path: Path) -> None:
    with pytest.raises(FasttokError) as raised:
        Encoder(str(tmp_path))
    message = "cannot tell which template this model folder has: pass template=, one of " + ", ".join(MODELS)
    assert (raised.value.kind, raised.value.file, raised.value.message) == ("unknown_model", str(tmp_path), message)
    assert str(raised.value) == f"{tmp_path}: {message}"


def test_a_folder_whose_name_and_template_disagree(tmp_path: Path) -> None:
    folder = tmp_path / "Kimi-K2.6"
    folder.mkdir()
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    with pytest.raises(FasttokError) as raised:
        Encoder(str(folder))
    assert raised.value.kind == "unknown_model"
    assert raised.value.message == (
        "expected the chat template of kimi-k2.6, found one that lacks `tool_calls_section_begin`: pass template= to "
        "say which it is"
    )


def test_a_model_whose_format_is_not_public_is_refused_with_the_reason() -> None:
    with pytest.raises(FasttokError) as raised:
        Encoder("moonshotai/Kimi-K3.1-Pro")
    assert raised.value.kind == "unknown_model"
    assert "its prompt format is not public" in raised.value.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thinking_effort": "medium"}, "thinking_effort: expected low, high, max or null, found `medium`"),
        ({"tool_choice": "any"}, "tool_choice: expected auto, required, none or null, found `any`"),
        ({"response_format": []}, "response_format: expected an object, found a list"),
        (
            {"response_format": {"type": "xml"}},
            "response_format: expected a `type` of text, json_object or json_schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {}}},
            "response_format: expected a `schema` in `json_schema`, found none",
        ),
    ],
)
def test_an_option_with_a_value_that_it_cannot_take(options: dict[str, Any], message: str) -> None:
    encoder = Encoder("kimi-k3")
    for call in (
        lambda: encoder.encode_conversation([USER], **options),
        lambda: encoder.encode_batch([[USER]], **options),
        lambda: encoder.render([USER], **options),
    ):
        with pytest.raises(FasttokError) as raised:
            call()
        assert (raised.value.kind, str(raised.value)) == ("option", message)


def cut(text: bytes) -> bytes:
    return text[: text.rindex(b"\n", 0, 500_000) + 1]


def binary(text: bytes) -> bytes:
    return b"\xff\n" + text


def swap_two_ranks(text: bytes) -> bytes:
    lines = text.splitlines(keepends=True)
    (a, a_rank), (b, b_rank) = lines[1000].split(), lines[1001].split()
    lines[1000:1002] = [b + b" " + a_rank + b"\n", a + b" " + b_rank + b"\n"]
    return b"".join(lines)


@pytest.mark.parametrize(
    ("damage", "line", "message"),
    [
        (cut, None, "expected Kimi's 163584 tokens, found "),
        (swap_two_ranks, None, "expected Kimi's vocabulary (sha256 b6c497a7469b"),
        (binary, 1, "expected a token in base64, a blank and its rank"),
    ],
)
def test_a_vocabulary_that_is_not_kimis(
    model_folder: Path, tmp_path: Path, damage: Callable[[bytes], bytes], line: int | None, message: str
) -> None:
    file = tmp_path / "tiktoken.model"
    file.write_bytes(damage((model_folder / file.name).read_bytes()))
    with pytest.raises(FasttokError) as raised:
        Encoder(str(tmp_path), template="kimi-k2.5")
    error = raised.value
    assert (error.kind, error.file, error.line) == ("vocab", str(file), line)
    assert error.message.startswith(message)


# Whatever else


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    # Surrogates among them.
    | st.text(alphabet=st.characters(codec=None), max_size=3)
    | st.binary(max_size=3)
)
KEYS = st.sampled_from(
    ["messages", "tools", "role", "content", "type", "text", "name", "tool_calls", "function", "arguments", "id"]
) | st.text(max_size=3)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS | st.integers() | st.none(), inner, max_size=4)
        | st.tuples(inner)
    ),
    max_leaves=12,
)
ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
MESSAGE_VALUES: dict[str, st.SearchStrategy[Any]] = dict.fromkeys(
    ["content", "name", "tool_calls", "tool_call_id", "reasoning_content", "reasoning"], VALUES
)
ALMOST_MESSAGE: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"role": ROLES | VALUES}, optional=MESSAGE_VALUES
)
ALMOST_MESSAGES = st.lists(ALMOST_MESSAGE, max_size=3)


@given(messages=VALUES | ALMOST_MESSAGES, tools=VALUES)
def test_any_value_encodes_or_is_a_clear_error(encoder: Encoder, messages: Any, tools: Any) -> None:
    # Anything but a FasttokError fails the test, a panic included.
    for given_tools in (None, tools):
        try:
            one = encoder.encode_conversation(messages, tools=given_tools)
        except FasttokError as error:
            assert error.message
            assert str(error).endswith(error.message)
        else:
            assert isinstance(one, EncodedConversation)
            assert len(one.input_ids) == len(one.loss_mask) == one.spans[-1].end


@given(text=st.binary(max_size=60) | st.text(max_size=60) | VALUES.map(lambda value: json.dumps(value, default=str)))
def test_any_text_encodes_or_is_a_clear_error(encoder: Encoder, text: str | bytes) -> None:
    try:
        encoder.encode_conversation(text)
    except FasttokError as error:
        assert error.kind in ("json", "conversation")


@given(messages=ALMOST_MESSAGES)
def test_json_means_what_the_objects_mean(encoder: Encoder, messages: Any) -> None:
    def outcome(conversation: Any) -> tuple[object, ...]:
        try:
            one = encoder.encode_conversation(conversation)
        except FasttokError as error:
            return error.kind, error.path, error.message
        return one.input_ids.tolist(), one.loss_mask.tolist()

    text = json.dumps(messages, default=lambda _: "bytes", ensure_ascii=False)
    # JSON text and Python objects word this fault each in their own way.
    assume(not any("\ud800" <= char <= "\udfff" for char in text))
    assert outcome(text.encode()) == outcome(json.loads(text))


def test_a_dict_that_changes_while_it_is_read_is_no_panic(encoder: Encoder) -> None:
    message: dict[str, Any] = {"role": "user"}

    class Growing:
        def tolist(self) -> str:
            message.update({f"key{number}": number for number in range(100)})
            return "hi"

    message["content"] = Growing()
    assert encoder.render([message]) == "<|im_user|>user<|im_middle|>hi<|im_end|>"
