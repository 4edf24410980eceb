"""How a running job is shown: a bar on a terminal, elsewhere a line now and then."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from fasttok.cli.output import write

Report: TypeAlias = Callable[[int, int, int, int, int], None]
"""Takes the records done, those of them that failed, the tokens, the bytes read, and the bytes of all inputs: 0 where a
pipe does not say."""

SECONDS_BETWEEN_LINES = 10


@contextmanager
def shown_progress(quiet: bool) -> Generator[Report]:
    if quiet:
        yield nothing
    elif sys.stderr.isatty():
        with bar() as report:
            yield report
    else:
        yield lines()


def nothing(records: int, failed: int, tokens: int, done: int, total: int) -> None: ...


@contextmanager
def bar() -> Generator[Report]:
    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[records]:,} records"),
        TextColumn("[red]{task.fields[rejected]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    started = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None, records=0, rejected="", rate="")

        def report(records: int, failed: int, tokens: int, done: int, total: int) -> None:
            rate = token_rate(tokens, time.monotonic() - started)
            rejected = f"{failed:,} rejected" if failed else ""
            progress.update(task, completed=done, total=total or None, records=records, rejected=rejected, rate=rate)

        yield report


def lines() -> Report:
    started = last = time.monotonic()

    def report(records: int, failed: int, tokens: int, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < SECONDS_BETWEEN_LINES:
            return
        last = now
        line = f"{records:,} records, {token_rate(tokens, now - started)}"
        if failed:
            line += f", {failed:,} rejected"
        if 0 < done <= total:
            left = timedelta(seconds=round((now - started) * (total - done) / done))
            line += f", {done / total:.0%}, {left} left"
        write(sys.stderr, line + "\n")

    return report


def token_rate(tokens: int, seconds: float) -> str:
    return f"{tokens / seconds / 1e6:.1f} M tokens/s"
