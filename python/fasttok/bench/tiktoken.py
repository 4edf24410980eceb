"""tiktoken, OpenAI's tokenizer in Rust, with Kimi's vocabulary and pattern, as the models' own code uses it."""

from collections.abc import Sequence

import tiktoken

from fasttok.bench.contender import Contender, Job, Kind
from fasttok.bench.vocabulary import PATTERN, Vocabulary
from fasttok.bench.workload import Workload


def encoding(vocabulary: Vocabulary) -> tiktoken.Encoding:
    return tiktoken.Encoding(
        "kimi", pat_str=PATTERN, mergeable_ranks=vocabulary.ranks, special_tokens=vocabulary.special_tokens
    )


class Tiktoken(Contender):
    label = "tiktoken"
    kind: Kind = "rendered text to ids"

    def __init__(self, workload: Workload, vocabulary: Vocabulary) -> None:
        super().__init__(workload)
        self.encoding = encoding(vocabulary)

    def refusal(self, threads: int) -> str | None:
        return None

    def ids(self, index: int) -> Sequence[int]:
        return self.encoding.encode(self.workload.texts[index], allowed_special="all")

    def job(self, indices: Sequence[int], threads: int) -> Job:
        texts = [self.workload.texts[index] for index in indices]
        return lambda: self.encoding.encode_batch(texts, num_threads=threads, allowed_special="all")
