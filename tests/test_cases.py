"""Public bug reports of other tools as small inputs (`tests/cases/`), each with the right behaviour.

A file says in `expect` what is right and in `facts` what was measured. Those that concern what fasttok does today are
tested here; the masks of `facts` are structural, which is what the preset `renderers` trains.
"""

import base64
import json
from pathlib import Path
from typing import Any, cast

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


def test_no_case_is_lost() -> None:
    assert len(CASES) == 54


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
