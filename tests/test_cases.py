"""Public bug reports of other tools as small inputs (`tests/cases/`), each with the right behaviour.

A file says in `expect` what is right and in `facts` what was measured; the masks of `facts` are structural, which is
what the preset `renderers` trains. `tests/cases/README.md` says of each case which tests hold it, and where fasttok
does something else, why.
"""

import base64
import json
import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import fasttok
from fasttok import Encoder, FasttokError

CASES: dict[str, dict[str, Any]] = {
    path.name[:3]: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "cases").glob("*.json"))
}


def spelled_out(value: Any) -> Any:
    """The value with `{"$repeat": [text, times]}` and `{"$concat": [parts]}` written out."""
    if isinstance(value, list):
        return [spelled_out(item) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    entries = cast(dict[str, Any], value)
    if "$repeat" in entries:
        text, times = entries["$repeat"]
        return text * times
    if "$concat" in entries:
        return "".join(spelled_out(entries["$concat"]))
    return {key: spelled_out(item) for key, item in entries.items()}


def messages(case: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = spelled_out(CASES[case]["messages"])
    return read


def found(one: fasttok.EncodedConversation) -> list[str]:
    return [finding.code for finding in one.findings]


def trained_text(encoder: Encoder, one: fasttok.EncodedConversation) -> str:
    return encoder.tokenizer.decode(one.input_ids[one.loss_mask == 1])


def test_no_case_is_lost() -> None:
    assert len(CASES) == 54
    table = (Path(__file__).parent / "cases" / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d{3}) \| .*? \| (.+) \|$", table, re.MULTILINE))
    assert sorted(rows) == sorted(CASES)
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
    for number, verdict in rows.items():
        tests = re.findall(r"`(test_\w+)`", verdict)
        assert tests, number
        assert all(f"def {test}(" in sources for test in tests), number


# Null counts as absent: there is no image, and no reasoning called None.
ON_PURPOSE = {"009", "010"}
RENDERED = [
    number for number, case in CASES.items() if "hf_text" in (case.get("facts") or {}) and number not in ON_PURPOSE
]


@pytest.mark.parametrize("number", RENDERED)
def test_text_and_trained_spans(encoders: dict[str, Encoder], number: str) -> None:
    case, encoder = CASES[number], encoders["kimi-k2-thinking"]
    facts = case["facts"]
    assert facts["model"].startswith("Kimi-K2-Thinking")
    tools = case["tools"] or None
    assert encoder.render(messages(number), tools=tools, tool_nulls="as_reference") == facts["hf_text"]
    one = encoder.encode_conversation(messages(number), tools=tools, tool_nulls="as_reference")
    assert len(one.input_ids) == facts["n_tokens"]
    mask = one.mask("renderers")
    assert mask.sum() == facts["n_mask_ones"]
    spans = {span.message_index: "" for span in one.spans if mask[span.start]}
    for span in one.spans:
        if mask[span.start]:
            spans[span.message_index] += encoder.tokenizer.decode(one.input_ids[span.start : span.end])
    assert list(spans.values()) == facts["trained_spans"]


@pytest.mark.parametrize("number", ["003", "061"])
def test_long_and_repeated_ones(encoders: dict[str, Encoder], number: str) -> None:
    one = encoders["kimi-k2-thinking"].encode_conversation(messages(number))
    facts = CASES[number]["facts"]
    assert (len(one.input_ids), one.mask("renderers").sum()) == (facts["n_tokens"], facts["n_mask_ones"])


def test_null_counts_as_absent(encoders: dict[str, Encoder]) -> None:
    for number in ON_PURPOSE:
        text = encoders["kimi-k2-thinking"].render(messages(number))
        assert "None" not in text and "<|media_start|>" not in text


@pytest.mark.parametrize("number", ["051", "053", "054", "055"])
def test_ids_of_odd_text(encoder: Encoder, number: str) -> None:
    for text, fact in CASES[number]["facts"].items():
        expected = fact.get("kimi_ids") or fact["text_ids"]
        assert encoder.tokenizer.encode_ordinary(text).tolist() == expected, text
        assert encoder.tokenizer.decode_bytes(expected) == text.encode()


def test_runs_longer_than_25_000(encoder: Encoder) -> None:
    for text, fact in CASES["059"]["facts"].items():
        assert len(encoder.tokenizer.encode_ordinary(text * fact["count"])) == fact["n_ids_with_chunks"], text


def test_a_million_blanks(encoder: Encoder) -> None:
    facts = CASES["058"]["facts"]
    ids = encoder.tokenizer.encode_ordinary(messages("058")[0]["content"]).tolist()
    assert (len(ids), ids[:3], ids[-3:]) == (facts["n_user_ids"], facts["first_ids"], facts["last_ids"])


def test_control_strings(encoders: dict[str, Encoder]) -> None:
    # Measured with a model in which 163605 is a reserved token.
    encoder = encoders["kimi-k2-thinking"]
    tokenizer = encoder.tokenizer
    text = messages("046")[0]["content"]
    assert tokenizer.encode_ordinary(text).tolist() == CASES["046"]["facts"]["user_text_ids_as_text"]
    assert tokenizer.encode_as_served(text).tolist() == CASES["046"]["facts"]["user_text_ids_as_special"]
    kept = encoder.encode_conversation(messages("046"), control_strings="text")
    im_end = tokenizer.special_tokens["<|im_end|>"]
    # One more ends the default system message.
    assert (kept.input_ids == im_end).sum() == len(messages("046")) + 1
    result = messages("047")[2]["content"]
    assert tokenizer.encode_ordinary(result).tolist() == CASES["047"]["facts"]["tool_text_ids_as_text"]
    assert tokenizer.encode_as_served(result).tolist() == CASES["047"]["facts"]["tool_text_ids_as_special"]
    answer = messages("048")[1]["content"]
    assert tokenizer.encode_ordinary(answer).tolist() == CASES["048"]["facts"]["as_text"]
    assert tokenizer.encode_as_served(answer).tolist() == CASES["048"]["facts"]["as_special"]


def test_half_a_surrogate_pair_is_an_error_with_its_place(encoder: Encoder) -> None:
    with pytest.raises(FasttokError, match=r"^messages\[0\]\.content: expected text that UTF-8 can hold"):
        encoder.encode_conversation(messages("057"))


@pytest.mark.parametrize("number", ["064", "065"])
def test_numbers_in_object_arguments(encoder: Encoder, number: str) -> None:
    record = base64.b64decode(CASES[number]["raw"]["base64"]).splitlines()[0]
    assert f"<|tool_call_argument_begin|>{CASES[number]['facts']['k2_arguments_text']}<|" in encoder.render(record)


def test_escapes_in_json(encoder: Encoder) -> None:
    facts = CASES["067"]["facts"]
    text = encoder.render(base64.b64decode(CASES["067"]["raw"]["base64"]))
    assert f"<|tool_call_argument_begin|>{facts['arguments_text']}<|" in text
    said = text.split("<|im_middle|>")[1].split("<|im_end|>")[0]
    assert encoder.tokenizer.encode_ordinary(said).tolist() == facts["user_ids"]


def test_bom_crlf_and_blank_lines(encoder: Encoder, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_bytes(base64.b64decode(CASES["062"]["raw"]["base64"]))
    summary = fasttok.prepare(encoder, [chats], tmp_path / "out")
    assert (summary["written"], summary["failed"]) == (3, {})
    lines = (tmp_path / "out" / "tokenized_data.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [0, 1, 2]


def test_bad_lines(encoder: Encoder, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_bytes(base64.b64decode(CASES["063"]["raw"]["base64"]))
    summary = fasttok.prepare(encoder, [chats], tmp_path / "out")
    assert (summary["written"], sum(summary["failed"].values())) == (2, 4)
    assert [failure.line for failure in summary["failures"]] == [2, 3, 4, 5]


def test_a_cut_never_opens_a_tool_section(encoders: dict[str, Encoder]) -> None:
    encoder = encoders["kimi-k2-thinking"]
    first, last = CASES["044"]["facts"]["tool_section_token_range"]
    full = encoder.encode_conversation(messages("044"))
    assert len(full.input_ids) == CASES["044"]["facts"]["n_tokens"]
    inside = encoder.encode_conversation(messages("044"), max_length=(first + last) // 2)
    assert not inside.loss_mask.any()
    after = encoder.encode_conversation(messages("044"), max_length=last + 500)
    assert encoder.tokenizer.decode(after.input_ids).endswith("<|tool_calls_section_end|><|im_end|>")
    hard = encoder.encode_conversation(messages("044"), max_length=last + 500, truncate="token")
    assert (len(hard.input_ids), hard.cut_tokens) == (last + 500, len(full.input_ids) - last - 500)


def test_flags(encoder: Encoder) -> None:
    one = encoder.encode_conversation(messages("038"))
    assert encoder.tokenizer.decode(one.input_ids[one.loss_mask == 1]) == "good step<|im_end|>kept<|im_end|>"


def test_the_last_turn_alone(encoder: Encoder) -> None:
    one = encoder.encode_conversation(messages("037"), mask="last_assistant_message")
    assert encoder.tokenizer.decode(one.input_ids[one.loss_mask == 1]) == "a3<|im_end|>"


def test_k26_preserves_thinking_and_only_appends(encoders: dict[str, Encoder]) -> None:
    encoder, chat = encoders["kimi-k2.6"], messages("024")
    text = encoder.render(chat, preserve_thinking=True)
    reasoning = [message["reasoning_content"] for message in chat if message.get("reasoning_content")]
    assert len(reasoning) == 3
    assert all(f"<think>{each}</think>" in text for each in reasoning)
    for end in range(1, len(chat)):
        assert text.startswith(encoder.render(chat[:end], preserve_thinking=True))


@pytest.mark.parametrize(
    ("number", "names"), [("001", ["run_shell"]), ("003", ["read_file", "read_file", "run_shell"])]
)
def test_canonical_ids_name_the_function(encoders: dict[str, Encoder], number: str, names: list[str]) -> None:
    encoder, chat = encoders["kimi-k2-thinking"], messages(number)
    verbatim = encoder.encode_conversation(chat)
    assert verbatim.hidden_tool_names == (number == "001")
    one = encoder.encode_conversation(chat, tool_call_ids="canonical")
    assert one.hidden_tool_names == 0
    text = encoder.tokenizer.decode(one.input_ids)
    for n, name in enumerate(names):
        assert text.count(f"<|tool_call_begin|>functions.{name}:{n}<|") == 1
        assert text.count(f"## Return of functions.{name}:{n}\n") == 1
    assert encoders["kimi-k3"].encode_conversation(chat).hidden_tool_names == 0


def k3_calls(text: str) -> list[str]:
    """The inside of each call in K3's text, after its opening tag."""
    return [part.split("<|sep|>", 1)[1] for part in text.split("<|open|>call ")[1:]]


def test_arguments_as_object_and_as_string(encoders: dict[str, Encoder]) -> None:
    as_object, as_string = messages("004"), messages("004")
    call = as_string[1]["tool_calls"][0]["function"]
    call["arguments"] = json.dumps(call["arguments"], ensure_ascii=False)
    for name in ("kimi-k2", "kimi-k2-thinking", "kimi-k2.5", "kimi-k3"):
        one, other = (encoders[name].encode_conversation(chat) for chat in (as_object, as_string))
        assert np.array_equal(one.input_ids, other.input_ids), name
        assert np.array_equal(one.loss_mask, other.loss_mask), name
    text = encoders["kimi-k3"].render(as_object)
    assert re.findall(r' key="(\w+)" type="(\w+)"', text) == [
        ("city", "string"),
        ("days", "number"),
        ("units", "object"),
        ("alerts", "array"),
    ]


def test_malformed_arguments_are_found_and_kept(encoders: dict[str, Encoder]) -> None:
    chat = messages("006")
    one = encoders["kimi-k2-thinking"].encode_conversation(chat)
    assert found(one).count("malformed_arguments") == 4
    # K3's own code raises for the list, and prints numbers anew.
    with pytest.raises(
        FasttokError, match=r"tool_calls\[3\]\.function\.arguments: expected a JSON object, found a list$"
    ):
        encoders["kimi-k3"].encode_conversation(chat)
    calls = [call for call in chat[1]["tool_calls"] if call["id"] != "functions.lst:3"]
    text = encoders["kimi-k3"].render([chat[0], {**chat[1], "tool_calls": calls}, chat[2]])
    cut, empty, blank, numbers = k3_calls(text)
    assert cut.startswith('<|open|>json type="object"<|sep|>{"path": "x.txt", "text": "half<|close|>json')
    assert empty.startswith("<|close|>call") and blank.startswith("<|close|>call")
    assert "<|sep|>100.0<|close|>" in numbers and "<|sep|>1.0<|close|>" in numbers


def test_five_spellings_of_no_content(encoders: dict[str, Encoder]) -> None:
    user, assistant, result = messages("007")
    for name, encoder in encoders.items():
        # A list is an error for Moonlight, whose own template prints it in Python's notation.
        one = encoder.encode_conversation([user, {**assistant, "content": None}, result])
        for variant in [assistant, *CASES["007"]["options"]["variants"]]:
            if name == "moonlight" and isinstance(variant.get("content"), list):
                continue
            same = encoder.encode_conversation([user, variant, result])
            assert np.array_equal(one.input_ids, same.input_ids)
            assert np.array_equal(one.loss_mask, same.loss_mask)
    text = encoders["kimi-k2-thinking"].render([user, assistant, result])
    assert "</think><|tool_calls_section_begin|>" in text


def test_padding_of_an_arrow_table_is_found(encoders: dict[str, Encoder]) -> None:
    assert "null_padding" in found(encoders["kimi-k2"].encode_conversation(messages("009")))
    padded = encoders["kimi-k2-thinking"].encode_conversation(messages("011"), tools=CASES["011"]["tools"])
    assert found(padded) == ["null_padding"]
    text = encoders["kimi-k2-thinking"].render(messages("011"), tools=CASES["011"]["tools"])
    assert '"properties":{"body":{"type":"string"}}' in text and "null" not in text


def test_arrays_of_numpy_stand_for_lists(encoder: Encoder) -> None:
    plain, arrays = (CASES["013"]["raw"]["rows"][0]["messages"] for _ in range(2))
    arrays = json.loads(json.dumps(arrays))
    arrays[1]["tool_calls"][0]["function"]["arguments"]["names"] = np.array(["x", "y"], dtype=object)
    arrays[1]["tool_calls"] = np.array(arrays[1]["tool_calls"], dtype=object)
    listed: Any = np.array(arrays, dtype=object)
    assert encoder.render(listed) == encoder.render(plain)


def test_tools_are_sorted_and_not_escaped(encoders: dict[str, Encoder]) -> None:
    declared = CASES["014"]["facts"]["hf_text"].split("<|im_middle|>")[1].split("<|im_end|>")[0]
    for name in ("kimi-k2", "kimi-k3"):
        assert declared in encoders[name].render(messages("014"), tools=CASES["014"]["tools"])


def test_one_tool_without_typescript_makes_all_json(encoders: dict[str, Encoder]) -> None:
    tools = CASES["015"]["tools"]
    plain = {"type": "function", "function": {"name": "g", "parameters": {"properties": {"view": {"enum": ["a"]}}}}}
    for name in ("kimi-k2.5", "kimi-k2.6"):
        text = encoders[name].render(messages("015"), tools=[plain, *tools])
        assert '<|im_middle|>[{"function":{"name":"g",' in text and "namespace functions" not in text
        assert 'view?: "a"' in encoders[name].render(messages("015"), tools=[plain])


def test_a_role_of_its_own_is_kept_and_found(encoders: dict[str, Encoder]) -> None:
    assert found(encoders["kimi-k2-thinking"].encode_conversation(messages("016"))) == ["unknown_role"]


def test_k3_names_results_by_their_calls(encoders: dict[str, Encoder]) -> None:
    headers = re.findall(r' role="tool" tool="(\w+)" index="(\d)"', encoders["kimi-k3"].render(messages("019")))
    assert headers == [("add", "1"), ("add", "2")]
    text = encoders["kimi-k3"].render(messages("020"))
    assert re.findall(r' tool="(\w+)" index="(\d)"<\|sep\|>(?!<)(\w+)', text) == [
        ("weather", "1", "3C"),
        ("time", "2", "14"),
    ]


def test_reasoning_of_an_open_loop_is_trained(encoders: dict[str, Encoder]) -> None:
    chat = messages("022")
    reasoning = [message["reasoning_content"] for message in chat if message.get("reasoning_content")]
    for name in ("kimi-k2-thinking", "kimi-k2.5", "kimi-k2.6"):
        text = trained_text(encoders[name], encoders[name].encode_conversation(chat))
        assert all(each in text for each in reasoning) and len(reasoning) == 2
        assert text.count("<|tool_calls_section_end|>") == 2
        assert text.count("<|im_end|>") == sum(message["role"] == "assistant" for message in chat)


def test_a_final_answer_keeps_its_reasoning_when_asked(encoders: dict[str, Encoder]) -> None:
    chat, encoder = messages("023"), encoders["kimi-k2-thinking"]
    assert encoder.encode_conversation(chat).dropped_reasoning == 2
    rows = encoder.encode_batch([chat], reasoning="expand")
    assert [trained_text(encoder, row) for row in rows] == [
        "<think>Two plus two is four.</think>4<|im_end|>",
        "<think>Four times ten.</think>40<|im_end|>",
    ]
    with pytest.raises(FasttokError, match="cannot show all reasoning"):
        encoder.encode_conversation(chat, reasoning="preserve")
    kept = encoders["kimi-k2.6"].encode_conversation(chat, reasoning="preserve")
    assert kept.dropped_reasoning == 0


def test_what_the_prompt_supplies_is_not_trained(encoders: dict[str, Encoder]) -> None:
    (row,) = encoders["kimi-k2.5"].encode_batch([messages("026")], reasoning="expand")
    assert trained_text(encoders["kimi-k2.5"], row) == "Seven sixes are 42.</think>42<|im_end|>"
    (row,) = encoders["kimi-k2-thinking"].encode_batch([messages("026")], reasoning="expand")
    assert trained_text(encoders["kimi-k2-thinking"], row) == "<think>Seven sixes are 42.</think>42<|im_end|>"


def test_reasoning_is_never_trained_where_thinking_is_off(encoders: dict[str, Encoder]) -> None:
    for name in ("kimi-k2.5", "kimi-k2.6", "kimi-k3"):
        one = encoders[name].encode_conversation(messages("027"), thinking=False)
        assert one.dropped_reasoning == 1
        assert trained_text(encoders[name], one).startswith("81")


def test_an_empty_pair_trains_when_asked(encoders: dict[str, Encoder]) -> None:
    encoder = encoders["kimi-k2-thinking"]
    one = encoder.encode_conversation(messages("028"))
    assert trained_text(encoder, one) == "Lima.<|im_end|>"
    asked = encoder.encode_conversation(messages("028"), mask="all_assistant_messages+empty_think")
    assert trained_text(encoder, asked) == "<think></think>Lima.<|im_end|>"


def test_k3_keeps_all_reasoning(encoders: dict[str, Encoder]) -> None:
    chat, k3 = messages("031"), encoders["kimi-k3"]
    text = k3.render(chat)
    for message in chat:
        if reasoning := message.get("reasoning_content"):
            assert f"<|open|>think<|sep|>{reasoning}<|close|>think<|sep|>" in text
    for end in range(1, len(chat)):
        assert text.startswith(k3.render(chat[:end]))
    assert "<|open|>think" not in k3.render(chat, thinking=False)


@pytest.mark.parametrize(("number", "bodies"), [("032", 2), ("034", 3), ("035", 4)])
def test_each_assistant_body_trains_with_its_end(encoders: dict[str, Encoder], number: str, bodies: int) -> None:
    chat = messages(number)
    for name, encoder in encoders.items():
        if number == "034" and name in ("moonlight", "kimi-vl"):
            continue
        one = encoder.encode_conversation(chat)
        trained = {span.message_index for span in one.spans if one.loss_mask[span.start]}
        assert trained == {index for index, message in enumerate(chat) if message["role"] == "assistant"}
        end = "<|end_of_msg|>" if name == "kimi-k3" else "<|im_end|>"
        assert trained_text(encoder, one).count(end) == bodies, name
        ends = [span for span in one.spans if span.part == "end"]
        assert [bool(one.loss_mask[span.start]) for span in ends] == [span.role == "assistant" for span in ends]
        for index in trained:
            spans = [span for span in one.spans if span.message_index == index]
            body = encoder.tokenizer.decode(one.input_ids[spans[0].start : spans[-1].end])
            assert chat[index or 0]["content"] in body


def test_a_row_without_assistant_is_counted(encoder: Encoder, tmp_path: Path) -> None:
    one = encoder.encode_conversation(messages("039"))
    assert len(one.input_ids) and not one.loss_mask.any()
    with pytest.raises(FasttokError, match="no token trains"):
        encoder.encode_conversation(messages("039"), on_empty="raise")
    chats = tmp_path / "chats.jsonl"
    chats.write_text(json.dumps({"messages": messages("039")}) + "\n")
    assert fasttok.prepare(encoder, [chats], tmp_path / "kept")["untrained_records"] == 1
    skipped = fasttok.prepare(encoder, [chats], tmp_path / "skipped", on_empty="skip")
    assert (skipped["written"], skipped["skipped"]) == (0, {"no token that trains": 1})


def test_mask_and_labels_are_aligned_with_the_ids(encoders: dict[str, Encoder]) -> None:
    encoder = encoders["kimi-k2-thinking"]
    for number in ("041", "043", "045"):
        one = encoder.encode_conversation(messages(number), mask="renderers")
        assert len(one.loss_mask) == len(one.labels) == len(one.input_ids)
        assert (one.labels != -100).sum() == one.loss_mask.sum()
        assert one.labels[-1] == encoder.tokenizer.special_tokens["<|im_end|>"]
    facts = CASES["041"]["facts"]
    assert one.loss_mask.sum() == CASES["045"]["facts"]["n_mask_ones"]
    assert encoder.encode_conversation(messages("041")).input_ids.tolist() == facts["ids"]


def test_k3_edges_and_attributes(encoders: dict[str, Encoder]) -> None:
    k3 = encoders["kimi-k3"]
    text, tokenizer = k3.render(messages("050")), k3.tokenizer
    arguments = re.findall(r' key="(\w+)" type="(\w+)"<\|sep\|>(.*?)<\|close\|>argument', text)
    assert arguments == [
        ("glob", "string", ".hidden"),
        ("depth", "number", "2"),
        ("quote", "string", 'a"b&c'),
        ("empty", "string", ""),
        ("nested", "object", '{"k": [1, 2]}'),
    ]
    # The pieces of an attribute are encoded alone, though `="` and `.hidden` would merge.
    chat = messages("050")
    chat[1]["tool_calls"][0]["function"]["arguments"] = {".hidden": 2}
    ids = k3.encode_conversation(chat).input_ids.tolist()
    pieces = [token for piece in ('="', ".hidden", '"') for token in tokenizer.encode_ordinary(piece)]
    assert any(ids[at : at + len(pieces)] == pieces for at in range(len(ids)))
    assert pieces != tokenizer.encode_ordinary('=".hidden"').tolist()


def test_ids_that_other_backends_get_wrong(encoders: dict[str, Encoder]) -> None:
    special = encoders["kimi-k2.5"].tokenizer.special_tokens
    assert (special["<think>"], special["</think>"], special["[PAD]"]) == (163606, 163607, 163839)


def test_odd_conversations_of_the_cases_are_found(encoders: dict[str, Encoder]) -> None:
    encoder = encoders["kimi-k2.5"]
    assert "ignored_flag" in found(encoder.encode_conversation(messages("038")))
    assert found(encoder.encode_conversation(messages("019"))) == ["duplicate_tool_result"]
    for number in ("001", "004", "007", "020", "022", "030", "034"):
        assert found(encoder.encode_conversation(messages(number))) == [], number
