"""What `targets.py` makes of its measurements; that the rows can be measured, `.ci/run` shows."""

import io
import os
from pathlib import Path

import pytest
import typer
from measurements import Measured, worst_kind
from peers import installed
from rich.console import Console
from targets import TARGETS, chosen, main, number, show, show_unmeasured
from timing import MeasurementError, in_fresh_process, in_turns, ratios

BY_NAME = {target.name: target for target in TARGETS}


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("first_pass", 1.19, "missed"),
        ("first_pass", 1.2, "met"),
        ("first_pass", 2.0, "aim"),
        ("messages", 8.0, "aim"),
        ("messages", 8.4, "met"),
        ("messages", 8.41, "missed"),
        ("start", -3, "aim"),
        ("start", 81, "missed"),
    ],
)
def test_a_bound_itself_counts_as_reached(name: str, value: float, verdict: str) -> None:
    assert BY_NAME[name].verdict(value) == verdict


def test_aims_are_harder_than_what_is_asked_at_least() -> None:
    for target in TARGETS:
        assert target.verdict(number(target.aim)) == "aim"
        assert target.verdict(number(target.at_least)) == "met"


def test_a_row_is_plain_text_where_nobody_looks() -> None:
    console = Console(file=io.StringIO(), width=140, markup=False, emoji=False, highlight=False)
    report = show(console, BY_NAME["hf_message"], Measured([5100.4, 4000.0, 20000.0], ["a note"]))
    show_unmeasured(console, BY_NAME["hf_conversation"], "transformers is not installed")
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for part in ("5,100 × (4,000 to 20,000)", "5,000 ×", "15,000 ×  met", "\n    a note\n", "not measured"):
        assert part in shown
    assert "\x1b" not in shown
    assert (report["median"], report["verdict"]) == (5100.4, "met")


def test_rows_come_in_the_order_of_the_table() -> None:
    assert [target.name for target in chosen("memory, warm")] == ["warm", "memory"]
    with pytest.raises(typer.BadParameter, match=r"expected names out of first_pass, .*found 'wram'"):
        chosen("wram")


@pytest.mark.parametrize("arguments", [["--trajectories", "missing.jsonl"], ["--only", "wram"], ["--rounds", "0"]])
def test_a_wrong_option_is_one_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["targets.py", *arguments])
    assert main() == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_who_is_first_changes() -> None:
    calls: list[str] = []

    def timer(name: str, took: float) -> float:
        calls.append(name)
        return took

    times = list(in_turns(3, lambda: timer("a", 2.0), lambda: timer("b", 3.0)))
    assert calls == ["a", "b", "b", "a", "a", "b"]
    assert ratios(times) == [1.5, 1.5, 1.5]


def test_the_worst_kind_is_that_of_the_worst_median() -> None:
    values = {"slow": [1.0, 2.0, 9.0], "fast": [5.0, 5.0, 5.0]}
    assert worst_kind(values, min, "{:.0f}") == ([1.0, 2.0, 9.0], ["slow 2, fast 5"])


def test_a_fresh_process_answers_fails_and_dies() -> None:
    assert in_fresh_process(os.getpid) != os.getpid()
    with pytest.raises(MeasurementError, match="no_such_package is not installed: pip install no_such_package"):
        in_fresh_process(installed, "no_such_package")
    with pytest.raises(FileNotFoundError):
        in_fresh_process(Path("missing").read_bytes)
    with pytest.raises(MeasurementError, match="ended with status 3"):
        in_fresh_process(os._exit, 3)
