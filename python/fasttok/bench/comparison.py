"""fasttok beside other libraries on the same conversations: who takes part, whose ids are equal, who takes how long."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fasttok import Encoder
from fasttok.bench.contender import Contender
from fasttok.bench.conversations import Conversation
from fasttok.bench.encoder import Fasttok
from fasttok.bench.equality import Equality, compare
from fasttok.bench.peers import Peers, UnavailableError
from fasttok.bench.progress import Steps
from fasttok.bench.timing import Timed, run_rounds
from fasttok.bench.vocabulary import Vocabulary
from fasttok.bench.workload import Workload
from fasttok.cli.output import counted


@dataclass(frozen=True)
class Comparison:
    workload: Workload
    timed: Sequence[Timed]
    """fasttok first, then the others; without the runs of fasttok that only others are compared with."""
    not_timed: Sequence[tuple[str, str]]
    """Names and reasons, one for each peer or number of threads that is missing."""
    equality: dict[str, Equality]


def run_comparison(
    encoder: Encoder,
    conversations: Sequence[Conversation],
    against: Sequence[str],
    threads: Sequence[int],
    rounds: int,
    hf_model: str | None,
    steps: Steps,
) -> Comparison:
    """Raises FasttokError for a conversation that cannot be encoded."""
    workload = Workload.of(encoder, conversations)
    with TemporaryDirectory(prefix="fasttok-bench-") as folder:
        vocabulary = Vocabulary(encoder.tokenizer, Path(folder))
        peers = Peers(encoder, workload, vocabulary, hf_model, pool_size=max(threads))
        present, not_timed = gather(peers, against, steps)
        return timed_comparison(workload, Fasttok(workload, encoder), present, not_timed, threads, rounds, steps)


def gather(peers: Peers, against: Sequence[str], steps: Steps) -> tuple[dict[str, Contender], list[tuple[str, str]]]:
    present: dict[str, Contender] = {}
    missing: list[tuple[str, str]] = []
    steps.begin("loading the libraries to compare with", len(against))
    for name in against:
        try:
            present[name] = peers.peer(name)
        except (UnavailableError, ImportError) as error:
            missing.append((name, str(error)))
        steps.done()
    return present, missing


def timed_comparison(
    workload: Workload,
    fasttok: Fasttok,
    peers: dict[str, Contender],
    missing: Sequence[tuple[str, str]],
    threads: Sequence[int],
    rounds: int,
    steps: Steps,
) -> Comparison:
    not_timed = list(missing)
    equality: dict[str, Equality] = {}
    # By conversations, threads and whether it is the first pass, in the order in which they run.
    own: dict[tuple[tuple[int, ...], int, bool], Timed] = {}

    def fasttok_over(indices: Sequence[int], count: int, first_pass: bool) -> Timed:
        key = (tuple(indices), count, first_pass)
        return own.setdefault(key, Timed("fasttok", fasttok, indices, count, first_pass))

    shown = [fasttok_over(range(len(workload)), count, first_pass) for count in threads for first_pass in (False, True)]
    for name, peer in peers.items():
        steps.begin(f"comparing ids with {name}", len(peer.sample()))
        equality[name] = found = compare(peer, steps.done)
        if found.differs_too_often:
            continue
        for count in threads:
            refusal = peer.refusal(count)
            if refusal:
                # That something has no threads shows in the table, unless it is in no row of it.
                if all(map(peer.refusal, threads)):
                    not_timed.append((name, f"with {count} threads: {refusal}"))
                continue
            for first_pass in (False, True) if peer.has_first_pass else (False,):
                reference = fasttok_over(found.equal, count, first_pass)
                shown.append(Timed(name, peer, found.equal, count, first_pass, reference=reference))
    runs = [*own.values(), *(one for one in shown if one.reference)]
    steps.begin(f"timing, {counted(rounds, 'round')} and one to warm up", len(runs) * (rounds + 1))
    run_rounds(runs, rounds, steps.done)
    return Comparison(workload, shown, not_timed, equality)
