"""The command line: what it writes, what it says, and how it ends."""

import contextlib
import gzip
import importlib.metadata
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard

import fasttok
from fasttok import Encoder
from fasttok.cli import main, progress
from fasttok.cli.interrupt import deferred_interrupt

EXAMPLES = (Path(__file__).parents[1] / "examples" / "trajectories.jsonl").read_bytes()
CHATS = len(EXAMPLES.splitlines())
GOOD = b'{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}\n'
BAD = b'{"messages": [{"role": "user", "content": 5}]}\n'
# What a run leaves that has nothing to report.
CLEAN = ["manifest.json", "report.json", "tokenized_data.jsonl"]
K25 = ("--model", "kimi-k2.5")
PREPARE = (sys.executable, "-m", "fasttok", "prepare")


def run(*arguments: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fasttok", *arguments]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=60, env={**os.environ, **environment}, check=False
    )


def counts(stdout: str) -> dict[str, int]:
    """The numbers of the summary by label; lines with one label are added up."""
    found: dict[str, int] = {}
    for label, number in re.findall(r"^ *([a-z]+) +([\d,]+)(?: |$)", stdout, re.MULTILINE):
        found[label] = found.get(label, 0) + int(number.replace(",", ""))
    return found


def records(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "tokenized_data.jsonl").read_bytes().splitlines()]


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    path = tmp_path / "chats.jsonl"
    path.write_bytes(EXAMPLES)
    return path


@pytest.mark.parametrize(
    ("options", "model", "switches"),
    [
        (K25, "kimi-k2.5", {}),
        (("--model", "kimi-k2.6"), "kimi-k2.6", {}),
        (("--model", "kimi-k2.5", "--template", "kimi-k2.6"), "kimi-k2.6", {}),
        (("--model", "kimi-k2.6", "--preserve-thinking"), "kimi-k2.6", {"preserve_thinking": True}),
        (("--model", "moonshotai/Kimi-K2.5", "--no-thinking"), "kimi-k2.5", {"thinking": False}),
    ],
)
def test_the_records_are_what_the_encoder_gives(
    options: tuple[str, ...],
    model: str,
    switches: dict[str, Any],
    chats: Path,
    tmp_path: Path,
    encoders: dict[str, Encoder],
) -> None:
    done = run("prepare", chats, "-o", tmp_path / "out", *options)
    assert (done.returncode, done.stderr) == (0, "")
    expected: list[dict[str, Any]] = []
    for line in EXAMPLES.splitlines():
        chat = json.loads(line)
        one = encoders[model].encode_conversation(chat["messages"], tools=chat.get("tools"), **switches)
        expected.append({"id": chat["id"], "input_ids": one.input_ids.tolist(), "loss_mask": one.loss_mask.tolist()})
    assert records(tmp_path / "out") == expected
    tokens = sum(len(record["input_ids"]) for record in expected)
    trained = sum(sum(record["loss_mask"]) for record in expected)
    said = counts(done.stdout)
    assert (said["records"], said["written"], said["tokens"], said["trained"]) == (
        len(expected),
        len(expected),
        tokens,
        trained,
    )
    assert f"{trained / tokens:.1%}" in done.stdout


@pytest.mark.parametrize(
    "content",
    [
        EXAMPLES,
        gzip.compress(EXAMPLES),
        zstandard.compress(EXAMPLES),
        b"\xef\xbb\xbf" + EXAMPLES.replace(b"\n", b"\r\n"),
        EXAMPLES.rstrip(b"\n"),
    ],
    ids=["plain", "gzip", "zstd", "bom-crlf", "no-last-line-end"],
)
def test_the_same_chats_give_the_same_bytes(content: bytes, chats: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(content)
    for path, threads in ((chats, "1"), (other, "2")):
        assert run("prepare", path, "-o", tmp_path / threads, *K25, "--threads", threads).returncode == 0
    written = [(tmp_path / threads / "tokenized_data.jsonl").read_bytes() for threads in "12"]
    assert written[0].count(b"\n") == CHATS
    assert written[0] == written[1]


def test_several_inputs_follow_each_other(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(GOOD.replace(b'{"m', b'{"id": "' + name.encode() + b'", "m'))
    done = run("prepare", tmp_path / "b.jsonl", tmp_path / "a.jsonl", "-o", tmp_path / "out", *K25)
    assert done.returncode == 0
    assert [record["id"] for record in records(tmp_path / "out")] == ["b", "a"]


def test_every_line_is_accounted_for(tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_bytes(b"\n" + GOOD + BAD + b"  \n" + b"not json\n" + GOOD + b"[]\n")
    output = tmp_path / "out"
    done = run("prepare", mixed, "-o", output, *K25)
    assert (done.returncode, done.stderr) == (1, "")
    said = counts(done.stdout)
    assert [said[label] for label in ("records", "written", "skipped", "failed")] == [7, 2, 2, 3]
    assert re.search(r"skipped +2 +blank line", done.stdout)
    assert re.search(r"failed +2 +cannot be rendered", done.stdout)
    assert re.search(r"failed +1 +not JSON", done.stdout)
    assert f"{mixed}:3: messages[0].content: expected a string" in done.stdout
    assert f"3 failed in all: see {output / 'rejected.jsonl'}\n" in done.stdout
    assert done.stdout.endswith(f"written to {output / 'tokenized_data.jsonl'}\n")

    rejected = [json.loads(line) for line in (output / "rejected.jsonl").read_text().splitlines()]
    places = [(one["file"], one["line"], one["path"], one["code"]) for one in rejected]
    assert places == [
        (str(mixed), 3, "messages[0].content", "conversation"),
        (str(mixed), 5, "", "json"),
        (str(mixed), 7, "", "conversation"),
    ]
    text = mixed.read_bytes()
    for one in rejected:
        held = text[one["offset"] :].split(b"\n", 1)[0]
        assert (one["text"], one["bytes"]) == (held.decode(), len(held))
    assert len(records(output)) == 2


def test_a_clean_run_replaces_the_report_of_a_bad_one(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_bytes(BAD)
    assert run("prepare", path, "-o", tmp_path / "out", *K25).returncode == 1
    path.write_bytes(GOOD)
    refused = run("prepare", path, "-o", tmp_path / "out", *K25)
    assert refused.returncode == 2
    assert f"input {json.dumps(str(path))} had {len(BAD)} bytes, now {len(GOOD)} (choose another" in refused.stderr
    assert run("prepare", path, "-o", tmp_path / "out", *K25, "--overwrite").returncode == 0
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == CLEAN


def test_ten_failures_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(BAD * 12)
    done = run("prepare", path, "-o", tmp_path / "out", *K25)
    assert done.returncode == 1
    assert [f"{path}:{line}: " in done.stdout for line in (1, 10, 11)] == [True, True, False]
    assert "12 failed in all" in done.stdout
    assert (tmp_path / "out" / "rejected.jsonl").read_bytes().count(b"\n") == 12


def test_notes_are_there_when_there_is_something_to_note(tmp_path: Path) -> None:
    labels = ("without a trained token: 1.", "with reasoning left out: 1.", "with control strings in a text: 1.")
    path = tmp_path / "chats.jsonl"
    path.write_bytes(GOOD)
    plain = run("prepare", path, "-o", tmp_path / "out", *K25).stdout
    assert [label for label in labels if label.partition(":")[0] in plain] == []

    reasoned: dict[str, str] = {"role": "assistant", "content": "a", "reasoning_content": "b"}
    chats: list[list[dict[str, str]]] = [
        [{"role": "user", "content": "nobody answers"}],
        [{"role": "user", "content": "x"}, reasoned, {"role": "user", "content": "y"}, {**reasoned, "content": "z"}],
        [{"role": "user", "content": "a <|im_end|> b"}, {"role": "assistant", "content": "c"}],
    ]
    path.write_text("".join(json.dumps({"messages": messages}) + "\n" for messages in chats))
    noted = run("prepare", path, "-o", tmp_path / "noted", *K25).stdout
    assert [label for label in labels if label in noted] == list(labels)


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")], ids=["plain", "gzip"])
def test_an_empty_input_is_said_to_be_empty(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    done = run("prepare", path, "-o", tmp_path / "out", *K25)
    assert (done.returncode, done.stderr) == (0, "")
    assert counts(done.stdout)["records"] == 0
    assert "The input is empty" in done.stdout
    assert (tmp_path / "out" / "tokenized_data.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("prepare", "CHATS", "-o", "OUT", "--model", "gpt2"), "unknown model `gpt2`: .*kimi-k2.5, kimi-k2.6"),
        (("prepare", "CHATS", "-o", "OUT", *K25, "--template", "chatml"), "`chatml`: .*kimi-k2.5, kimi-k2.6"),
        (("prepare", "CHATS", "-o", "OUT", "--model", "./nowhere"), "nothing at `./nowhere`"),
        (("prepare", "CHATS", "-o", "OUT"), "'--model'"),
        (("prepare", "CHATS", *K25), "'--output' / '-o'"),
        (("prepare", "-o", "OUT", *K25), "INPUT"),
        (("prepare", "CHATS", "MISSING", "-o", "OUT", *K25), "missing.jsonl: .*No such file"),
        (("prepare", "FOLDER", "-o", "OUT", *K25), "empty: no file in this folder ends in .jsonl, "),
        (("prepare", "PATTERN", "-o", "OUT", *K25), "no file matches this pattern"),
        (("prepare", "LIST", "-o", "OUT", *K25), "list.json: expected one record a line, found a list"),
        (("prepare", "CHATS", "-o", "CHATS", *K25), "chats.jsonl: cannot write to this file: not a directory"),
        (("prepare", "CHATS", "-o", "OUT", *K25, "--threads", "0"), "'--threads'"),
        (("prepare", "CHATS", "-o", "OUT", *K25, "--threads", "two"), "'--threads'"),
        (("prepare", "CHATS", "-o", "OUT", *K25, "--theads", "2"), "--theads"),
        (("prepare", "CHATS", "CHATS", "-o", "OUT", *K25), "chats.jsonl: this input is given twice"),
        (("prepare", "CHATS", "LINK", "-o", "OUT", *K25), "link.jsonl: this input is given twice"),
        (("prepare", "CHATS", "-o", "", *K25), "expected a folder, found an empty name"),
        (
            ("prepare", "CHATS", "-o", "OUT", *K25, "--max-length", str(2**70)),
            "max_length: expected an integer from ",
        ),
        (("pepare",), "pepare"),
    ],
)
def test_a_failure_is_one_line(
    arguments: tuple[str, ...], expected: str, chats: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link.jsonl").symlink_to(chats)
    (tmp_path / "list.json").write_bytes(b"[\n  " + GOOD + b"]\n")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.iterdir())
    paths = {
        "CHATS": chats,
        "LINK": tmp_path / "link.jsonl",
        "MISSING": tmp_path / "missing.jsonl",
        "FOLDER": tmp_path / "empty",
        "PATTERN": tmp_path / "*.parquet",
        "LIST": tmp_path / "list.json",
        "OUT": tmp_path / "out",
    }
    assert main([str(paths.get(argument, argument)) for argument in arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(rf"error: .*{expected}.*\n", said.err)
    assert sorted(tmp_path.iterdir()) == before


def test_standard_input_is_a_dash(chats: Path, tmp_path: Path) -> None:
    command = [*PREPARE, "-", "-o", str(tmp_path / "out"), *K25]
    done = subprocess.run(command, input=EXAMPLES + BAD, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert f"-:{CHATS + 1}: messages[0].content".encode() in done.stdout
    assert run("prepare", chats, "-o", tmp_path / "file", *K25).returncode == 0
    assert records(tmp_path / "out") == records(tmp_path / "file")


def test_a_folder_is_its_files_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "more").mkdir(parents=True)
    for name, said in [("b.jsonl", b"b"), ("a.jsonl", b"a"), ("more/c.jsonl", b"c"), ("note.txt", b"d")]:
        (folder / name).write_bytes(GOOD.replace(b"hi", said))
    assert run("prepare", folder, "-o", tmp_path / "out", *K25).returncode == 0
    expected = [
        Encoder("kimi-k2.5").encode_conversation(GOOD.replace(b"hi", said).decode()) for said in (b"a", b"b", b"c")
    ]
    assert [record["input_ids"] for record in records(tmp_path / "out")] == [row.input_ids.tolist() for row in expected]
    assert run("prepare", folder / "*.jsonl", "-o", tmp_path / "matched", *K25).returncode == 0
    assert len(records(tmp_path / "matched")) == 2


@pytest.mark.parametrize("name", ["tokenized_data.jsonl", "rejected.jsonl"])
def test_an_input_is_never_also_the_output(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(GOOD)
    done = run("prepare", tmp_path / name, "-o", tmp_path / "." / "", *K25)
    assert done.returncode == 2
    assert "this input is also an output" in done.stderr
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [GOOD]


def test_an_output_that_cannot_be_written(chats: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "tokenized_data.jsonl").mkdir(parents=True)
    done = run("prepare", chats, "-o", tmp_path / "out", *K25)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: .*tokenized_data\.jsonl: this file is there already, .*\n", done.stderr)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["tokenized_data.jsonl"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_summary_that_cannot_be_printed_loses_no_record(chats: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [*PREPARE, chats, "-o", tmp_path / "out", *K25]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0
    assert re.fullmatch(r"error: the records are written, but the summary cannot be: .*\n", done.stderr)
    assert (tmp_path / "out" / "tokenized_data.jsonl").read_text().count("\n") == chats.read_text().count("\n")


def test_the_number_of_threads_is_passed_on(chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, given = fasttok.prepare, list[int | None]()

    def noting(*arguments: Any, num_threads: int | None, **options: Any) -> Any:
        given.append(num_threads)
        return prepare(*arguments, num_threads=num_threads, **options)

    monkeypatch.setattr(fasttok, "prepare", noting)
    command = ["prepare", str(chats), "-o", str(tmp_path / "out"), *K25, "-q"]
    assert [main(command), main([*command, "--threads", "2"])] == [0, 0]
    assert given == [None, 2]


def test_quiet_prints_nothing(chats: Path, tmp_path: Path) -> None:
    done = run("prepare", chats, "-o", tmp_path / "out", *K25, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(records(tmp_path / "out")) == CHATS


def test_quiet_prints_errors(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(GOOD + BAD)
    done = run("prepare", path, "-o", tmp_path / "out", *K25, "-q")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: 1 of 2 records failed: see {tmp_path / 'out' / 'rejected.jsonl'}\n"


def test_markup_and_control_codes_in_paths_are_text(tmp_path: Path) -> None:
    # As markup, the slash between the two names would close a tag that was never opened.
    path = tmp_path / "a[red]b[" / "nothing]\x1b[31m\n.jsonl"
    path.parent.mkdir()
    path.write_bytes(BAD)
    output = tmp_path / "[bold]out:smile:"
    done = run("prepare", path, "-o", output, *K25)
    assert done.returncode == 1
    assert r"a[red]b[/nothing]\x1b[31m\n.jsonl:1: messages[0].content: " in done.stdout
    assert f"written to {output}/tokenized_data.jsonl\n" in done.stdout
    assert "\x1b" not in done.stdout

    path.unlink()
    failed = run("prepare", path, "-o", output, *K25)
    assert re.fullmatch(r"error: .*\[red\]b\[/nothing\]\\x1b\[31m\\n\.jsonl: .*\n", failed.stderr)


def test_a_narrow_character_set_loses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_bytes(GOOD)
    done = run("prepare", path, "-o", tmp_path / "préparé", *K25, PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("pr\\xe9par\\xe9/tokenized_data.jsonl\n")


def test_a_reader_that_goes_away_changes_nothing(chats: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [*PREPARE, chats, "-o", tmp_path / "out", *K25]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(records(tmp_path / "out")) == CHATS


@pytest.mark.usefixtures("heeded_ctrl_c")
def test_a_run_stopped_by_ctrl_c_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl.gz"
    path.write_bytes(gzip.compress(EXAMPLES, 1) * 200)
    output = tmp_path / "out"
    command = [*PREPARE, path, "-o", output, *K25]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        deadline = time.monotonic() + 30
        while not any(file.stat().st_size for file in output.glob(".*.partial")):
            assert time.monotonic() < deadline and job.poll() is None
            time.sleep(0.01)
        job.send_signal(signal.SIGINT)
        said = job.communicate(timeout=30)
    assert (job.returncode, *said) == (130, b"", b"stopped; the same command goes on from here\n")
    assert sorted(file.name for file in output.iterdir()) == [
        ".findings.jsonl.partial",
        ".manifest.unfinished.json",
        ".tokenized_data.jsonl.partial",
    ]
    assert "going on after " in run("prepare", path, "-o", output, *K25).stdout
    undisturbed = tmp_path / "undisturbed"
    assert run("prepare", path, "-o", undisturbed, *K25).returncode == 0
    assert sorted(file.name for file in output.iterdir()) == sorted([*CLEAN, "findings.jsonl"])
    for path in output.iterdir():
        assert path.read_bytes() == (undisturbed / path.name).read_bytes()


@pytest.mark.usefixtures("heeded_ctrl_c")
def test_ctrl_c_reaches_a_job_that_waits_for_its_input(tmp_path: Path) -> None:
    pipe, output = tmp_path / "pipe", tmp_path / "out"
    os.mkfifo(pipe)
    command = [*PREPARE, pipe, "-o", output, *K25]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job, pipe.open("wb") as writer:
        writer.write(b"{")
        writer.flush()
        deadline = time.monotonic() + 30
        while not (output / ".lock").exists():
            assert time.monotonic() < deadline and job.poll() is None
            time.sleep(0.01)
        job.send_signal(signal.SIGINT)
        said = job.communicate(timeout=30)
    assert (job.returncode, *said) == (130, b"", b"stopped; the same command goes on from here\n")
    assert not output.exists()


@pytest.mark.usefixtures("heeded_ctrl_c")
def test_ctrl_c_takes_effect_where_it_is_asked_for() -> None:
    before = signal.getsignal(signal.SIGINT)
    with deferred_interrupt() as check:
        check()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            check()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_background_job_stays_deaf_to_ctrl_c() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_interrupt() as check:
            signal.raise_signal(signal.SIGINT)
            check()
    finally:
        signal.signal(signal.SIGINT, before)


def run_on_terminal(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit status, standard output, and what a terminal as standard error shows, without its codes."""
    terminal, stderr = pty.openpty()
    command = [sys.executable, "-m", "fasttok", *arguments]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    shown = b""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment) as job:
        os.close(stderr)
        # Linux reports that the other side has closed as an error.
        with contextlib.suppress(OSError):
            while block := os.read(terminal, 65536):
                shown += block
        os.close(terminal)
        stdout = job.communicate(timeout=60)[0].decode()
    return job.returncode, stdout, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_terminal_gets_a_bar(chats: Path, tmp_path: Path) -> None:
    status, stdout, shown = run_on_terminal("prepare", chats, "-o", tmp_path / "out", *K25)
    assert status == 0
    assert re.search(rf"100% {CHATS} records +\d+\.\d M tokens/s \d:\d\d:\d\d left", shown)
    assert counts(stdout)["records"] == CHATS


def test_a_terminal_gets_nothing_with_quiet(chats: Path, tmp_path: Path) -> None:
    assert run_on_terminal("prepare", chats, "-o", tmp_path / "out", *K25, "--quiet") == (0, "", "")


def test_elsewhere_progress_is_lines(
    chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["prepare", str(chats), "-o", str(tmp_path / "out"), *K25]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    assert main([*command, "--overwrite"]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(rf"{CHATS} records, \d+\.\d M tokens/s, 100%, 0:00:00 left", last)


def test_progress_lines_keep_their_distance(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The start, and one for each report.
    clock = iter([100.0, 105.0, 111.0, 120.0, 121.0, 140.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    report = progress.lines()
    for _ in range(4):
        report(1000, 0, 22_000_000, 25, 100)
    # The size of a pipe is not known beforehand.
    report(2000, 3, 40_000_000, 50, 0)
    assert capsys.readouterr().err.splitlines() == [
        "1,000 records, 2.0 M tokens/s, 25%, 0:00:33 left",
        "1,000 records, 1.0 M tokens/s, 25%, 0:01:03 left",
        "2,000 records, 1.0 M tokens/s, 3 rejected",
    ]


def test_help_is_what_one_gets_without_a_command() -> None:
    bare = run()
    assert (bare.returncode, bare.stderr) == (0, "")
    assert bare.stdout == run("--help").stdout
    assert "fasttok prepare chats.jsonl -o tokens --model kimi-k2.5" in bare.stdout


def test_the_example_in_the_help_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"Example:\n +fasttok (.+)\n", run("prepare", "--help", COLUMNS="100").stdout)
    assert example
    monkeypatch.chdir(tmp_path)
    Path("chats.jsonl").write_bytes(GOOD)
    Path("more.jsonl.gz").write_bytes(gzip.compress(GOOD))
    assert main(example[1].split()) == 0
    assert len(records(Path("tokens"))) == 2


def test_the_version_is_that_of_the_package() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fasttok {fasttok.__version__}\n", "")


def test_the_command_is_installed_under_its_name() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="fasttok")
    assert script.load() is main
