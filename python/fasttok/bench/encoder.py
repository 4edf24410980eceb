"""fasttok itself: from Python dicts to ids, loss mask, spans and findings."""

from collections.abc import Sequence

from fasttok import Encoder
from fasttok.bench.contender import Contender, Job, Kind
from fasttok.bench.workload import Workload


class Fasttok(Contender):
    label = "fasttok"
    kind: Kind = "chats to ids and mask"
    has_first_pass = True

    def __init__(self, workload: Workload, encoder: Encoder) -> None:
        super().__init__(workload)
        self.encoder = encoder

    def refusal(self, threads: int) -> str | None:
        return None

    def ids(self, index: int) -> Sequence[int]:
        return self.encoder.encode_conversation(self.workload.conversations[index]).input_ids.tolist()

    def job(self, indices: Sequence[int], threads: int) -> Job:
        return self._job_with(self.encoder, indices, threads)

    def first_job(self, indices: Sequence[int], threads: int) -> Job:
        return self._job_with(Encoder(self.encoder.model, template=self.encoder.template), indices, threads)

    def _job_with(self, encoder: Encoder, indices: Sequence[int], threads: int) -> Job:
        conversations = [self.workload.conversations[index] for index in indices]
        return lambda: encoder.encode_batch(conversations, num_threads=threads)
