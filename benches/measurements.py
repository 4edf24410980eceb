"""What `targets.py` measures: a function for each row of its table.

All that is timed runs in processes of its own, so that no cache, allocator or collector is left from another row. What
is compared is timed in turns, and each round yields one ratio; a ratio above 1 says that fasttok is faster. Nothing is
timed against a peer before the ids are equal.
"""

import json
import pickle
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import peers
from hostile_texts import HOSTILE_TEXTS
from timing import MeasurementError, in_fresh_process, in_turns, rates, ratios, seconds, steady_seconds

from fasttok import Encoder

MODEL = "kimi-k2.5"

Conversation: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What every row gets: conversations as plain JSONL, how often to measure, and a folder to write to."""

    trajectories: Path
    rounds: int
    scratch: Path

    def lines(self) -> list[bytes]:
        return self.trajectories.read_bytes().splitlines()

    def conversations(self) -> list[Conversation]:
        return [json.loads(line) for line in self.lines()]


class Measured(NamedTuple):
    """One value a round, and what one must know to read them."""

    values: list[float]
    notes: list[str]


def ready_encoder() -> Encoder:
    """One whose caches are cold; what it puts off until its first call is done."""
    encoder = Encoder(MODEL)
    encoder.encode_batch([[{"role": "user", "content": "a"}]], num_threads=1)
    return encoder


def read_batch(encoder: Encoder, conversations: list[Any], num_threads: int | None = 1) -> object:
    """Encodes to ids and mask, as numpy arrays; returns what keeps them alive."""
    batch = encoder.encode_batch(conversations, num_threads=num_threads)
    return batch, batch.input_ids, batch.loss_mask


# Against gigatoken


class Agreed(NamedTuple):
    """The conversations that gigatoken gives the same ids, by index, and their rendered text."""

    indices: list[int]
    texts: list[bytes]
    notes: list[str]

    @property
    def megabytes(self) -> float:
        return sum(map(len, self.texts)) / 1e6


def ready_gigatoken(encoder: Encoder, job: Job) -> Any:
    tokenizer = peers.gigatoken_tokenizer(encoder, job.scratch)
    # The first call imports a package.
    tokenizer.encode_batch([b"a"], parallel=False)
    return tokenizer


@cache
def agreed_with_gigatoken(job: Job) -> Path:
    """A pickled `Agreed`: children that measure must not have encoded anything."""
    path = job.scratch / "agreed.pickle"
    in_fresh_process(write_agreed, job, path)
    return path


def write_agreed(job: Job, path: Path) -> None:
    peers.installed("gigatoken")
    encoder = Encoder(MODEL)
    conversations = job.conversations()
    texts = [encoder.render(one["messages"], tools=one.get("tools")).encode() for one in conversations]
    expected = encoder.encode_batch(conversations)
    found = ready_gigatoken(encoder, job).encode_batch(texts, parallel=False)
    agreed = Agreed([], [], [])
    for index, text in enumerate(texts):
        if expected[index].input_ids.tolist() == found[index].tolist():
            agreed.indices.append(index)
            agreed.texts.append(text)
        else:
            name = conversations[index].get("id", "")
            agreed.notes.append(f"left out, for gigatoken gives other ids: line {index + 1} {name}".rstrip())
    if not agreed.indices:
        raise MeasurementError("gigatoken gives other ids for every conversation")
    path.write_bytes(pickle.dumps(agreed))


def read_agreed(path: Path) -> Agreed:
    return pickle.loads(path.read_bytes())


def first_pass(job: Job) -> Measured:
    path = agreed_with_gigatoken(job)
    times = list(
        in_turns(
            job.rounds,
            lambda: in_fresh_process(fasttok_first_pass, job, path),
            lambda: in_fresh_process(gigatoken_first_pass, job, path),
        )
    )
    agreed = read_agreed(path)
    return Measured(ratios(times), [rates(agreed.megabytes, times, "fasttok", "gigatoken"), *agreed.notes])


def fasttok_first_pass(job: Job, path: Path) -> float:
    conversations = job.conversations()
    kept = [conversations[index] for index in read_agreed(path).indices]
    encoder = ready_encoder()
    return seconds(lambda: read_batch(encoder, kept))


def gigatoken_first_pass(job: Job, path: Path) -> float:
    texts = read_agreed(path).texts
    tokenizer = ready_gigatoken(Encoder(MODEL), job)
    return seconds(lambda: tokenizer.encode_batch(texts, parallel=False))


def warm(job: Job) -> Measured:
    return in_fresh_process(measure_warm, job, agreed_with_gigatoken(job))


def measure_warm(job: Job, path: Path) -> Measured:
    agreed = read_agreed(path)
    conversations = job.conversations()
    kept = [conversations[index] for index in agreed.indices]
    encoder = ready_encoder()
    tokenizer = ready_gigatoken(encoder, job)

    def ours() -> object:
        return read_batch(encoder, kept)

    def theirs() -> object:
        return tokenizer.encode_batch(agreed.texts, parallel=False)

    ours()
    theirs()
    times = list(in_turns(job.rounds, lambda: steady_seconds(ours), lambda: steady_seconds(theirs)))
    return Measured(ratios(times), [rates(agreed.megabytes, times, "fasttok", "gigatoken"), *agreed.notes])


# Threads


def two_threads(job: Job) -> Measured:
    return in_fresh_process(measure_two_threads, job)


def measure_two_threads(job: Job) -> Measured:
    return with_two_threads(job, job.conversations())


def with_two_threads(job: Job, conversations: list[Conversation]) -> Measured:
    encoder = Encoder(MODEL)
    size = sum(len(encoder.render(one["messages"], tools=one.get("tools")).encode()) for one in conversations)

    def timer(threads: int) -> Callable[[], float]:
        return lambda: steady_seconds(lambda: read_batch(encoder, conversations, threads))

    # Each thread has a cache of its own.
    timer(1)()
    timer(2)()
    times = list(in_turns(job.rounds, timer(2), timer(1)))
    return Measured(ratios(times), [rates(size / 1e6, times, "2 threads", "1 thread")])


def one_conversation(job: Job) -> Measured:
    forms = {form: in_fresh_process(measure_one_conversation, job, form) for form in ("many messages", "one message")}
    worst = min(forms, key=lambda form: statistics.median(forms[form].values))
    notes = [f"{form}: {statistics.median(measured.values):.2f} ×" for form, measured in forms.items()]
    return Measured(forms[worst].values, [", ".join(notes), *forms[worst].notes])


def measure_one_conversation(job: Job, form: str) -> Measured:
    messages: list[Message] = []
    encoder = Encoder(MODEL)
    size = 0
    for message in cycle(real_messages(job)):
        size += len(encoder.render([message]).encode())
        messages.append(message)
        if size >= 10_000_000:
            break
    if form == "one message":
        messages = [{"role": "user", "content": encoder.render(messages)[:10_000_000]}]
    return with_two_threads(job, [{"messages": messages}])


def real_messages(job: Job) -> list[Message]:
    return [message for conversation in job.conversations() for message in conversation["messages"]]


# Against Hugging Face

SAMPLE_MEGABYTES = 2.0


def huggingface_conversation(job: Job) -> Measured:
    return in_fresh_process(measure_huggingface_conversation, job)


def measure_huggingface_conversation(job: Job) -> Measured:
    encoder = Encoder(MODEL)
    conversations = job.conversations()
    sizes = [len(encoder.render(one["messages"], tools=one.get("tools")).encode()) for one in conversations]
    step = max(1, round(sum(sizes) / 1e6 / SAMPLE_MEGABYTES))
    indices = range(0, len(conversations), step)
    sample = [conversations[index] for index in indices]
    template = peers.huggingface_template(encoder, job.scratch)

    def theirs() -> list[list[int]]:
        return [template.ids(one["messages"], one.get("tools")) for one in sample]

    expected = [one.input_ids.tolist() for one in encoder.encode_batch(sample)]
    differ = [index for index, ids, found in zip(indices, expected, theirs(), strict=True) if ids != found]
    if differ:
        raise MeasurementError(f"the fast tokenizer gives other ids for line {differ[0] + 1}")
    times = list(
        in_turns(
            job.rounds, lambda: steady_seconds(lambda: read_batch(encoder, sample)), lambda: steady_seconds(theirs)
        )
    )
    megabytes = sum(sizes[index] for index in indices) / 1e6
    speeds = rates(megabytes, times, "fasttok", "the fast tokenizer")
    note = f"{len(sample)} of {len(conversations)} conversations, one thread: {speeds}"
    return Measured(ratios(times), [note])


def huggingface_message(job: Job) -> Measured:
    return in_fresh_process(measure_huggingface_message, job)


def measure_huggingface_message(job: Job) -> Measured:
    encoder = Encoder(MODEL)
    conversation = min(job.conversations(), key=lambda one: abs(len(one["messages"]) - 85))
    messages = conversation["messages"]
    prefixes = [messages[:count] for count in range(1, len(messages) + 1)]
    template = peers.huggingface_template(encoder, job.scratch)

    def theirs() -> list[list[int]]:
        return [template.ids(prefix, conversation.get("tools")) for prefix in prefixes]

    def ours() -> object:
        encoded = encoder.encode_conversation(conversation)
        return encoded.input_ids, encoded.loss_mask

    for prefix, found in zip(prefixes, theirs(), strict=True):
        if encoder.encode_conversation(prefix, tools=conversation.get("tools")).input_ids.tolist() != found:
            raise MeasurementError(f"the fast tokenizer gives other ids for the first {len(prefix)} messages")
    times = list(in_turns(job.rounds, lambda: steady_seconds(ours), lambda: seconds(theirs)))
    kilobytes = len(encoder.render(messages, tools=conversation.get("tools")).encode()) / 1e3
    ours_median, theirs_median = (statistics.median(column) for column in zip(*times, strict=True))
    note = (
        f"{len(messages)} messages, {kilobytes:,.0f} kB: fasttok {ours_median * 1e3:.2f} ms, "
        f"the fast tokenizer on every prefix {theirs_median:.2f} s"
    )
    return Measured(ratios(times), [note])


# From files


def jsonl(job: Job) -> Measured:
    return in_fresh_process(measure_jsonl, job)


def measure_jsonl(job: Job) -> Measured:
    encoder = Encoder(MODEL)
    lines, conversations = job.lines(), job.conversations()

    def from_lines() -> object:
        return read_batch(encoder, lines)

    def from_dicts() -> object:
        return read_batch(encoder, conversations)

    from_lines()
    from_dicts()
    times = list(in_turns(job.rounds, lambda: steady_seconds(from_lines), lambda: steady_seconds(from_dicts)))
    medians = [statistics.median(column) * 1e3 for column in zip(*times, strict=True)]
    return Measured(ratios(times), ["from JSONL {:.0f} ms, from dicts {:.0f} ms".format(*medians)])


TIMES_WRITTEN = 10


def prepare(job: Job) -> Measured:
    return in_fresh_process(measure_prepare, job)


def measure_prepare(job: Job) -> Measured:
    lines = job.lines()
    inputs, output = job.scratch / "written_often.jsonl", job.scratch / "prepared"
    inputs.write_bytes(b"".join(line + b"\n" for line in lines) * TIMES_WRITTEN)
    command = [sys.executable, "-m", "fasttok", "prepare", str(inputs), "-o", str(output), "--model", MODEL, "--quiet"]

    def process() -> float:
        took = seconds(lambda: subprocess.run(command, check=True))
        shutil.rmtree(output)
        return took

    def in_memory() -> float:
        # Ten batches: one that holds all would spend much of its time on new memory, and look good for the process.
        encoder = ready_encoder()
        return sum(seconds(lambda: read_batch(encoder, lines, None)) for _ in range(TIMES_WRITTEN))

    times = list(in_turns(job.rounds, process, in_memory))
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    size = inputs.stat().st_size / 1e6
    inputs.unlink()
    note = "the process {:.2f} s, in memory from JSON {:.2f} s, all threads, {:,.0f} MB of JSONL".format(*medians, size)
    return Measured(ratios(times), [note])


# How time grows


def messages(job: Job) -> Measured:
    return in_fresh_process(measure_messages, job)


def measure_messages(job: Job) -> Measured:
    encoder = Encoder(MODEL)
    few = list(islice(cycle(real_messages(job)), 1024))
    many = few * 8

    def timer(messages: list[Message]) -> Callable[[], float]:
        return lambda: steady_seconds(lambda: encoder.encode_conversation(messages).input_ids)

    timer(few)()
    timer(many)()
    times = list(in_turns(job.rounds, timer(few), timer(many)))
    medians = [statistics.median(column) * 1e3 for column in zip(*times, strict=True)]
    return Measured(ratios(times), ["{:.1f} ms and {:.1f} ms".format(*medians)])


MEGABYTE = 1_000_000


@cache
def hostile_times(job: Job) -> dict[str, list[tuple[float, ...]]]:
    """By kind of text the times of one megabyte and of two. Each is new to the process that encodes it."""

    def timer(kind: str, size: int) -> Callable[[], float]:
        return lambda: in_fresh_process(hostile_seconds, kind, size)

    return {
        kind: list(in_turns(job.rounds, timer(kind, MEGABYTE), timer(kind, 2 * MEGABYTE))) for kind in HOSTILE_TEXTS
    }


def hostile_seconds(kind: str, size: int) -> float:
    text = HOSTILE_TEXTS[kind](size)
    encoder = ready_encoder()
    return seconds(lambda: encoder.encode_conversation([{"role": "user", "content": text}]))


def hostile(job: Job) -> Measured:
    speeds = {kind: [MEGABYTE / 1e6 / one for one, _ in times] for kind, times in hostile_times(job).items()}
    return worst_kind(speeds, min, "{:.0f} MB/s")


def hostile_twice(job: Job) -> Measured:
    return worst_kind({kind: ratios(times) for kind, times in hostile_times(job).items()}, max, "{:.2f} ×")


def worst_kind(values: dict[str, list[float]], worst: Callable[[Iterable[float]], float], form: str) -> Measured:
    medians = {kind: statistics.median(of_kind) for kind, of_kind in values.items()}
    worst_median = worst(medians.values())
    kind = next(kind for kind, median in medians.items() if median == worst_median)
    return Measured(values[kind], [", ".join(f"{kind} {form.format(median)}" for kind, median in medians.items())])


# A fresh process

NUMPY = "import numpy"
# fasttok imports numpy when the first array is asked for, so both sides import it: what counts is what fasttok adds.
ENCODER = f"import numpy, fasttok; encoder = fasttok.Encoder({MODEL!r})"
ENCODER_WITHOUT_NUMPY = f"import fasttok; encoder = fasttok.Encoder({MODEL!r})"
FIRST_IDS = f'{ENCODER}; encoder.encode_conversation([{{"role": "user", "content": "a"}}]).input_ids'
VARIANTS = (NUMPY, ENCODER, ENCODER_WITHOUT_NUMPY, FIRST_IDS)
# In kB: the most that was ever resident, and what is.
SHOW_MEMORY = """
for line in open("/proc/self/status"):
    if line.startswith(("VmHWM:", "VmRSS:")):
        print(line.split()[1])
"""


def start(job: Job) -> Measured:
    def timer(code: str) -> Callable[[], float]:
        return lambda: seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True)) * 1e3

    for code in VARIANTS:
        # So that the files are read from the disk.
        timer(code)()
    return over_numpy(list(in_turns(job.rounds, *map(timer, VARIANTS))), "ms")


def memory(job: Job) -> Measured:
    if not Path("/proc/self/status").exists():
        raise MeasurementError("there is no /proc/self/status here, as Linux has")
    peaks: list[float] = []

    def resident(code: str) -> Callable[[], float]:
        def megabytes() -> float:
            command = [sys.executable, "-c", f"{code}\n{SHOW_MEMORY}"]
            shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            peak, now = (int(kilobytes) * 1024 / 1e6 for kilobytes in shown)
            if code == ENCODER:
                peaks.append(peak)
            return now

        return megabytes

    times = list(in_turns(job.rounds, *map(resident, VARIANTS)))
    measured = over_numpy(times, "MB")
    over = statistics.median(peaks) - statistics.median(numpy for numpy, *_ in times)
    return measured._replace(notes=[*measured.notes, f"at the peak {over:+.0f} MB"])


def over_numpy(rounds: list[tuple[float, ...]], unit: str) -> Measured:
    """What an encoder adds; `rounds` has a value for each of `VARIANTS`."""
    numpy, *added = (statistics.median(column) for column in zip(*rounds, strict=True))
    _, without, first_ids = (median - numpy for median in added)
    note = (
        f"numpy alone {numpy:.0f} {unit}, and imported on both sides; as long as fasttok has not needed it "
        f"{without:+.0f} {unit}; with the first ids {first_ids:+.0f} {unit}"
    )
    return Measured([encoder - numpy for numpy, encoder, *_ in rounds], [note])
