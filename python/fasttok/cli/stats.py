"""`fasttok stats`."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fasttok.cli.output import write
from fasttok.cli.prepared import fail, read_manifest
from fasttok.cli.statistics import Statistics
from fasttok.cli.whole_file import check_place

PLOT_ENDINGS = (".png", ".svg")


def stats(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders that fasttok prepare has written.")],
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw lengths, trained shares and tokens by part; .png or .svg."),
    ] = None,
) -> None:
    """Show what is in prepared folders: records, tokens, lengths, and which parts of the messages train.

    \b
    Example:
      fasttok stats tokens --plot tokens.svg
    """
    if plot:
        if plot.suffix not in PLOT_ENDINGS:
            fail(f"--plot: expected a name that ends in {' or '.join(PLOT_ENDINGS)}, found {plot}")
        check_place("--plot", plot)
    known = [(folder, Statistics.of(read_manifest(folder))) for folder in folders]
    for folder, statistics in known:
        write(sys.stdout, printed(folder, statistics))
    if plot:
        # It takes a while to load, and only this needs it.
        try:
            from fasttok.cli.stats_chart import draw
        except ModuleNotFoundError as error:
            fail(f"--plot needs {error.name}: pip install 'fasttok-kimi[plot]'")
        draw(known, plot)
        write(sys.stdout, f"drawn to {plot}\n")


def printed(folder: Path, statistics: Statistics) -> str:
    console = Console(markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(str(folder), soft_wrap=True)
        console.print(numbers(statistics))
        console.print()
        console.print(parts(statistics))
        console.print()
    return capture.get()


def numbers(statistics: Statistics) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column(style="dim")
    for name, count, remark in statistics.numbers():
        table.add_row(name, f"{count:,}", remark)
    return table


def parts(statistics: Statistics) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("role")
    table.add_column("part")
    table.add_column("tokens", justify="right")
    table.add_column("share", justify="right")
    table.add_column("trained", justify="right")
    for role, part, tokens, trained in statistics.parts:
        share = f"{tokens / statistics.tokens:.1%}" if statistics.tokens else ""
        table.add_row(role, part, f"{tokens:,}", share, f"{trained:,}" if trained else "")
    return table
