"""Figures as a table in the terminal."""

import sys
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fasttok.bench.comparison import Comparison
from fasttok.bench.contender import Kind
from fasttok.bench.scaling import Point, Scaling
from fasttok.bench.timing import Spread, Timed
from fasttok.cli.output import counted, visible, write

# Where nobody says how wide the page is; a line of the README fits.
PAGE_WIDTH = 100

HEADER = ("", "threads", "MB/s", "least–most", "fasttok = 1", "chats")
KINDS: dict[Kind, str] = {
    "chats to ids and mask": "chats → ids, loss mask, spans, findings",
    "chats to ids": "chats → ids",
    "rendered text to ids": "text rendered beforehand → ids",
}


def print_page(table: RenderableType, lines: Sequence[str]) -> None:
    width = None if sys.stdout.isatty() else PAGE_WIDTH
    console = Console(markup=False, emoji=False, highlight=False, width=width)
    with console.capture() as capture:
        console.print(table)
        console.print()
        for line in lines:
            console.print(visible(line), soft_wrap=True)
    # Cells are filled up with blanks, which a file need not keep.
    write(sys.stdout, "".join(line.rstrip(" ") + "\n" for line in capture.get().splitlines()))


def number(value: float) -> str:
    """Three digits say enough of a time."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def threads(count: int) -> str:
    return counted(count, "thread")


def comparison_table(comparison: Comparison) -> Group:
    """A heading and a table for each kind of work, in columns that fit 80 characters and are the same for all."""
    rows = [(one, cells(one, len(comparison.workload))) for one in comparison.timed]
    widths = [max(map(len, column)) for column in zip(HEADER, *(row for _, row in rows), strict=True)]

    def table(shown: Sequence[tuple[Timed, tuple[str, ...]]], show_header: bool) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_header=show_header)
        for name, width in zip(HEADER, widths, strict=True):
            table.add_column(name, justify="right" if name else "left", no_wrap=True, min_width=width)
        for one, row in shown:
            table.add_row(*row, style="" if one.reference else "green")
        return table

    parts: list[RenderableType] = [table([], show_header=True)]
    for kind, title in KINDS.items():
        if of_kind := [(one, row) for one, row in rows if one.contender.kind == kind]:
            parts += [Text(title, style="italic"), table(of_kind, show_header=False)]
    return Group(*parts)


def cells(one: Timed, conversations: int) -> tuple[str, ...]:
    rate = one.rate
    label = "  " + one.contender.label + (", first pass" if one.first_pass else "")
    ratio = number(Spread.of(one.ratios).median) + " ×" if one.reference else ""
    count = f"{len(one.indices):,}"
    if len(one.indices) < conversations:
        count += f" of {conversations:,}"
    return label, str(one.threads), number(rate.median), f"{number(rate.least)}–{number(rate.most)}", ratio, count


def scaling_table(scaling: Scaling) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("messages", justify="right")
    table.add_column("tokens", justify="right")
    for label in scaling.labels.values():
        table.add_column(label, justify="right")
    for size in scaling.sizes:
        table.add_row(
            f"{size.messages:,}",
            f"{size.tokens:,}",
            *(duration(scaling.point(name, size.messages)) for name in scaling.labels),
        )
    return table


def duration(point: Point | None) -> str:
    if point is None:
        return "–"
    seconds = Spread.of(point.seconds).median
    return f"{seconds * 1e3:,.2f} ms" if seconds < 1 else f"{seconds:,.2f} s"
