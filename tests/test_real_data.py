"""Real conversations against digests of what the models' own code yields for them: every id and every mask bit.

`conftest.py` leaves this file out where the data is not there, and says so at the end of the run.
"""

import gzip
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from numpy.typing import NDArray

from fasttok import EncodedConversation, Encoder

AssistantMask = Callable[[EncodedConversation], NDArray[np.uint8]]

RECORDS = {"trajectories": 551, "chat": 1804, "multilingual": 5688}
SETUPS: dict[str, tuple[str, dict[str, bool]]] = {
    "kimi-k2.5": ("Kimi-K2.5", {}),
    "kimi-k2.6": ("Kimi-K2.6", {}),
    "kimi-k2.6-preserve": ("Kimi-K2.6", {"preserve_thinking": True}),
}


def read_records(path: Path) -> list[bytes]:
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as plain:
        return list(io.BufferedReader(plain))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("corpus", RECORDS)
def test_every_record_has_the_ids_and_the_mask_of_the_reference(
    encoders: dict[str, Encoder], assistant_mask: AssistantMask, data: Path, digests: Path, corpus: str, setup: str
) -> None:
    model, options = SETUPS[setup]
    expected: dict[str, dict[str, Any]] = {}
    with gzip.open(digests / f"digest_{corpus}.jsonl.gz", "rt", encoding="utf-8") as file:
        for digest in map(json.loads, file):
            if (digest["model"], digest["options"]) == (model, options):
                expected[digest["id"]] = digest
    records = read_records(data / f"{corpus}.jsonl.zst")
    assert len(records) == len(expected) == RECORDS[corpus]

    batch = encoders[model.lower()].encode_batch(records, **options)
    for record, one in zip(records, batch, strict=True):
        name = json.loads(record)["id"]
        mask = assistant_mask(one)
        found = {
            "n_tokens": len(one.input_ids),
            "n_assistant": int(mask.sum()),
            "sha256": sha256(",".join(map(str, one.input_ids.tolist())).encode()),
            "mask_sha256": sha256(mask.tobytes()),
        }
        assert found == {key: expected[name][key] for key in found}, name
        # What trains is a part of the structural mask, never more.
        assert np.all(one.loss_mask <= mask), name


@pytest.mark.parametrize("number", range(5))
def test_what_trains_is_what_a_third_party_saw_the_model_emit(
    encoders: dict[str, Encoder], digests: Path, number: int
) -> None:
    cases = json.loads((digests / "independent" / "canitoolcall.json").read_text())
    cases = [case for case in cases if case["model"] == "Kimi-K2.6"]
    assert len(cases) == 5
    case = cases[number]
    messages = [{"role": "user", "content": "What is the weather?"}, case["assistant"]]
    one = encoders["kimi-k2.6"].encode_conversation(messages, **case["kwargs"])
    emitted = one.input_ids[one.loss_mask == 1].tolist()
    assert emitted == [*case["output_token_ids"], 163_586], case["id"]
