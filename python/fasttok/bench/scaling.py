"""How time grows with the number of messages: a call for each prefix, one call, and fasttok."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from fasttok import Encoder
from fasttok.bench.contender import Contender
from fasttok.bench.conversations import Conversation
from fasttok.bench.encoder import Fasttok
from fasttok.bench.equality import compare
from fasttok.bench.peers import Peers, UnavailableError
from fasttok.bench.progress import Steps
from fasttok.bench.timing import measure
from fasttok.bench.vocabulary import Vocabulary
from fasttok.bench.workload import Workload

MESSAGES = tuple(8 * 2**step for step in range(11))
AGAINST = ("hf", "hf-per-message")
# Messages of about one length, so that the slope is that of their number.
CHARACTERS = 400
# One point is worth no more seconds than this, once it has a figure.
ENOUGH_SECONDS = 5.0


@dataclass(frozen=True)
class Size:
    messages: int
    tokens: int
    bytes: int


@dataclass(frozen=True)
class Point:
    name: str
    messages: int
    seconds: Sequence[float]


@dataclass(frozen=True)
class Scaling:
    labels: dict[str, str]
    """By name, in the order of the columns."""
    sizes: Sequence[Size]
    points: Sequence[Point]
    notes: Sequence[str]

    def point(self, name: str, messages: int) -> Point | None:
        return next((one for one in self.points if (one.name, one.messages) == (name, messages)), None)


def long_conversation(conversations: Sequence[Conversation], messages: int) -> Conversation:
    """User and assistant in turns, in the words of `conversations`, over and over."""
    contents = [
        message["content"][:CHARACTERS]
        for conversation in conversations
        for message in conversation["messages"]
        if isinstance(message.get("content"), str) and len(message["content"]) >= CHARACTERS
    ] or ["What is 17 times 3? " * (CHARACTERS // 20)]
    return {
        "messages": [
            {"role": ("user", "assistant")[index % 2], "content": content}
            for index, content in enumerate(islice(cycle(contents), messages))
        ]
    }


def run_scaling(
    encoder: Encoder,
    conversations: Sequence[Conversation],
    rounds: int,
    budget: float,
    hf_model: str | None,
    steps: Steps,
) -> Scaling:
    """A curve ends where its next point would take more than `budget` seconds."""
    workload = Workload.of(encoder, [long_conversation(conversations, count) for count in MESSAGES])
    sizes = [
        Size(count, len(ids), size) for count, ids, size in zip(MESSAGES, workload.ids, workload.sizes, strict=True)
    ]
    notes: list[str] = []
    contenders: dict[str, Contender] = {"fasttok": Fasttok(workload, encoder)}
    with TemporaryDirectory(prefix="fasttok-bench-") as folder:
        peers = Peers(encoder, workload, Vocabulary(encoder.tokenizer, Path(folder)), hf_model, pool_size=1)
        steps.begin("loading transformers", len(AGAINST))
        for name in AGAINST:
            try:
                contenders[name] = peers.peer(name)
            except (UnavailableError, ImportError) as error:
                notes.append(f"{name}: {error}")
            steps.done()
    equal = set(range(len(workload)))
    if "hf" in contenders:
        steps.begin("comparing ids with hf", len(workload))
        equality = compare(contenders["hf"], steps.done)
        equal = set(equality.equal)
        if equality.differences:
            notes.append(f"hf, hf-per-message: {equality}")
    points = measured(contenders, equal, rounds, budget, notes, steps)
    return Scaling({name: one.label for name, one in contenders.items()}, sizes, points, notes)


def measured(
    contenders: dict[str, Contender], equal: set[int], rounds: int, budget: float, notes: list[str], steps: Steps
) -> list[Point]:
    points: list[Point] = []
    running = dict(contenders)
    # How long the last point took, and how much longer the next one takes, by name.
    last: dict[str, float] = {}
    growth = {"hf-per-message": 4}
    steps.begin(f"timing {MESSAGES[0]} … {MESSAGES[-1]:,} messages", len(MESSAGES))
    for index, count in enumerate(MESSAGES):
        for name in list(running):
            expected = last.get(name, 0) * growth.get(name, 2)
            if expected > budget:
                del running[name]
                notes.append(
                    f"{contenders[name].label}: stopped before {count:,} messages, which would take about "
                    f"{f'{expected:,.0f}' if expected >= 10 else f'{expected:.2g}'} s (--budget {budget:g})"
                )
        timed = [name for name in running if name == "fasttok" or index in equal]
        seconds: dict[str, list[float]] = {name: [] for name in timed}
        for number in range(rounds + 1):
            for name in timed:
                if sum(seconds[name]) < ENOUGH_SECONDS:
                    one = measure(running[name].job([index], 1))
                    # The first warms up, and counts where a second one would take too long.
                    if number or one >= ENOUGH_SECONDS:
                        seconds[name].append(one)
        for name in timed:
            points.append(Point(name, count, seconds[name]))
            last[name] = min(seconds[name])
        steps.done(f"timed {count:,} messages")
    return points
