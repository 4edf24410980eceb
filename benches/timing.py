"""How time is taken: in a process that has done nothing else, and in turns."""

import gc
import multiprocessing
import signal
import statistics
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class MeasurementError(Exception):
    """Why something cannot be measured, and what to do about it if that is known."""


def in_fresh_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `function` returns in a Python of its own that has done nothing yet."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=send_result, args=(sender, function, args, kwargs))
    process.start()
    sender.close()
    try:
        result = receiver.recv()
    except EOFError:
        process.join()
        raise MeasurementError(f"the process that measures ended with status {process.exitcode}") from None
    finally:
        process.terminate()
        process.join()
    if isinstance(result, BaseException):
        raise result
    return result


def send_result(sender: Connection, function: Callable[..., object], args: Any, kwargs: Any) -> None:
    # Ctrl-C reaches the whole group, and the parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        result = error
    sender.send(result)


@contextmanager
def without_collector() -> Generator[None]:
    """Python's garbage collector works before what is timed, and not meanwhile."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def clock(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    result = call()
    took = time.perf_counter() - start
    # Freed after the clock has stopped.
    del result
    return took


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    with without_collector():
        return clock(call)


def steady_seconds(call: Callable[[], object]) -> float:
    """The median of as many calls as fit into a fifth of a second, for calls that may be short."""
    with without_collector():
        took = [clock(call)]
        while sum(took) < 0.2:
            took.append(clock(call))
    return statistics.median(took)


def in_turns(rounds: int, *timers: Callable[[], float]) -> Iterator[tuple[float, ...]]:
    """The times of each round, in the order of `timers`; who goes first changes from round to round."""
    for index in range(rounds):
        order = list(range(len(timers)))
        if index % 2:
            order.reverse()
        took = {place: timers[place]() for place in order}
        yield tuple(took[place] for place in range(len(timers)))


def ratios(times: list[tuple[float, ...]]) -> list[float]:
    """How many times as long as the first took the second, in each round."""
    return [second / first for first, second in times]


def rates(megabytes: float, times: list[tuple[float, ...]], *names: str) -> str:
    speeds = [megabytes / statistics.median(column) for column in zip(*times, strict=True)]
    parts = [f"{name} {speed:,.{0 if speed >= 10 else 2}f} MB/s" for name, speed in zip(names, speeds, strict=True)]
    return f"{', '.join(parts)}, of {megabytes:,.1f} MB"
