"""What is shown while figures are made: one line that changes on a terminal, elsewhere a line for each step."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fasttok.cli.output import write


class Steps:
    """Steps done, of so many."""

    def __init__(self, bar: Progress | None) -> None:
        self.bar = bar
        self.task = bar.add_task("", total=None) if bar else None

    def begin(self, what: str, total: int) -> None:
        if self.bar is not None and self.task is not None:
            self.bar.reset(self.task, total=total, description=what)
        else:
            write(sys.stderr, what + "\n")

    def done(self, what: str | None = None) -> None:
        if self.bar is not None and self.task is not None:
            self.bar.advance(self.task)
            if what:
                self.bar.update(self.task, description=what)


@contextmanager
def shown_steps() -> Generator[Steps]:
    if not sys.stderr.isatty():
        yield Steps(None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Redrawn seldom: what draws runs beside what is timed.
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=2) as bar:
        yield Steps(bar)
