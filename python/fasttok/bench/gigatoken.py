"""gigatoken, a tokenizer in Rust that remembers what it has encoded, with its own scanner for Kimi's pattern."""

# gigatoken returns arrays of awkward, which carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Sequence

from gigatoken import Tokenizer

from fasttok.bench.contender import Job, Pooled
from fasttok.bench.vocabulary import Vocabulary
from fasttok.bench.workload import Workload


def fresh_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """One that has seen no text."""
    return Tokenizer.from_tiktoken(
        vocabulary.tiktoken_file, pretokenizer="kimi", special_tokens=vocabulary.special_tokens
    )


class Gigatoken(Pooled):
    label = "gigatoken"

    def __init__(self, workload: Workload, vocabulary: Vocabulary, pool_size: int) -> None:
        super().__init__(workload, pool_size)
        self.vocabulary = vocabulary
        self.texts = [text.encode() for text in workload.texts]
        self.tokenizer = fresh_tokenizer(vocabulary)

    def ids(self, index: int) -> Sequence[int]:
        return self.tokenizer.encode(self.texts[index]).tolist()

    def job(self, indices: Sequence[int], threads: int) -> Job:
        return self._job_with(self.tokenizer, indices, threads)

    def first_job(self, indices: Sequence[int], threads: int) -> Job:
        return self._job_with(fresh_tokenizer(self.vocabulary), indices, threads)

    def _job_with(self, tokenizer: Tokenizer, indices: Sequence[int], threads: int) -> Job:
        texts = [self.texts[index] for index in indices]
        return lambda: tokenizer.encode_batch(texts, parallel=threads > 1)
