"""Reasoning that a template does not show: left out, preserved, or expanded to rows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fasttok
from fasttok import EncodedBatch, Encoder, FasttokError

EXAMPLES = Path(__file__).parents[1] / "examples" / "trajectories.jsonl"
EXPANDED = ["kimi-k2-thinking", "kimi-k2.5", "kimi-k2.6"]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str, reasoning: str = "") -> dict[str, Any]:
    return {"role": "assistant", "content": text, "reasoning_content": reasoning}


def call(number: int, reasoning: str = "") -> list[dict[str, Any]]:
    name = f"functions.f:{number}"
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    return [
        {"role": "assistant", "content": "", "reasoning_content": reasoning, "tool_calls": calls},
        {"role": "tool", "tool_call_id": name, "content": "result"},
    ]


CHAT = [user("one"), *call(0, "r0"), answer("a1", "r1"), user("two"), *call(1, "r2"), *call(2), answer("a2", "r3")]


def assert_rows_are_what_serving_showed(
    encoder: Encoder, conversation: dict[str, Any], rows: EncodedBatch
) -> list[int]:
    """Checks every row, and returns the messages that train, in order.

    What stands before a message in its row must be the prompt that a server makes of the messages before it, and what
    trains must hold its reasoning.
    """
    messages, tools = conversation["messages"], conversation.get("tools")
    trained: list[int] = []
    for row in rows:
        starts: dict[int, int] = {}
        text: dict[int, str] = {}
        for span in row.spans:
            index = span.message_index
            if index is None or not row.loss_mask[span.start]:
                continue
            starts.setdefault(index, span.start)
            text[index] = text.get(index, "") + encoder.tokenizer.decode(row.input_ids[span.start : span.end])
        for index, start in starts.items():
            reasoning = messages[index].get("reasoning_content") or ""
            if not reasoning:
                # The tags of empty reasoning do not train: the prompt ends before them.
                start = min(span.start for span in row.spans if span.message_index == index and span.part != "header")
                start += encoder.template != "kimi-k2-thinking"
            is_named = bool(messages[index].get("name"))
            if is_named:
                # A server asks for `assistant`, whatever the name that the message got later.
                start = min(span.start for span in row.spans if span.message_index == index)
            prompt = encoder.encode_conversation(messages[:index], tools=tools, add_generation_prompt=not is_named)
            assert np.array_equal(row.input_ids[:start], prompt.input_ids), index
            assert reasoning in text[index], index
        trained += starts
    return trained


@pytest.mark.parametrize("model", EXPANDED)
def test_expanded_rows_are_what_serving_showed(encoders: dict[str, Encoder], model: str) -> None:
    encoder = encoders[model]
    rows = encoder.encode_batch([CHAT], reasoning="expand")
    assert len(rows) == 2
    assert_rows_are_what_serving_showed(encoder, {"messages": CHAT}, rows)
    assert "r2" not in encoder.tokenizer.decode(rows[0].input_ids)
    assert [row.dropped_reasoning for row in rows] == [0, 0]


@pytest.mark.parametrize("model", EXPANDED)
def test_every_assistant_message_of_the_examples_trains_once(encoders: dict[str, Encoder], model: str) -> None:
    encoder = encoders[model]
    conversations = [json.loads(line) for line in EXAMPLES.read_text().splitlines()]
    batch = encoder.encode_batch(conversations, reasoning="expand")
    assert len(batch) > len(conversations)
    sources = batch.sources.tolist()
    assert sources == sorted(sources)
    for number, conversation in enumerate(conversations):
        rows = encoder.encode_batch([conversation], reasoning="expand")
        assert len(rows) == sources.count(number)
        trained = assert_rows_are_what_serving_showed(encoder, conversation, rows)
        roles = [message["role"] for message in conversation["messages"]]
        assert trained == [index for index, role in enumerate(roles) if role == "assistant"]


def test_a_template_that_shows_all_or_none_needs_one_row(encoders: dict[str, Encoder]) -> None:
    for name, encoder in encoders.items():
        if name in EXPANDED:
            continue
        batch = encoder.encode_batch([CHAT, CHAT[:1]], reasoning="expand")
        assert batch.sources.tolist() == [0, 1]
        assert np.array_equal(batch.input_ids, encoder.encode_batch([CHAT, CHAT[:1]]).input_ids)
    without: list[dict[str, Any]] = [{"preserve_thinking": True}, {"thinking": False}]
    for options in without:
        assert len(encoders["kimi-k2.6"].encode_batch([CHAT], reasoning="expand", **options)) == 1
    # Kimi-K2-Thinking has neither switch, so all is as without.
    for options in without:
        rows = encoders["kimi-k2-thinking"].encode_batch([CHAT], reasoning="expand", **options)
        assert [row.dropped_reasoning for row in rows] == [0, 0]


def test_reasoning_is_preserved_where_the_template_can(encoders: dict[str, Encoder]) -> None:
    kept = encoders["kimi-k2.6"].encode_conversation(CHAT, reasoning="preserve")
    assert kept.dropped_reasoning == 0
    assert np.array_equal(
        kept.input_ids, encoders["kimi-k2.6"].encode_conversation(CHAT, preserve_thinking=True).input_ids
    )
    for name in ("kimi-k2.7-code", "kimi-k3"):
        same = encoders[name].encode_conversation(CHAT)
        assert np.array_equal(encoders[name].encode_conversation(CHAT, reasoning="preserve").input_ids, same.input_ids)
    for name in ("kimi-k2", "kimi-k2-thinking", "kimi-k2.5", "moonlight"):
        with pytest.raises(FasttokError, match=rf"^reasoning: {name} cannot show all reasoning$"):
            encoders[name].encode_conversation(CHAT, reasoning="preserve")


def test_preserved_and_switched_off_is_a_contradiction(encoders: dict[str, Encoder]) -> None:
    with pytest.raises(FasttokError, match=r"^reasoning: expected to show all, but thinking is switched off$"):
        encoders["kimi-k3"].encode_conversation(CHAT, reasoning="preserve", thinking=False)
    # Kimi-K2.6 shows all even then, as its template does, and K2.7-Code has no such switch.
    for name in ("kimi-k2.6", "kimi-k2.7-code"):
        kept = encoders[name].encode_conversation(CHAT, reasoning="preserve", thinking=False)
        assert kept.dropped_reasoning == 0


def test_what_rules_rows_out(encoder: Encoder) -> None:
    with pytest.raises(FasttokError, match=r"^reasoning: expand makes several rows of this conversation: use encode_b"):
        encoder.encode_conversation(CHAT, reasoning="expand")
    assert len(encoder.encode_conversation(CHAT[:4], reasoning="expand").spans) > 0
    with pytest.raises(
        FasttokError, match=r"reasoning: expand is for training, and add_generation_prompt for prompts$"
    ):
        encoder.encode_batch([CHAT], reasoning="expand", add_generation_prompt=True)
    with pytest.raises(FasttokError, match=r"which the mask final_answer does not$"):
        encoder.encode_batch([CHAT], reasoning="expand", mask="final_answer")


def test_a_conversation_of_several_rows_is_no_single_one_even_if_one_is_left_out(encoder: Encoder) -> None:
    with pytest.raises(FasttokError, match=r"^reasoning: expand makes several rows of this conversation"):
        encoder.encode_conversation(CHAT, reasoning="expand", max_length=60, truncate="drop")
    # Where one row is all there can be, any mask will do.
    one = encoder.encode_conversation(CHAT, reasoning="expand", thinking=False, mask="final_answer")
    assert one.dropped_reasoning > 0


def test_weights_hold_in_rows(encoder: Encoder) -> None:
    chat = [*CHAT[:3], {**CHAT[3], "weight": 0.5}, *CHAT[4:]]
    rows = encoder.encode_batch([chat], reasoning="expand")
    assert [sorted(set(row.loss_weight.tolist())) for row in rows] == [[0, 0.5, 1], [0, 1]]


def test_prepare_writes_a_line_a_row(encoder: Encoder, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_text(json.dumps({"id": "x", "messages": CHAT}) + "\n" + json.dumps({"messages": CHAT[:1]}) + "\n")
    summary = fasttok.prepare(encoder, [chats], tmp_path / "out", reasoning="expand")
    assert (summary["records"], summary["written"], summary["rows"]) == (2, 2, 3)
    records = [json.loads(line) for line in (tmp_path / "out" / "tokenized_data.jsonl").read_text().splitlines()]
    batch = encoder.encode_batch([CHAT, CHAT[:1]], reasoning="expand")
    assert [record.get("id") for record in records] == ["x", "x", None]
    assert [record["input_ids"] for record in records] == [row.input_ids.tolist() for row in batch]
    assert [record["loss_mask"] for record in records] == [row.loss_mask.tolist() for row in batch]


def test_options_that_contradict_each_other_spare_what_was_there(encoder: Encoder, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_text(json.dumps({"messages": CHAT}) + "\n")
    fasttok.prepare(encoder, [chats], tmp_path)
    before = (tmp_path / "tokenized_data.jsonl").read_bytes()
    contradictions: list[dict[str, Any]] = [{"reasoning": "preserve"}, {"reasoning": "expand", "mask": "final_answer"}]
    for options in contradictions:
        with pytest.raises(FasttokError) as raised:
            fasttok.prepare(encoder, [chats], tmp_path, **options)
        assert raised.value.kind == "option"
        assert (tmp_path / "tokenized_data.jsonl").read_bytes() == before
    assert not (tmp_path / "rejected.jsonl").exists()


def test_reasoning_under_a_key_that_does_not_count_is_counted(encoders: dict[str, Encoder]) -> None:
    k26 = [user("u"), {"role": "assistant", "reasoning": "", "reasoning_content": "x", **call(0)[0]}, call(0)[1]]
    k26[1]["reasoning_content"] = "x"
    assert encoders["kimi-k2.6"].encode_conversation(k26).dropped_reasoning == 1
    k3 = [user("u"), {"role": "assistant", "content": "a", "thinking": "x"}]
    assert encoders["kimi-k3"].encode_conversation(k3).dropped_reasoning == 1
