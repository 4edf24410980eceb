"""Rows with more tokens than they may have."""

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import fasttok
from fasttok import Encoder, FasttokError
from fasttok.types import Truncate

CALL = {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "u1"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "functions.f:0", "content": "result"},
    {"role": "assistant", "content": "a1"},
    {"role": "user", "content": "u2"},
    {"role": "assistant", "content": "a2"},
]


def test_what_stays_are_the_ids_of_the_full_rendering(encoders: dict[str, Encoder]) -> None:
    for encoder in encoders.values():
        full = encoder.encode_conversation(CHAT)
        ends = {span.end for span in full.spans if span.part == "end"}
        for length in range(1, len(full.input_ids) + 1):
            for truncate in ("turn", "left_turn", "token"):
                try:
                    one = encoder.encode_conversation(CHAT, max_length=length, truncate=truncate)
                except FasttokError as error:
                    assert "expected at most" in error.message and truncate != "token"
                    continue
                kept = len(one.input_ids)
                assert kept <= length and kept + one.cut_tokens == len(full.input_ids)
                assert [span.start for span in one.spans] == [0, *(span.end for span in one.spans)][:-1]
                assert one.spans[len(one.spans) - 1].end == kept == len(one.loss_mask)
                if truncate == "turn":
                    assert kept in ends
                if truncate == "left_turn":
                    roles = [span.role for span in one.spans if span.part == "header"]
                    assert one.spans[len(one.spans) - 1].part == "end"
                    assert "tool" not in roles or roles[roles.index("tool") - 1] in ("assistant", "tool")
                else:
                    assert np.array_equal(one.input_ids, full.input_ids[:kept])
                    assert np.array_equal(one.loss_mask, full.loss_mask[:kept])


def test_a_mask_is_that_of_what_is_left(encoder: Encoder) -> None:
    full = encoder.encode_conversation(CHAT)
    one = encoder.encode_conversation(CHAT, max_length=len(full.input_ids) - 1, mask="last_assistant_message")
    assert encoder.tokenizer.decode(one.input_ids[one.loss_mask == 1]) == "a1<|im_end|>"
    assert np.array_equal(one.mask("last_assistant_message"), one.loss_mask)


def test_rows_are_left_out_of_a_batch_or_refused(encoder: Encoder) -> None:
    batch = encoder.encode_batch([CHAT, CHAT[:2], CHAT], max_length=20, truncate="drop")
    assert (batch.sources.tolist(), batch.skipped) == ([1], {"longer than max_length": 2})
    with pytest.raises(FasttokError, match=r"^conversations\[0\]: expected at most 20 tokens, found \d+$"):
        encoder.encode_batch([CHAT, CHAT[:2]], max_length=20, truncate="raise")
    with pytest.raises(FasttokError, match=r"^longer than 20 tokens, and to be left out$"):
        encoder.encode_conversation(CHAT, max_length=20, truncate="drop")
    with pytest.raises(FasttokError, match=r"^max_length: expected an integer from 1 to \d+, found 0$"):
        encoder.encode_conversation(CHAT, max_length=0)


def test_prepare_counts_what_it_cuts_and_leaves_out(encoder: Encoder, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in (CHAT, CHAT[:2])))
    counts: dict[str, tuple[Any, ...]] = {}
    for truncate in get_args(Truncate):
        summary = fasttok.prepare(encoder, [chats], tmp_path / truncate, max_length=30, truncate=truncate)
        counts[truncate] = (summary["written"], summary["cut_records"], summary["skipped"], summary["failed"])
        records = (tmp_path / truncate / "tokenized_data.jsonl").read_text().splitlines()
        assert sum("cut_tokens" in json.loads(record) for record in records) == summary["cut_records"]
    assert counts == {
        "turn": (2, 1, {}, {}),
        "left_turn": (2, 1, {}, {}),
        "token": (2, 1, {}, {}),
        "drop": (1, 0, {"longer than max_length": 1}, {}),
        "raise": (1, 0, {}, {"conversation": 1}),
    }


def test_a_row_left_out_of_an_expanded_record_is_counted(encoder: Encoder, tmp_path: Path) -> None:
    turn = [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a", "reasoning_content": "r"}]
    chats = tmp_path / "chats.jsonl"
    chats.write_text(json.dumps({"messages": [*turn, *turn]}) + "\n")
    first = len(encoder.encode_batch([turn], reasoning="expand")[0].input_ids)
    summary = fasttok.prepare(encoder, [chats], tmp_path / "out", reasoning="expand", max_length=first, truncate="drop")
    assert (summary["written"], summary["rows"], summary["skipped"]) == (1, 1, {})
    assert summary["skipped_rows"] == {"longer than max_length": 1}
