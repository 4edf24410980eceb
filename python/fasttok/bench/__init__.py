"""The command `fasttok-bench`: how fast is fasttok on this machine, beside other libraries?"""

import sys
from collections.abc import Sequence

import typer

from fasttok import FasttokError
from fasttok.bench.command import bench
from fasttok.bench.error import BenchError
from fasttok.cli.output import write
from fasttok.cli.run import INTERRUPTED, run

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(bench)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status. `arguments` are those of the process if None."""
    status = run(app, "fasttok-bench", arguments, failures=(BenchError, FasttokError))
    if status == INTERRUPTED:
        write(sys.stderr, "stopped; nothing was written\n")
    return status
