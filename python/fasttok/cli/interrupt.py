"""Ctrl-C during a job."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_interrupt() -> Generator[Callable[[], None]]:
    """Ctrl-C raises KeyboardInterrupt where the function given here is called, and nowhere else.

    A job that got past its last call has written its files, so it must not end as one that was stopped.
    """
    asked = False

    def ask(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    # A shell starts background jobs with the signal ignored, and so it stays.
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, ask)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
