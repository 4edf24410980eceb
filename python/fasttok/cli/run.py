"""From a command line to an exit status."""

import sys
from collections.abc import Sequence

import typer

from fasttok.cli.output import escape_what_cannot_be_shown, write_error

FAILED = 2
INTERRUPTED = 130


def run(
    app: typer.Typer,
    name: str,
    arguments: Sequence[str] | None = None,
    failures: tuple[type[Exception], ...] = (),
    help_of: str | None = None,
) -> int:
    """Runs `app` and returns its exit status: 130 after Ctrl-C; 2, and one line on stderr, if an argument is wrong, or
    for an `OSError` or one of `failures`. `arguments` are those of the process if None; `help_of` is the command whose
    help tells more, if it is not `name`.
    """
    escape_what_cannot_be_shown()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return app(given, prog_name=name, standalone_mode=False) or 0
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except typer.TyperException as error:
        write_error(f"{error.format_message()} (see {help_of or name} --help)")
    except UnicodeEncodeError as error:
        # Python reads such bytes of an argument as halves of surrogate pairs.
        if error.object not in given:
            raise
        write_error(f"expected UTF-8, found {error.object!r}")
    except (OSError, *failures) as error:
        write_error(str(error))
    return FAILED
