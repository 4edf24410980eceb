"""Files that appear whole or not at all."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from fasttok.bench.error import BenchError


def check_place(option: str, path: Path) -> None:
    """So that nothing is measured for an hour and cannot be written then."""
    if path.is_dir():
        raise BenchError(f"{option}: expected a file, found the folder {path}")
    if path.exists() and not path.is_file():
        raise BenchError(f"{option}: expected a file, found something else at {path}")
    if not path.parent.is_dir():
        raise BenchError(f"{option}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise BenchError(f"{option}: the folder {path.parent} cannot be written to")


@contextmanager
def whole_file(path: Path) -> Generator[Path]:
    """The path of a file that takes the place of `path` at the end, if nothing was raised."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
