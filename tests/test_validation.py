"""What is odd and renders all the same: findings as Python sees them, in batches and in files.

Which oddity is found where is tested in `rust/chat/validation.rs`.
"""

import json
import pickle
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import fasttok
from fasttok import Encoder, FasttokError, types

USER = {"role": "user", "content": "u"}
ODD: list[dict[str, Any]] = [USER, {"role": "assistant", "content": "<think>r</think>a"}, {"role": "tool"}]
FOUND = [("inline_think", "messages[1].content"), ("orphan_tool_result", "messages[2]")]


def found(one: fasttok.EncodedConversation) -> list[tuple[str, str]]:
    return [(finding.code, finding.path) for finding in one.findings]


def test_findings_are_data(encoder: Encoder) -> None:
    one = encoder.encode_conversation(ODD)
    assert found(one) == FOUND
    finding = one.findings[1]
    assert str(finding) == (
        "messages[2]: no call is named, and none before this is without a result (orphan_tool_result)"
    )
    assert repr(finding).startswith("Finding('orphan_tool_result', 'messages[2]', ")
    assert pickle.loads(pickle.dumps(one)).findings == one.findings
    assert len({*one.findings, *pickle.loads(pickle.dumps(one.findings))}) == 2


def test_findings_change_no_id(encoder: Encoder) -> None:
    one, unseen = encoder.encode_conversation(ODD), encoder.encode_conversation(ODD, validate="off")
    assert np.array_equal(one.input_ids, unseen.input_ids)
    assert unseen.findings == ()


def test_strict_makes_the_first_of_them_an_error(encoder: Encoder) -> None:
    with pytest.raises(FasttokError) as raised:
        encoder.encode_batch([[USER], ODD], validate="strict")
    assert (raised.value.kind, raised.value.path) == ("validation", "conversations[1].messages[1].content")
    assert raised.value.message.endswith(" (inline_think)")
    assert len(encoder.encode_batch([[USER]], validate="strict")) == 1


def test_a_batch_counts_conversations(encoder: Encoder) -> None:
    turn = [USER, {"role": "assistant", "content": "a", "reasoning_content": "r"}]
    batch = encoder.encode_batch([ODD, [USER], [*turn, *turn, {"role": "tool"}, {"role": "tool"}]], reasoning="expand")
    assert batch.sources.tolist() == [0, 1, 2, 2]
    assert batch.finding_counts == {"orphan_tool_result": 2, "inline_think": 1}
    assert [len(row.findings) for row in batch] == [2, 0, 2, 2]
    again = pickle.loads(pickle.dumps(batch))
    assert again.finding_counts == batch.finding_counts
    assert [row.findings for row in again] == [row.findings for row in batch]


def test_findings_get_a_file_of_their_own(encoder: Encoder, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_text("".join(json.dumps({"messages": messages}) + "\n" for messages in ([USER], ODD, ODD[1:])))
    summary = fasttok.prepare(encoder, [chats], tmp_path / "out")
    assert (summary["written"], summary["findings"]) == (3, {"orphan_tool_result": 2, "inline_think": 2})
    lines = (tmp_path / "out" / "findings.jsonl").read_text().splitlines()
    places = [(line["file"], line["line"], line["code"], line["path"]) for line in map(json.loads, lines)]
    assert places[:2] == [(str(chats), 2, *place) for place in FOUND]
    assert [place[1] for place in places] == [2, 2, 3, 3]
    strict = fasttok.prepare(encoder, [chats], tmp_path / "out", validate="strict", overwrite=True)
    assert (strict["written"], strict["failed"], strict["findings"]) == (1, {"validation": 2}, {})
    assert not (tmp_path / "out" / "findings.jsonl").exists()


def test_types_list_every_code() -> None:
    documented = (Path(__file__).parent.parent / "docs" / "findings.md").read_text()
    for code in get_args(types.FindingCode):
        assert f"| `{code}` |" in documented
    source = (Path(__file__).parent.parent / "rust" / "chat" / "validation.rs").read_text()
    assert all(f'"{code}"' in source for code in get_args(types.FindingCode))


TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "f",
        "description": None,
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "string", "enum": None, "default": None}, "b": None},
        },
    },
    "strict": None,
}
BARE: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"type": "string", "default": None}}},
    },
}


def test_nulls_in_tools_count_as_absent_unless_asked_for(encoders: dict[str, Encoder]) -> None:
    for name, encoder in encoders.items():
        padded = encoder.encode_conversation([USER], tools=[TOOL])
        assert encoder.render([USER], tools=[TOOL]) == encoder.render([USER], tools=[BARE]), name
        assert np.array_equal(padded.input_ids, encoder.encode_conversation([USER], tools=[BARE]).input_ids), name
        assert found(padded) == [("null_padding", "tools[0].function.description")]
    printed = encoders["kimi-k2"].render([USER], tools=[TOOL], tool_nulls="as_reference")
    assert '"b":null' in printed and '"enum":null' in printed and '"strict":null' in printed


def test_nulls_in_tools_that_a_message_adds(encoders: dict[str, Encoder]) -> None:
    k3 = encoders["kimi-k3"]
    padded, bare = ([{"role": "system", "tools": [tool]}, USER] for tool in (TOOL, BARE))
    assert k3.render(padded) == k3.render(bare)
    assert '"strict":null' in k3.render(padded, tool_nulls="as_reference")


def test_keys_that_nothing_reads_may_hold_anything(encoder: Encoder) -> None:
    extra: dict[Any, Any] = {"at": datetime(2026, 1, 1), "raw": object(), 5: b"x", (1, 2): None}
    picture = {"type": "image_url", "image_url": {"bytes": b"...", **extra}, **extra}
    call = {"id": "functions.f:0", "function": {"name": "f", "arguments": "{}", **extra}, **extra}
    chat = [
        {"role": "user", "content": [picture, {"type": "image", "image": object()}], **extra, "thought": object()},
        {"role": "assistant", "tool_calls": [call], **extra},
        {"role": "tool", "content": "", "tool_call_id": "functions.f:0", "id": 5},
    ]
    bare = [
        {"role": "user", "content": [{"type": "image_url"}, {"type": "image"}]},
        {"role": "assistant", "tool_calls": [{"id": "functions.f:0", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "functions.f:0"},
    ]
    one = encoder.encode_conversation({"messages": chat, **extra})
    assert np.array_equal(one.input_ids, encoder.encode_conversation(bare).input_ids)
    assert one.findings == ()
    with pytest.raises(FasttokError, match=r"^messages\[0\]\.name: expected a str, .*found `datetime`$"):
        encoder.encode_conversation([{**USER, "name": extra["at"]}])
