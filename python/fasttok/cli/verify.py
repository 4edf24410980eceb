"""`fasttok verify`."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

import fasttok
from fasttok.cli.interrupt import deferred_interrupt
from fasttok.cli.output import counted, visible, write, write_error
from fasttok.cli.prepared import encoder_of, fail
from fasttok.cli.progress import shown_progress
from fasttok.types import VerifyResult


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that fasttok prepare has written.")],
    against: Annotated[
        list[Path] | None,
        typer.Option(metavar="INPUT", help="Encode this input again and compare; give it again for more."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model, or its folder; by default the one that the manifest names."),
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads; by default all.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but problems.")] = False,
) -> None:
    """Check a prepared folder, every file and every row.

    Files must be as the manifest says. Rows must have ids of the vocabulary, a mask of 0 and 1 as long as the ids, a
    token that trains, and trained tokens only where the assistant speaks. With --against, every record of the inputs is
    encoded again, with the options of the manifest, and compared with its row.

    \b
    Example:
      fasttok verify tokens --against chats.jsonl

    \b
    Exit status:
      0  all is well
      1  there are problems
      2  it failed: no such folder, one that is not finished, another model
    """
    started = time.monotonic()
    try:
        with deferred_interrupt() as check_interrupt, shown_progress(quiet) as report:

            def progress(records: int, failed: int, tokens: int, done: int, total: int) -> None:
                check_interrupt()
                report(records, failed, tokens, done, total)

            encoder = encoder_of(folder, model)
            found = fasttok.verify(encoder, folder, against=against, num_threads=threads, progress=progress)
    except fasttok.FasttokError as error:
        fail(str(error))
    except KeyboardInterrupt:
        write(sys.stderr, "stopped\n")
        raise typer.Exit(130) from None
    for error in found["quoted"]:
        write_error(visible(str(error)))
    problems = sum(found["problems"].values())
    if not quiet:
        write(sys.stdout, verdict(found, bool(against), time.monotonic() - started))
    if problems:
        raise typer.Exit(1)


def verdict(found: VerifyResult, is_compared: bool, seconds: float) -> str:
    rows, tokens = counted(found["rows"], "row"), counted(found["tokens"], "token")
    lines = [f"{rows} with {tokens}, {found['trained_tokens']:,} of them trained, read in {seconds:,.1f} s"]
    if found["untrained_rows"]:
        lines.append(f"  without a trained token: {found['untrained_rows']:,}")
    if found["unjudged_rows"]:
        lines.append(
            f"  not judged by their ids, since special tokens are spelled out in texts: {found['unjudged_rows']:,}"
        )
    for what, count in found["problems"].items():
        lines.append(f"  {what}: {count:,}")
    if not found["problems"]:
        lines.append("no problems" + (", and the inputs yield the same rows" if is_compared else ""))
    return "\n".join(lines) + "\n"
