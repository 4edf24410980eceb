"""Measures the targets of speed and prints them as a table, each beside what it should be.

python benches/targets.py --trajectories chats.jsonl.zst
"""

import gzip
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import measurements
import typer
from measurements import Job, Measured
from peers import installed
from rich.console import Console
from rich.table import Table
from timing import MeasurementError

import fasttok
from fasttok.cli.output import counted, visible, write
from fasttok.cli.run import INTERRUPTED, run

EXAMPLES = Path(__file__).parents[1] / "examples" / "trajectories.jsonl"


@dataclass(frozen=True)
class Target:
    name: str
    what: str
    at_least: str
    """With the unit, as it is printed; the number in it is what counts."""
    aim: str
    form: str
    """How a measured value is printed."""
    measure: Callable[[Job], Measured]
    less_is_better: bool = False

    def verdict(self, value: float) -> str:
        """`aim` if it is reached, `met` if the least is, else `missed`."""
        sign = -1 if self.less_is_better else 1
        for bound, verdict in ((self.aim, "aim"), (self.at_least, "met")):
            if sign * value >= sign * number(bound):
                return verdict
        return "missed"


def number(bound: str) -> float:
    """
    >>> number("≤ 2.2 × the time"), number("5,000 ×")
    (2.2, 5000.0)
    """
    found = re.search(r"\d[\d,.]*", bound)
    assert found is not None, bound
    return float(found[0].replace(",", ""))


TARGETS = (
    Target(
        "first_pass",
        "`encode_batch` from dicts, 1 thread, first pass, against gigatoken `encode_batch` over the rendered "
        "conversations as bytes, `parallel=False`, first pass",
        "1.2 ×",
        "2.0 ×",
        "{:.2f} ×",
        measurements.first_pass,
    ),
    Target("warm", "the same, warm against warm", "1.0 ×", "1.5 ×", "{:.2f} ×", measurements.warm),
    Target("two_threads", "2 threads against 1", "1.8 ×", "1.95 ×", "{:.2f} ×", measurements.two_threads),
    Target(
        "one_conversation",
        "one 10 MB conversation, 2 threads against 1",
        "1.6 ×",
        "1.9 ×",
        "{:.2f} ×",
        measurements.one_conversation,
    ),
    Target(
        "hf_conversation",
        "against one HF call (fast tokenizer) per conversation",
        "150 ×",
        "300 ×",
        "{:,.0f} ×",
        measurements.huggingface_conversation,
    ),
    Target(
        "hf_message",
        "against HF per message, 85-message conversation",
        "5,000 ×",
        "15,000 ×",
        "{:,.0f} ×",
        measurements.huggingface_message,
    ),
    Target(
        "jsonl",
        "JSONL bytes → ids and mask, against dicts → ids and mask",
        "1.0 ×",
        "1.3 ×",
        "{:.2f} ×",
        measurements.jsonl,
    ),
    Target(
        "prepare",
        "`fasttok prepare` whole process on the conversations ×10, against in-memory encode of the same",
        "0.5 ×",
        "0.8 ×",
        "{:.2f} ×",
        measurements.prepare,
    ),
    Target(
        "messages",
        "time at 8,192 messages over time at 1,024",
        "≤ 8.4",
        "8.0",
        "{:.2f}",
        measurements.messages,
        less_is_better=True,
    ),
    Target(
        "hostile",
        "hostile text (1 MB each: one letter, spaces, base64, random bytes as text, Han, emoji, digits): slowest",
        "10 MB/s",
        "30 MB/s",
        "{:.1f} MB/s",
        measurements.hostile,
    ),
    Target(
        "hostile_twice",
        "twice the hostile text",
        "≤ 2.2 × the time",
        "2.0 ×",
        "{:.2f} ×",
        measurements.hostile_twice,
        less_is_better=True,
    ),
    Target(
        "start",
        '`import fasttok` + `Encoder("kimi-k2.5")`, fresh process, over `python -c "import numpy"`',
        "+80 ms",
        "+25 ms",
        "{:+.0f} ms",
        measurements.start,
        less_is_better=True,
    ),
    Target(
        "memory",
        "resident memory of that process over numpy's",
        "+60 MB",
        "+25 MB",
        "{:+.0f} MB",
        measurements.memory,
        less_is_better=True,
    ),
)


def chosen(names: str | None) -> list[Target]:
    if names is None:
        return list(TARGETS)
    wanted = [name.strip() for name in names.split(",")]
    known = [target.name for target in TARGETS]
    for name in wanted:
        if name not in known:
            raise typer.BadParameter(f"expected names out of {', '.join(known)}, found {name!r}")
    return [target for target in TARGETS if target.name in wanted]


def existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise typer.BadParameter(f"expected a file, found nothing at {name!r}")
    return path


def writable(name: str) -> Path:
    """Seen before the clock starts: rows take minutes."""
    path = Path(name)
    if path.is_dir() or not path.parent.is_dir():
        raise typer.BadParameter(f"expected a file in a folder that is there, found {name!r}")
    return path


def conversation_lines(path: Path) -> list[bytes]:
    """The lines that are not blank, unpacked if the name ends in .gz or .zst."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    elif path.suffix == ".zst":
        content = installed("zstandard").ZstdDecompressor().stream_reader(content).read()
    lines = [line for line in content.splitlines() if line.strip()]
    if not lines:
        raise MeasurementError(f"{path}: expected conversations, found none")
    for index, line in enumerate(lines):
        try:
            json.loads(line)
        except ValueError as error:
            raise MeasurementError(f"{path}: conversation {index + 1}: expected JSON: {error}") from None
    return lines


def row(cells: tuple[str, str, str, str, str], style: str = "") -> Table:
    """A table of one row, whose columns are as wide as those of any other: rows are printed as they become known."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
    table.add_column(ratio=1)
    for width in (28, 17, 9):
        table.add_column(width=width, justify="right")
    table.add_column(width=12, style=style)
    table.add_row(*cells)
    return table


STYLES = {"aim": "bold green", "met": "green", "missed": "red"}


def show(console: Console, target: Target, measured: Measured) -> dict[str, Any]:
    """Prints the row of a target and returns it for JSON."""
    median, low, high = statistics.median(measured.values), min(measured.values), max(measured.values)
    verdict = target.verdict(median)
    shown, *spread = (target.form.format(value) for value in (median, low, high))
    figures = f"{shown} ({spread[0].split()[0]} to {spread[1].split()[0]})"
    console.print(row((target.what, figures, target.at_least, target.aim, verdict), STYLES[verdict]))
    for note in measured.notes:
        console.print(f"    {visible(note)}", style="dim", soft_wrap=True)
    return {
        "name": target.name,
        "what": target.what,
        "at_least": target.at_least,
        "aim": target.aim,
        "median": median,
        "values": measured.values,
        "verdict": verdict,
        "notes": measured.notes,
    }


def show_unmeasured(console: Console, target: Target, reason: str) -> dict[str, Any]:
    console.print(row((target.what, "", target.at_least, target.aim, "not measured"), "yellow"))
    console.print(f"    {visible(reason)}", style="dim", soft_wrap=True)
    return {"name": target.name, "what": target.what, "verdict": "not measured", "notes": [reason]}


def machine() -> dict[str, Any]:
    """What a figure is worth nothing without."""
    versions: dict[str, str] = {"fasttok": fasttok.__version__, "python": platform.python_version()}
    for package in ("numpy", "gigatoken", "transformers", "tokenizers"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"machine": platform.machine(), "system": platform.platform(), "cores": os.cpu_count(), "versions": versions}


def load_of_machine() -> float | None:
    """How many processes wanted a core in the last minute; None where the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def targets(
    trajectories: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            parser=existing,
            show_default=False,
            help="Conversations: JSONL, plain, .gz or .zst; by default the examples.",
        ),
    ] = EXAMPLES,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="How often each row is measured.")] = 5,
    only: Annotated[
        str | None, typer.Option(metavar="NAME,…", help=f"Some rows: {', '.join(one.name for one in TARGETS)}.")
    ] = None,
    json_output: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", parser=writable, help="A file to write the table to.")
    ] = None,
) -> None:
    """Measure the targets of speed, and print each beside what it should be.

    Medians, the least and the most of all rounds.

    \b
    Exit status:
      0    every row is measured; a target that is missed is no error
      1    some row could not be measured
      2    it failed: a bad option, a file that cannot be read or written
      130  stopped with Ctrl-C
    """
    wanted = chosen(only)
    started = time.monotonic()
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = 140
    lines = conversation_lines(trajectories)
    console.print(
        f"{len(lines):,} conversations, {sum(map(len, lines)) / 1e6:,.1f} MB of JSONL, {measurements.MODEL}, "
        f"medians of {counted(rounds, 'round')} (least to most), {os.cpu_count()} cores",
        soft_wrap=True,
    )
    load = load_of_machine()
    if load is not None and load >= 0.5:
        console.print(
            f"This machine is not idle (load {load:.1f} in the last minute), so the figures are worth little.",
            soft_wrap=True,
        )
    if trajectories.resolve() == EXAMPLES.resolve():
        console.print(
            "These are the examples. The targets are meant for hundreds of long trajectories: --trajectories FILE",
            soft_wrap=True,
        )
    console.print()
    console.print(row(("what", "measured", "at least", "aim", "")))
    rows: list[dict[str, Any]] = []
    unmeasured = 0
    with tempfile.TemporaryDirectory(prefix="fasttok-targets-") as folder:
        job = Job(Path(folder) / "trajectories.jsonl", rounds, Path(folder))
        job.trajectories.write_bytes(b"".join(line + b"\n" for line in lines))
        for target in wanted:
            try:
                with console.status(f"measuring {target.name}"):
                    measured = target.measure(job)
            except MeasurementError as reason:
                rows.append(show_unmeasured(console, target, str(reason)))
                unmeasured += 1
            else:
                rows.append(show(console, target, measured))
    reached = sum(one["verdict"] in ("aim", "met") for one in rows)
    console.print()
    console.print(f"{reached} of {len(rows)} targets met, in {time.monotonic() - started:,.0f} s")
    if json_output is not None:
        report = {**machine(), "load": load, "conversations": len(lines), "rounds": rounds, "targets": rows}
        json_output.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if unmeasured:
        raise typer.Exit(1)


def main() -> int:
    status = run(app, "benches/targets.py", failures=(MeasurementError, fasttok.FasttokError))
    if status == INTERRUPTED:
        write(sys.stderr, "stopped\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
