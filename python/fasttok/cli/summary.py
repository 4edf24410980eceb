"""The account of a finished job."""

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fasttok._core import FINDINGS_FILE, REJECTED_FILE
from fasttok.cli.output import visible, write
from fasttok.types import PrepareSummary

REASONS = {
    "conversation": "cannot be rendered, or refused by an option",
    "validation": "odd, and --validate is strict",
    "io": "file could not be read on from here",
    "json": "not JSON",
}


def failed_records(summary: PrepareSummary) -> int:
    return sum(summary["failed"].values())


def print_summary(summary: PrepareSummary, output: Path, seconds: float) -> None:
    console = Console(markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(counts(summary, seconds))
        for paragraph in (
            layouts(summary),
            notes(summary),
            findings(summary, output),
            failures(summary, output),
            [where(summary, output)],
        ):
            if paragraph:
                console.print()
            for line in paragraph:
                # A path or a place that is cut into lines cannot be copied.
                console.print(visible(line), soft_wrap=True)
    write(sys.stdout, capture.get())


def counts(summary: PrepareSummary, seconds: float) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column(style="dim")
    table.add_row("records", f"{summary['records']:,}")
    table.add_row("  written", f"{summary['written']:,}", style="green")
    if summary["rows"] != summary["written"]:
        table.add_row("  rows", f"{summary['rows']:,}", "reasoning expanded")
    for reason, count in summary["skipped_rows"].items():
        table.add_row("  left out", f"{count:,}", f"rows of these: {reason}", style="yellow")
    for reason, count in summary["skipped"].items():
        table.add_row("  skipped", f"{count:,}", reason, style="yellow")
    for kind, count in summary["failed"].items():
        table.add_row("  failed", f"{count:,}", REASONS.get(kind, kind), style="red")
    tokens, trained = summary["tokens"], summary["trained_tokens"]
    table.add_row("tokens", f"{tokens:,}")
    table.add_row("  trained", f"{trained:,}", f"{trained / tokens:.1%}" if tokens else "")
    lengths = summary["lengths"]
    for name, length, what in (
        ("p50", lengths["p50"], "tokens in a row: half of the rows have no more"),
        ("p90", lengths["p90"], "nine in ten"),
        ("p99", lengths["p99"], "99 in 100"),
        ("max", lengths["max"], "the longest"),
    ):
        if length is not None:
            table.add_row(f"  {name}", f"{length:,}", what)
    table.add_row("time", f"{seconds:,.1f} s", begun(summary))
    return table


def begun(summary: PrepareSummary) -> str:
    if summary["already_done"]:
        return "it was done already"
    done = summary["resumed_records"]
    return f"going on after {done:,} records of a run that was stopped" if done else ""


def where(summary: PrepareSummary, output: Path) -> str:
    files = summary["files"]
    if len(files) == 1:
        return f"written to {output / files[0]}"
    return f"written to {output}: {len(files):,} files, {files[0]} to {files[-1]}"


def layouts(summary: PrepareSummary) -> list[str]:
    """How the records were read, if not all of them as messages under their usual names."""
    if all(layout["shape"] == "messages" and not layout["fields"] for layout in summary["layouts"]):
        return []
    lines: list[str] = []
    for layout in summary["layouts"]:
        names = [f"{name!r} as {field}" for field, name in layout["fields"].items()]
        files = f" ({layout['files']:,} of the files)" if len(summary["layouts"]) > 1 else ""
        lines.append(f"records were read as {layout['shape']}{files}: {', '.join(names) or 'under the usual names'}")
    return [*lines, "If that is wrong, say --shape and --field."]


def notes(summary: PrepareSummary) -> list[str]:
    cases = (
        (
            summary["untrained_records"],
            "records without a trained token",
            "The assistant says nothing in them, or no mask or flag lets it train; --on-empty skip leaves them out.",
        ),
        (
            summary["cut_records"],
            "records cut to --max-length",
            "What --truncate says was left out of them.",
        ),
        (
            summary["dropped_reasoning_records"],
            "records with reasoning left out",
            "The template shows none of finished turns; --reasoning says what else there is.",
        ),
        (
            summary["hidden_tool_name_records"],
            "records with tool calls whose id hides the function's name",
            "The model sees no more of a call than its id: consider --tool-call-ids canonical.",
        ),
        (
            summary["control_string_records"],
            "records with control strings in a text",
            "The likes of <|im_end|> became special tokens, as in the model's own code.",
        ),
        (
            summary["lost_weight_records"],
            "records with weights that are not written",
            "The target has no column for weights: what weighs anything trains in full.",
        ),
    )
    lines = [f"{what}: {count:,}. {why}" for count, what, why in cases if count]
    if not summary["records"]:
        lines.append("The input is empty: there was no record to write.")
    return lines


def findings(summary: PrepareSummary, output: Path) -> list[str]:
    if not summary["findings"]:
        return []
    counts = [f"  {code}: {count:,}" for code, count in summary["findings"].items()]
    return [
        f"records with something odd in them, by its code (docs/findings.md): see {output / FINDINGS_FILE}",
        *counts,
    ]


def failures(summary: PrepareSummary, output: Path) -> list[str]:
    if not summary["failed"]:
        return []
    quoted = [str(error) for error in summary["failures"]]
    return [*quoted, f"{failed_records(summary):,} failed in all: see {output / REJECTED_FILE}"]
