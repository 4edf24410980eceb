"""splintr, a tokenizer in Rust that ships Kimi's vocabulary; fasttok takes the vocabulary from it."""

from collections.abc import Sequence

from splintr import AnyTokenizer, Tokenizer

from fasttok.bench.contender import Job, Pooled
from fasttok.bench.workload import Workload


class Splintr(Pooled):
    label = "splintr"

    def __init__(self, workload: Workload, template_name: str, pool_size: int) -> None:
        super().__init__(workload, pool_size)
        self.vocabulary = "kimi_k3" if template_name == "kimi-k3" else "kimi_k2"
        self.tokenizer = Tokenizer.from_pretrained(self.vocabulary)

    def ids(self, index: int) -> Sequence[int]:
        return self.tokenizer.encode(self.workload.texts[index])

    def job(self, indices: Sequence[int], threads: int) -> Job:
        return self._job_with(self.tokenizer, indices, threads)

    def first_job(self, indices: Sequence[int], threads: int) -> Job:
        return self._job_with(Tokenizer.from_pretrained(self.vocabulary), indices, threads)

    def _job_with(self, tokenizer: AnyTokenizer, indices: Sequence[int], threads: int) -> Job:
        texts = [self.workload.texts[index] for index in indices]
        if threads == 1:
            return lambda: [tokenizer.encode(text) for text in texts]
        return lambda: tokenizer.encode_batch(texts)
