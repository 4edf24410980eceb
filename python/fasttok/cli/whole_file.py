"""Files that appear whole or not at all."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def check_place(option: str, path: Path) -> None:
    """So that nothing is done for an hour and cannot be written then.

    Raises OSError for a place where no file can be.
    """
    if path.is_dir():
        raise OSError(f"{option}: expected a file, found the folder {path}")
    if path.exists() and not path.is_file():
        raise OSError(f"{option}: expected a file, found something else at {path}")
    if not path.parent.is_dir():
        raise OSError(f"{option}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise OSError(f"{option}: the folder {path.parent} cannot be written to")


@contextmanager
def whole_file(path: Path) -> Generator[Path]:
    """The path of a file that takes the place of `path` at the end, if nothing was raised."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
