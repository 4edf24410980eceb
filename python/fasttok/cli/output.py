"""What reaches the screen, whatever the inputs hold and whoever reads along."""

import io
import os
import sys
from typing import TextIO


def escape_what_cannot_be_shown() -> None:
    """A terminal that cannot show a letter is no reason to lose the line it stands in."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def visible(text: str) -> str:
    """`text` on one line: what is not printable, such as a line end or a code that steers terminals, is escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def counted(count: int, thing: str) -> str:
    return f"1 {thing}" if count == 1 else f"{count:,} {thing}s"


def write(stream: TextIO, text: str) -> None:
    """Writes at once. That the reader has gone away, as `head` does, is no reason to stop a job.

    Raises OSError for what is, such as a full disk.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # Else the interpreter tries again when it closes the stream, and complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise


def write_error(message: str) -> None:
    write(sys.stderr, f"error: {visible(message)}\n")
