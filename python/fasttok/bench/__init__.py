"""The command `fasttok-bench`: how fast is fasttok on this machine, beside other libraries?"""

import sys
from collections.abc import Sequence

import typer

from fasttok import FasttokError
from fasttok.bench.command import bench
from fasttok.bench.error import BenchError
from fasttok.cli.output import escape_what_cannot_be_shown, write, write_error

INTERRUPTED = 130

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(bench)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status. `arguments` are those of the process if None."""
    escape_what_cannot_be_shown()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        status: int = app(given, prog_name="fasttok-bench", standalone_mode=False) or 0
    except typer.TyperException as error:
        write_error(f"{error.format_message()} (see fasttok-bench --help)")
    except (BenchError, FasttokError, OSError) as error:
        write_error(str(error))
    else:
        # So typer ends on Ctrl-C, without a word.
        if status == INTERRUPTED:
            write(sys.stderr, "stopped; nothing was written\n")
        return status
    return 2
