"""Runs in turns, so that whatever else the machine does in one minute falls on all of them."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fasttok.bench.contender import Contender, Job

# A pass over little text takes milliseconds, most of them lost on waking up caches that others have filled since.
LEAST_SECONDS = 0.2


@dataclass(frozen=True)
class Spread:
    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))


@dataclass
class Timed:
    """A contender over some conversations with some threads, and how long it takes."""

    name: str
    contender: Contender
    indices: Sequence[int]
    threads: int
    first_pass: bool = False
    seconds: list[float] = field(default_factory=list[float])
    """Of one pass, in each round."""
    reference: "Timed | None" = None
    """fasttok over the same conversations, in the same rounds; None for fasttok itself."""

    def job(self) -> Job:
        make = self.contender.first_job if self.first_pass else self.contender.job
        return make(self.indices, self.threads)

    @property
    def size(self) -> int:
        return self.contender.workload.size(self.indices)

    @property
    def rate(self) -> Spread:
        """In MB of rendered text a second."""
        return Spread.of([self.size / seconds / 1e6 for seconds in self.seconds])

    @property
    def ratios(self) -> list[float]:
        """How many times fasttok's time it takes, round by round."""
        reference = self.reference or self
        return [own / other for own, other in zip(self.seconds, reference.seconds, strict=True)]


def measure(job: Job, once: bool = False) -> float:
    """The seconds of one pass: the mean of as many as fill a fifth of a second, unless there can be only one."""
    # What earlier runs left behind is not this one's to clear away.
    gc.collect()
    seconds, passes = 0.0, 0
    while not passes or (seconds < LEAST_SECONDS and not once):
        started = time.perf_counter()
        result = job()
        seconds += time.perf_counter() - started
        del result
        passes += 1
    return seconds / passes


def run_rounds(timed: Sequence[Timed], rounds: int, progress: Callable[[str], None]) -> None:
    """One round to warm up, which does not count, and then `rounds` more."""
    for number in range(rounds + 1):
        for one in timed:
            progress(f"round {number} of {rounds}: {one.name}" if number else f"warming up: {one.name}")
            seconds = measure(one.job(), once=one.first_pass)
            if number:
                one.seconds.append(seconds)
