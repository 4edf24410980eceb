"""Records of every shape become the tokens of the same conversation as messages."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fasttok

SAID = {"user": "What is 2 + 2?", "assistant": "4"}
MESSAGES = [{"role": role, "content": text} for role, text in SAID.items()]
SHARE_GPT = [{"from": "human", "value": SAID["user"]}, {"from": "gpt", "value": SAID["assistant"]}]
RECORDS: list[tuple[str, dict[str, Any]]] = [
    ("messages", {"messages": MESSAGES}),
    ("messages", {"messages": json.dumps(MESSAGES)}),
    ("messages", {"conversations": MESSAGES}),
    ("sharegpt", {"conversations": SHARE_GPT}),
    ("sharegpt", {"messages": SHARE_GPT}),
    ("sharegpt", {"conversations": json.dumps(SHARE_GPT), "tools": ""}),
    ("prompt_response", {"prompt": SAID["user"], "response": SAID["assistant"]}),
    ("prompt_response", {"prompt": MESSAGES[:1], "completion": MESSAGES[1:]}),
    ("prompt_response", {"question": SAID["user"], "answer": SAID["assistant"]}),
    ("instruction", {"instruction": SAID["user"], "input": "", "output": SAID["assistant"]}),
]


@pytest.fixture(scope="module")
def encoder() -> fasttok.Encoder:
    return fasttok.Encoder("kimi-k2.5")


def prepared(output: Path) -> list[list[int]]:
    lines = (output / "tokenized_data.jsonl").read_bytes().splitlines()
    return [json.loads(line)["input_ids"] for line in lines]


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize(("shape", "record"), RECORDS)
def test_a_record_of_any_shape(shape: str, record: dict[str, Any], encoder: fasttok.Encoder, tmp_path: Path) -> None:
    expected = encoder.encode_conversation(MESSAGES).input_ids.tolist()
    summary = fasttok.prepare(encoder, [write(tmp_path / "in.jsonl", record)], tmp_path / "out")
    assert prepared(tmp_path / "out") == [expected]
    assert summary["layouts"][0]["shape"] == shape


def test_each_file_has_its_own_shape(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    inputs = [write(tmp_path / f"{index}.jsonl", record, record) for index, (_, record) in enumerate(RECORDS)]
    inputs.insert(1, write(tmp_path / "empty.jsonl"))
    summary = fasttok.prepare(encoder, inputs, tmp_path / "out")
    assert summary["written"] == 2 * len(RECORDS)
    assert len(set(map(tuple, prepared(tmp_path / "out")))) == 1
    assert sum(layout["files"] for layout in summary["layouts"]) == len(inputs)


def test_alpacas_input_stands_below_the_instruction(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    record = {"instruction": "Add.", "input": "2, 2", "output": "4", "system": "s", "history": [["a", "b"]]}
    fasttok.prepare(encoder, [write(tmp_path / "in.jsonl", record)], tmp_path / "out")
    said = [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "Add.\n2, 2"), ("assistant", "4")]
    messages = [{"role": role, "content": text} for role, text in said]
    assert prepared(tmp_path / "out") == [encoder.encode_conversation(messages).input_ids.tolist()]


def test_calls_of_share_gpt_get_kimis_ids(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    turns = [
        {"from": "human", "value": "a"},
        {"from": "function_call", "value": '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": "{}"}]'},
        {"from": "observation", "value": "1"},
        {"from": "observation", "value": "2"},
        {"from": "gpt", "value": "b"},
    ]
    calls: list[dict[str, Any]] = [
        {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": {}}},
        {"id": "functions.g:1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "functions.f:0", "content": "1"},
        {"role": "tool", "tool_call_id": "functions.g:1", "content": "2"},
        {"role": "assistant", "content": "b"},
    ]
    fasttok.prepare(encoder, [write(tmp_path / "in.jsonl", {"conversations": turns})], tmp_path / "out")
    expected = encoder.encode_conversation({"messages": messages}).input_ids.tolist()
    assert prepared(tmp_path / "out") == [expected]


def test_names_may_be_given(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    record = {"prompt": "not this", "q": SAID["user"], "a": SAID["assistant"]}
    source = write(tmp_path / "in.jsonl", record)
    fasttok.prepare(encoder, [source], tmp_path / "out", fields={"prompt": "q", "response": "a"})
    assert prepared(tmp_path / "out") == [encoder.encode_conversation(MESSAGES).input_ids.tolist()]


def test_one_file_has_one_shape(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", RECORDS[0][1], RECORDS[3][1])
    with pytest.raises(fasttok.FasttokError, match="different shapes, messages and sharegpt") as raised:
        fasttok.prepare(encoder, [source], tmp_path / "out")
    assert raised.value.kind == "option"
    summary = fasttok.prepare(encoder, [source], tmp_path / "out", shape="messages")
    assert (summary["written"], summary["failed"]) == (1, {"conversation": 1})


@pytest.mark.parametrize("options", [{"shape": "chat"}, {"fields": {"chat": "messages"}}])
def test_wrong_names_are_refused(options: Any, encoder: fasttok.Encoder, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", RECORDS[0][1])
    with pytest.raises(fasttok.FasttokError, match="expected one of messages, ") as raised:
        fasttok.prepare(encoder, [source], tmp_path / "out", **options)
    assert raised.value.kind == "option"


def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fasttok", "prepare", *arguments, "--model", "kimi-k2.5"]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)


def test_the_command_says_how_it_read(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", {"question": SAID["user"], "a": SAID["assistant"]})
    done = run(source, "-o", tmp_path / "out", "--field", "response=a")
    assert done.returncode == 0, done.stderr
    assert "records were read as prompt_response: 'question' as prompt, 'a' as response\n" in done.stdout


@pytest.mark.parametrize("field", ["response", "=a", "response="])
def test_a_field_without_a_name_is_one_line(field: str, tmp_path: Path) -> None:
    done = run(write(tmp_path / "in.jsonl", RECORDS[0][1]), "-o", tmp_path / "out", "--field", field)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "expected FIELD=NAME" in done.stderr
