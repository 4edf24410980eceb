"""Prepared folders: every format and target reads back as what was encoded, a run goes on where it was, `verify` finds
what is wrong, and faults end clearly.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict, load_dataset, load_from_disk

import fasttok
from fasttok.cli import main

# `datasets` is typed in part.
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

EXAMPLES = Path(__file__).parents[1] / "examples" / "trajectories.jsonl"
TARGETS = {
    "specforge": ["input_ids", "loss_mask"],
    "speculators": ["input_ids", "loss_mask", "seq_len"],
    "trl": ["input_ids", "labels"],
    "axolotl": ["input_ids", "attention_mask", "labels"],
    "llama-factory": ["input_ids", "attention_mask", "labels"],
    "verl": ["input_ids", "loss_mask"],
}
K25 = ("--model", "kimi-k2.5")


@pytest.fixture(scope="module")
def encoder() -> fasttok.Encoder:
    return fasttok.Encoder("kimi-k2.5")


@pytest.fixture(scope="module")
def encoded(encoder: fasttok.Encoder) -> list[fasttok.EncodedConversation]:
    return list(encoder.encode_batch(EXAMPLES.read_text().splitlines()))


def loaded(folder: Path, cache: Path) -> list[dict[str, Any]]:
    """The rows of a prepared folder as `datasets` reads them."""
    if (folder / "state.json").exists() or (folder / "dataset_dict.json").exists():
        dataset = load_from_disk(str(folder))
        dataset = dataset["train"] if isinstance(dataset, DatasetDict) else dataset
    else:
        kind = "parquet" if list(folder.glob("*.parquet")) else "json"
        files = sorted(str(path) for path in folder.glob("*data*.parquet" if kind == "parquet" else "*data*.jsonl"))
        dataset = load_dataset(kind, data_files=files, cache_dir=str(cache), split="train")
    assert isinstance(dataset, Dataset)
    return [dict(row) for row in dataset]


def check_rows(rows: list[dict[str, Any]], encoded: list[fasttok.EncodedConversation]) -> None:
    assert len(rows) == len(encoded)
    for row, one in zip(rows, encoded, strict=True):
        ids, mask = one.input_ids.tolist(), one.loss_mask.tolist()
        assert list(row["input_ids"]) == ids
        if "loss_mask" in row:
            assert list(row["loss_mask"]) == mask
        if "labels" in row:
            assert list(row["labels"]) == [id if trains else -100 for id, trains in zip(ids, mask, strict=True)]
        if "attention_mask" in row:
            assert list(row["attention_mask"]) == [1] * len(ids)
        if "seq_len" in row:
            assert row["seq_len"] == len(ids)


@pytest.mark.parametrize("format", ["jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("shard_size", [None, 300_000])
def test_every_format_loads_in_datasets(
    format: Any,
    shard_size: int | None,
    encoder: fasttok.Encoder,
    encoded: list[fasttok.EncodedConversation],
    tmp_path: Path,
) -> None:
    output = tmp_path / "out"
    options: Any = {"format": format, "shard_size": shard_size, "keep": ["source"]}
    summary = fasttok.prepare(encoder, [EXAMPLES], output, **options)
    assert (len(summary["files"]) > 1) == (shard_size is not None)
    rows = loaded(output, tmp_path / "cache")
    check_rows(rows, encoded)
    given = [json.loads(line) for line in EXAMPLES.read_text().splitlines()]
    assert [row["id"] for row in rows] == [record["id"] for record in given]
    found = fasttok.verify(encoder, output, against=[EXAMPLES])
    assert (found["rows"], found["problems"]) == (len(encoded), {})
    assert found["tokens"] == summary["tokens"] == sum(len(one.input_ids) for one in encoded)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_its_columns_and_no_others(
    target: Any, encoder: fasttok.Encoder, encoded: list[fasttok.EncodedConversation], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    fasttok.prepare(encoder, [EXAMPLES], output, target=target)
    if target == "speculators":
        # `datasets` gives its rows as tensors, which needs PyTorch.
        state = json.loads((output / "state.json").read_text())
        assert state["_format_type"] == "torch"
        (output / "state.json").write_text(json.dumps({**state, "_format_type": None}))
    rows = loaded(output, tmp_path / "cache")
    assert sorted(rows[0]) == sorted(TARGETS[target])
    check_rows(rows, encoded)


def test_megatron_gets_two_indexed_datasets(
    encoder: fasttok.Encoder, encoded: list[fasttok.EncodedConversation], tmp_path: Path
) -> None:
    summary = fasttok.prepare(encoder, [EXAMPLES], tmp_path / "out", target="megatron")
    assert summary["files"] == ["tokens.bin", "tokens.idx", "loss_mask.bin", "loss_mask.idx"]
    tokens = (tmp_path / "out" / "tokens.bin").read_bytes()
    assert tokens == b"".join(one.input_ids.astype("<i4").tobytes() for one in encoded)
    mask = (tmp_path / "out" / "loss_mask.bin").read_bytes()
    assert mask == b"".join(one.loss_mask.tobytes() for one in encoded)
    assert fasttok.verify(encoder, tmp_path / "out", against=[EXAMPLES])["problems"] == {}


def test_prepared_tables_are_inputs_too(
    encoder: fasttok.Encoder, encoded: list[fasttok.EncodedConversation], tmp_path: Path
) -> None:
    chats = [json.loads(line) for line in EXAMPLES.read_text().splitlines()]
    texts = ("messages", "tools")
    rows = [{"id": chat["id"], **{name: json.dumps(chat.get(name)) for name in texts}} for chat in chats]
    dataset = Dataset.from_list(rows)
    dataset.save_to_disk(str(tmp_path / "saved"))
    dataset.to_parquet(str(tmp_path / "chats.parquet"))
    for source in ("saved", "chats.parquet"):
        output = tmp_path / f"of {source}"
        assert fasttok.prepare(encoder, [tmp_path / source], output)["failed"] == {}
        check_rows(loaded(output, tmp_path / "cache"), encoded)


class EnoughError(Exception):
    pass


@pytest.mark.parametrize("format", ["jsonl", "parquet", "arrow"])
def test_a_run_goes_on_where_it_was_in_every_format(format: Any, encoder: fasttok.Encoder, tmp_path: Path) -> None:
    source = tmp_path / "chats.jsonl"
    source.write_bytes(EXAMPLES.read_bytes() * 30)
    options: Any = {"format": format, "shard_size": 4_000_000}

    def stop(records: int, *_: int) -> None:
        if records:
            raise EnoughError

    fasttok.prepare(encoder, [source], tmp_path / "undisturbed", **options)
    with pytest.raises(EnoughError):
        fasttok.prepare(encoder, [source], tmp_path / "out", progress=stop, **options)
    assert fasttok.prepare(encoder, [source], tmp_path / "out", **options)["resumed_records"] > 0
    names = sorted(path.name for path in (tmp_path / "undisturbed").iterdir())
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name


def test_a_run_that_is_killed_makes_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "chats.jsonl"
    source.write_bytes(EXAMPLES.read_bytes() * 30)
    script = Path(__file__).with_name("kill.py")
    done = subprocess.run([sys.executable, script, source, "--runs", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "every output is the undisturbed one, byte for byte" in done.stdout


def test_a_finished_folder_is_left_as_it_is(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    fasttok.prepare(encoder, [EXAMPLES], tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    assert fasttok.prepare(encoder, [EXAMPLES], tmp_path / "out")["already_done"]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before


def broken(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of a folder of JSON lines, to be changed; they are written back when all are taken."""
    path = folder / "tokenized_data.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    yield from rows
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("id", "rows with ids that the vocabulary lacks"),
        ("mask", "rows with a wrong column"),
        ("length", "rows that cannot be read"),
        ("user", "rows that train what the model did not say"),
        ("half", "rows that train what the model did not say"),
    ],
)
def test_verify_finds_what_is_wrong(name: str, what: str, encoder: fasttok.Encoder, tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello there"}]}
    source = tmp_path / "chats.jsonl"
    source.write_text(2 * (json.dumps(chat) + "\n"))
    fasttok.prepare(encoder, [source], tmp_path / "out")
    for index, row in enumerate(broken(tmp_path / "out")):
        if index != 1:
            continue
        mask = row["loss_mask"]
        if name == "id":
            row["input_ids"][0] = 200_000
        elif name == "mask":
            mask[0] = 2
        elif name == "length":
            mask.append(0)
        elif name == "user":
            mask[1] = 1
        else:
            mask[-1] = 0
    found = fasttok.verify(encoder, tmp_path / "out", against=[source])
    assert found["problems"][what] == 1
    assert found["problems"]["files that have changed"] == 1
    assert sum(found["problems"].values()) >= 3
    lines = [error.line for error in found["quoted"] if error.file and error.file.endswith("tokenized_data.jsonl")]
    assert 2 in lines


def test_the_commands_say_what_they_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out"
    assert main(["prepare", str(EXAMPLES), "-o", str(output), *K25, "--quiet"]) == 0
    assert main(["verify", str(output), "--against", str(EXAMPLES)]) == 0
    assert "no problems, and the inputs yield the same rows\n" in capsys.readouterr().out
    assert main(["stats", str(output)]) == 0
    said = capsys.readouterr().out
    assert "tool_arguments" in said and "p99" in said
    assert main(["verify", str(output), "--model", "kimi-k2.6"]) == 2
    assert 'template "kimi-k2.5", and now it is "kimi-k2.6"' in capsys.readouterr().err
    assert main(["verify", str(tmp_path)]) == 2
    assert "found no manifest.json in it" in capsys.readouterr().err
    (output / "tokenized_data.jsonl").write_text("{}\n")
    assert main(["verify", str(output)]) == 1
    assert "files that have changed: 1\n" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_statistics_are_drawn(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main(["prepare", str(EXAMPLES), "-o", str(tmp_path / "out"), *K25, "--quiet"]) == 0
    picture = tmp_path / f"lengths.{ending}"
    assert main(["stats", str(tmp_path / "out"), "--plot", str(picture)]) == 0
    assert capsys.readouterr().out.endswith(f"drawn to {picture}\n")
    assert picture.stat().st_size > 10_000
    assert main(["stats", str(tmp_path / "out"), "--plot", str(tmp_path / "lengths.pdf")]) == 2


def test_a_line_that_is_not_utf8_is_rejected_with_its_place(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    good = EXAMPLES.read_bytes().splitlines()[0]
    source = tmp_path / "chats.jsonl"
    source.write_bytes(good + b'\n{"messages": "\xff"}\n' + good + b"\n")
    summary = fasttok.prepare(encoder, [source], tmp_path / "out")
    assert (summary["written"], summary["failed"]) == (2, {"json": 1})
    (rejected,) = [json.loads(line) for line in (tmp_path / "out" / "rejected.jsonl").read_text().splitlines()]
    assert (rejected["line"], rejected["offset"], rejected["bytes"]) == (2, len(good) + 1, 17)
    assert rejected["text"] == '{"messages": "\ufffd"}'


def test_the_first_bad_line_may_end_the_run(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    source = tmp_path / "chats.jsonl"
    source.write_bytes(EXAMPLES.read_bytes() + b"{}\n")
    with pytest.raises(fasttok.FasttokError, match=r"chats\.jsonl:42: "):
        fasttok.prepare(encoder, [source], tmp_path / "out", on_error="raise")
    assert not (tmp_path / "out" / "tokenized_data.jsonl").exists()


def test_a_cut_table_is_reported(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    chats = [json.loads(line)["messages"] for line in EXAMPLES.read_text().splitlines()]
    dataset = Dataset.from_list([{"messages": json.dumps(chat)} for chat in chats])
    path = tmp_path / "chats.parquet"
    dataset.to_parquet(str(path))
    path.write_bytes(path.read_bytes()[:-100])
    summary = fasttok.prepare(encoder, [path], tmp_path / "out")
    assert (summary["written"], summary["failed"]) == (0, {"io": 1})


def test_two_runs_do_not_write_to_one_folder(encoder: fasttok.Encoder, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    with (output / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(fasttok.FasttokError, match="another run is writing to this folder"):
            fasttok.prepare(encoder, [EXAMPLES], output)
    assert fasttok.prepare(encoder, [EXAMPLES], output)["failed"] == {}
    assert not (output / ".lock").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_ends_clearly_and_the_run_goes_on_with_more_room(tmp_path: Path) -> None:
    disk, source = tmp_path / "disk", tmp_path / "chats.jsonl"
    disk.mkdir()
    source.write_bytes(EXAMPLES.read_bytes() * 10)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", disk], check=False).returncode:
        pytest.skip("this place lets nobody mount")
    try:
        command = [sys.executable, "-m", "fasttok", "prepare", source, "-o", disk / "out", *K25, "--quiet"]
        full = subprocess.run(command, capture_output=True, text=True, check=False)
        assert full.returncode == 2
        assert "No space left on device" in full.stderr and full.stderr.count("\n") == 1
        assert [path.name for path in disk.glob("out/*") if not path.name.startswith(".")] == []
        subprocess.run(["mount", "-o", "remount,size=200M", disk], check=True)
        assert subprocess.run(command, check=False).returncode == 0
        check = [sys.executable, "-m", "fasttok", "verify", disk / "out", "--against", source, "--quiet"]
        assert subprocess.run(check, check=False).returncode == 0
    finally:
        subprocess.run(["umount", disk], check=True)
