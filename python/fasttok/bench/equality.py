"""Are the ids of a contender fasttok's? Nothing is timed before that is known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasttok.bench.contender import Contender


@dataclass(frozen=True)
class Difference:
    """The first token of a conversation that is another one, or the error in place of ids."""

    conversation: int
    token: int | None
    error: str | None


@dataclass(frozen=True)
class Equality:
    equal: Sequence[int]
    """The conversations with the same ids, by index: those that may be timed."""
    differences: Sequence[Difference]

    def __len__(self) -> int:
        return len(self.equal) + len(self.differences)

    @property
    def differs_too_often(self) -> bool:
        """More often than not it does something else, so its time says nothing."""
        return len(self.differences) > len(self.equal)

    def __str__(self) -> str:
        first = self.differences[0]
        what = first.error or f"token {first.token:,}"
        count = f"{len(self.differences):,} of {len(self):,} conversations differ"
        timed = "nothing is timed" if self.differs_too_often else "not timed"
        return f"{count} (the first: conversations[{first.conversation}], {what}), {timed}"


def compare(contender: Contender, progress: Callable[[], None]) -> Equality:
    equal: list[int] = []
    differences: list[Difference] = []
    for index in contender.sample():
        try:
            found = np.asarray(contender.ids(index))
        # Whatever a library raises, it has no ids for this conversation.
        except Exception as error:
            text = next(iter(str(error).splitlines()), "")
            differences.append(Difference(index, None, f"{type(error).__name__}: {text}"))
        else:
            token = first_difference(contender.workload.ids[index], found)
            if token is None:
                equal.append(index)
            else:
                differences.append(Difference(index, token, None))
        progress()
    return Equality(equal, differences)


def first_difference(expected: NDArray[np.integer[Any]], found: NDArray[np.integer[Any]]) -> int | None:
    shared = min(len(expected), len(found))
    places = np.flatnonzero(expected[:shared] != found[:shared])
    if len(places):
        return int(places[0])
    return None if len(expected) == len(found) else shared
