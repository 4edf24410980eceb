"""What every library does here, behind one face."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, TypeAlias

from fasttok.bench.workload import Workload

Job: TypeAlias = Callable[[], object]
"""What is timed. Its result lives until the clock has stopped."""

Kind: TypeAlias = Literal["chats to ids and mask", "chats to ids", "rendered text to ids"]


class Contender(ABC):
    """One way to ids, ready to run."""

    label: str
    """What it is called in the table and in the chart."""
    kind: Kind
    has_first_pass: ClassVar[bool] = False
    """Whether its first pass over a text is slower than the next, because it remembers."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def sample(self) -> Sequence[int]:
        """The conversations that it runs over, by index: all, unless that takes too long."""
        return range(len(self.workload))

    def refusal(self, threads: int) -> str | None:
        """Why it cannot run with so many threads."""
        return None if threads == 1 else "one thread only"

    @abstractmethod
    def ids(self, index: int) -> Sequence[int]:
        """The ids of one conversation."""

    @abstractmethod
    def job(self, indices: Sequence[int], threads: int) -> Job:
        """The job of encoding these conversations."""

    def first_job(self, indices: Sequence[int], threads: int) -> Job:
        """The same for one that remembers nothing yet."""
        raise NotImplementedError


class Pooled(Contender):
    """One in Rust that runs in one thread, or in the one pool of its process."""

    kind: Kind = "rendered text to ids"
    has_first_pass = True

    def __init__(self, workload: Workload, pool_size: int) -> None:
        super().__init__(workload)
        self.pool_size = pool_size

    def refusal(self, threads: int) -> str | None:
        return None if threads in (1, self.pool_size) else f"one thread, or its pool of {self.pool_size}"
