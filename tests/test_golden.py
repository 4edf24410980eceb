"""Every file of `tests/golden/`, read through Python: what the models' own code yields must be what fasttok yields."""

import gzip
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fasttok import EncodedConversation, Encoder, FasttokError

GOLDEN = Path(__file__).parent / "golden"
FOLDERS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())

AssistantMask = Callable[[EncodedConversation], NDArray[np.uint8]]
Case = dict[str, Any]


def lines(name: str) -> list[Case]:
    with gzip.open(GOLDEN / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


GRAMMAR = [(model, path) for model in FOLDERS for path in sorted((GOLDEN / model).glob("*.json"))]
FUZZ = lines("fuzz.jsonl.gz")
SHORT_TEXTS = lines("tokenizer.jsonl.gz")
LONG_TEXTS: dict[str, Case] = json.loads((GOLDEN / "tokenizer_long.json").read_text())


def test_no_case_is_lost() -> None:
    assert len(GRAMMAR) >= 303
    assert (len(FUZZ), len(SHORT_TEXTS), len(LONG_TEXTS)) == (1500, 2323, 7)


def check(encoder: Encoder, case: Case, assistant_mask: AssistantMask) -> None:
    def encode() -> EncodedConversation:
        return encoder.encode_conversation(case["messages"], tools=case.get("tools"), **options)

    options: dict[str, Any] = case.get("options") or {}
    if "fasttok_error" in case:
        with pytest.raises(FasttokError) as raised:
            encode()
        assert str(raised.value) == case["fasttok_error"]
        return
    assert "error" not in case, "the reference raises, and the file does not say what fasttok does"
    text = encoder.render(case["messages"], tools=case.get("tools"), **options)
    assert text == case.get("fasttok_text", case["text"])
    if "fasttok_text" in case:
        return
    one = encode()
    assert one.input_ids.tolist() == case["input_ids"]
    if case.get("assistant_mask") is not None:
        assert assistant_mask(one).tolist() == case["assistant_mask"]


@pytest.mark.parametrize(("model", "path"), GRAMMAR, ids=[f"{model}/{path.stem}" for model, path in GRAMMAR])
def test_grammar(encoders: dict[str, Encoder], assistant_mask: AssistantMask, model: str, path: Path) -> None:
    check(encoders.get(model) or Encoder(model), json.loads(path.read_text(encoding="utf-8")), assistant_mask)


@pytest.mark.parametrize("case", FUZZ, ids=[f"{case['model'].lower()}/{case['case']}" for case in FUZZ])
def test_fuzz(encoders: dict[str, Encoder], assistant_mask: AssistantMask, case: Case) -> None:
    model = case["model"].lower().removesuffix("-instruct")
    check(encoders[model], case, assistant_mask)


@pytest.mark.parametrize("case", SHORT_TEXTS, ids=[f"line{number}" for number in range(1, len(SHORT_TEXTS) + 1)])
def test_short_texts_on_all_three_ways_to_ids(encoder: Encoder, case: Case) -> None:
    tokenizer, text = encoder.tokenizer, case["text"]
    ordinary = case["ordinary"]
    served = case.get("serving", ordinary)
    direct = case.get("direct", served)
    assert tokenizer.encode_ordinary(text).tolist() == ordinary
    assert tokenizer.encode_as_served(text).tolist() == served
    assert tokenizer.encode_with_special_tokens(text).tolist() == direct
    for ids in (ordinary, served, direct):
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode_bytes(ids) == text.encode()


@pytest.mark.parametrize("way", ["none", "serving", "direct"])
@pytest.mark.parametrize("name", LONG_TEXTS)
def test_long_texts_on_all_three_ways_to_ids(encoder: Encoder, name: str, way: str) -> None:
    case = LONG_TEXTS[name]
    # The strings are too long for a file, so it holds Python expressions; one of them draws from `random`.
    text: str = eval(case["python"], {"random": random})
    assert len(text) == case["chars"]
    tokenizer = encoder.tokenizer
    encode = {
        "none": tokenizer.encode_ordinary,
        "serving": tokenizer.encode_as_served,
        "direct": tokenizer.encode_with_special_tokens,
    }[way]
    ids = encode(text)
    compact = json.dumps(ids.tolist(), separators=(",", ":")).encode()
    assert (len(ids), hashlib.sha256(compact).hexdigest()) == (case[way]["n"], case[way]["sha256"])
    assert tokenizer.decode(ids) == text
