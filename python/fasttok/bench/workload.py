"""What is encoded, and what has to come out of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fasttok import Encoder, FasttokError
from fasttok.bench.conversations import Conversation
from fasttok.cli.output import counted


def encodable(encoder: Encoder, conversations: Sequence[Conversation]) -> tuple[list[Conversation], list[str]]:
    """Those that the model can read, and what is to be said of the others. Raises FasttokError if it can read none."""
    kept: list[Conversation] = []
    reasons: list[str] = []
    for index, conversation in enumerate(conversations):
        try:
            encoder.encode_batch([conversation], num_threads=1)
        except FasttokError as error:
            reasons.append(str(error).replace("conversations[0]", f"conversations[{index}]", 1))
        else:
            kept.append(conversation)
    if reasons and not kept:
        encoder.encode_batch(conversations)
    count = f"{len(reasons):,} of {counted(len(conversations), 'conversation')}"
    return kept, [f"left out: {count}; the first is {reasons[0]}"] if reasons else []


@dataclass(frozen=True)
class Workload:
    """Conversations with their rendered text, their size in bytes of it, and their ids."""

    conversations: Sequence[Conversation]
    texts: Sequence[str]
    sizes: Sequence[int]
    ids: Sequence[NDArray[np.int32]]

    @classmethod
    def of(cls, encoder: Encoder, conversations: Sequence[Conversation]) -> "Workload":
        """Raises FasttokError for a conversation that cannot be encoded."""
        batch = encoder.encode_batch(conversations)
        texts = [encoder.render(one) for one in conversations]
        sizes = [len(text.encode()) for text in texts]
        return cls(conversations, texts, sizes, [one.input_ids for one in batch])

    def __len__(self) -> int:
        return len(self.conversations)

    def size(self, indices: Sequence[int]) -> int:
        return sum(self.sizes[index] for index in indices)

    def messages(self, index: int) -> int:
        return len(self.conversations[index]["messages"])
