"""The command `fasttok`."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from fasttok import __version__
from fasttok.cli.prepare import prepare
from fasttok.cli.run import run
from fasttok.cli.stats import stats
from fasttok.cli.verify import verify

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(prepare)
app.command()(verify)
app.command()(stats)


def print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fasttok {__version__}")
        raise typer.Exit


@app.callback()
def fasttok(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Turn chats into training tokens for Kimi models: exact ids, and loss masks.

    \b
    Example:
      fasttok prepare chats.jsonl -o tokens --model kimi-k2.5
    """


def help_of(arguments: Sequence[str]) -> str:
    """The command whose help tells more."""
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    return next((f"fasttok {name}" for name in arguments[:1] if name in names), "fasttok")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status. `arguments` are those of the process if None."""
    given = sys.argv[1:] if arguments is None else arguments
    return run(app, "fasttok", given or ["--help"], help_of=help_of(given))
