"""How fast do conversations become ids and masks, from Python dicts, beside tiktoken on the same rendered text?

Nothing is timed before the ids are equal: those of the golden conversations to the reference's, and those of the
conversations that are timed to tiktoken's. tiktoken only tokenizes; the rendering is done for it.
"""

# pytest-benchmark carries no types.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tiktoken
from peers import PATTERN, RANKS, special_tokens
from pytest_benchmark.fixture import BenchmarkFixture

from fasttok import Encoder

MODEL = "kimi-k2.5"

# A run over one and the same input, so that the median says how fast and not how often.
ROUNDS = 5


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(MODEL)


@pytest.fixture(scope="module")
def reference(encoder: Encoder) -> tiktoken.Encoding:
    ranks = {encoder.tokenizer.decode_bytes([rank]): rank for rank in range(RANKS)}
    return tiktoken.Encoding(MODEL, pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special_tokens(encoder))


class Timed(NamedTuple):
    """Conversations that both sides encode to the same ids, and their rendered text."""

    conversations: list[dict[str, Any]]
    texts: list[str]


@pytest.fixture(scope="module")
def timed(encoder: Encoder, reference: tiktoken.Encoding, conversations: list[dict[str, Any]]) -> Timed:
    """A mismatch is shown, and not timed: tiktoken does not cut long runs of text as the models' own code does."""
    timed = Timed([], [])
    encoded = encoder.encode_batch(conversations)
    for index, conversation in enumerate(conversations):
        text = encoder.render(conversation["messages"], tools=conversation.get("tools"))
        if encoded[index].input_ids.tolist() == reference.encode(text, allowed_special="all"):
            timed.conversations.append(conversation)
            timed.texts.append(text)
        else:
            print(f"not timed: conversation {index}, which tiktoken encodes otherwise")
    assert len(timed.texts) >= 0.98 * len(conversations)
    return timed


@pytest.fixture(scope="module", autouse=True)
def golden_cases_are_equal(encoder: Encoder) -> None:
    path = Path(__file__).parents[1] / "tests" / "golden" / "fuzz.jsonl.gz"
    checked = 0
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for case in map(json.loads, file):
            if case["model"].lower() != MODEL or {"error", "fasttok_error", "fasttok_text"} & case.keys():
                continue
            options: dict[str, Any] = case.get("options") or {}
            one = encoder.encode_conversation(case["messages"], tools=case.get("tools"), **options)
            assert np.array_equal(one.input_ids, case["input_ids"]), case["case"]
            checked += 1
    assert checked > 100


def report(benchmark: BenchmarkFixture, texts: list[str]) -> None:
    """Adds MB/s of rendered text to the saved figures, and prints it."""
    size = sum(len(text.encode()) for text in texts)
    if benchmark.stats is not None:
        median = float(benchmark.stats.stats.median)  # pyright: ignore[reportArgumentType]
        benchmark.extra_info["MB/s"] = round(size / median / 1e6, 1)
        benchmark.extra_info["MB"] = round(size / 1e6, 3)
        print(f"{benchmark.name}: {size / median / 1e6:.1f} MB/s of {size / 1e6:.1f} MB rendered text")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.benchmark(group="conversations to ids")
def test_fasttok(
    benchmark: BenchmarkFixture,
    encoder: Encoder,
    timed: Timed,
    threads: int,
) -> None:
    batch = benchmark.pedantic(
        encoder.encode_batch, (timed.conversations,), {"num_threads": threads}, rounds=ROUNDS, warmup_rounds=1
    )
    assert len(batch) == len(timed.conversations)
    report(benchmark, timed.texts)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.benchmark(group="conversations to ids")
def test_tiktoken(benchmark: BenchmarkFixture, reference: tiktoken.Encoding, timed: Timed, threads: int) -> None:
    ids = benchmark.pedantic(
        reference.encode_batch,
        (timed.texts,),
        {"num_threads": threads, "allowed_special": "all"},
        rounds=ROUNDS,
        warmup_rounds=1,
    )
    assert len(ids) == len(timed.texts)
    report(benchmark, timed.texts)
