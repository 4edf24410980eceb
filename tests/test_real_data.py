"""Real conversations against digests of what the models' own code yields for them: every id and every mask bit.

`conftest.py` leaves this file out where the data is not there, and says so at the end of the run.
"""

import gzip
import hashlib
import io
import json
import re
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
SETUPS: dict[str, tuple[str, dict[str, Any]]] = {
    "kimi-k2": ("Kimi-K2-Instruct", {}),
    "kimi-k2-thinking": ("Kimi-K2-Thinking", {}),
    "kimi-k2.5": ("Kimi-K2.5", {}),
    "kimi-k2.6": ("Kimi-K2.6", {}),
    "kimi-k2.6-preserve": ("Kimi-K2.6", {"preserve_thinking": True}),
    "kimi-k2.7-code": ("Kimi-K2.7-Code", {}),
    "kimi-k3": ("Kimi-K3", {}),
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

    batch = encoders[setup.removesuffix("-preserve")].encode_batch(records, **options)
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


@pytest.mark.parametrize("number", range(14))
def test_what_trains_is_what_a_third_party_saw_the_model_emit(digests: Path, number: int) -> None:
    cases = json.loads((digests / "independent" / "canitoolcall.json").read_text())
    assert len(cases) == 14
    case = cases[number]
    encoder = Encoder(case["model"])
    messages = [{"role": "user", "content": "What is the weather?"}, case["assistant"]]
    one = encoder.encode_conversation(messages, **case["kwargs"])
    emitted = one.input_ids[one.loss_mask == 1].tolist()
    # The token that ends a message, which the third party leaves out.
    assert emitted == [*case["output_token_ids"], 163_586], case["id"]


@pytest.mark.parametrize("name", ["standard", "reasoning-multi-turn"])
@pytest.mark.parametrize("model", ["kimi-k2-instruct", "kimi-k2-thinking"])
def test_specforge_has_the_same_ids_and_the_structural_mask(
    assistant_mask: AssistantMask, digests: Path, model: str, name: str
) -> None:
    expected = json.loads((digests / "independent" / f"{model}_{name}_ref.json").read_text())
    encoder = Encoder(model)
    text = encoder.tokenizer.decode(expected["input_ids"])
    turns = re.findall(r"<\|im_\w+\|>(\w+)<\|im_middle\|>(?:<think></think>)?(.*?)<\|im_end\|>", text, re.DOTALL)
    assert [role for role, _ in turns] == ["system", "user", "assistant", "user", "assistant"]
    one = encoder.encode_conversation([{"role": role, "content": content} for role, content in turns])
    assert one.input_ids.tolist() == expected["input_ids"]
    assert assistant_mask(one).tolist() == expected["loss_mask"]
    assert one.mask("specforge").tolist() == expected["loss_mask"]


WEATHER = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
CALL = {"id": "a", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
SMG: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "plain_user_thinking": ([{"role": "user", "content": "Hi"}], {}),
    "system_user_thinking": (
        [{"role": "system", "content": "You are helpful"}, {"role": "user", "content": "Hi"}],
        {},
    ),
    "plain_user_no_thinking": ([{"role": "user", "content": "Hi"}], {"thinking": False}),
    "assistant_prior_turn": (
        [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "Bye"},
        ],
        {},
    ),
    "with_tools": ([{"role": "user", "content": "weather in Paris?"}], {"tools": WEATHER}),
    "assistant_tool_call_then_result": (
        [
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "a", "content": "sunny"},
        ],
        {"tools": WEATHER},
    ),
    "thinking_effort_low": ([{"role": "user", "content": "Hi"}], {"thinking_effort": "low"}),
}


@pytest.mark.parametrize("name", SMG)
def test_k3_has_the_segments_of_a_third_party(encoders: dict[str, Encoder], digests: Path, name: str) -> None:
    fixtures = json.loads((digests / "independent" / "smg_k3_render_fixtures.json").read_text())
    assert fixtures.keys() == SMG.keys()
    messages, options = SMG[name]
    options: dict[str, Any] = {"thinking_effort": None, "add_generation_prompt": True, **options}
    encoder = encoders["kimi-k3"]
    assert encoder.render(messages, **options) == fixtures[name]["text"]
    expected: list[int] = []
    for segment in fixtures[name]["segments"]:
        tokenizer = encoder.tokenizer
        encode = tokenizer.encode_with_special_tokens if segment["allow_special"] else tokenizer.encode_ordinary
        expected += encode(segment["text"]).tolist()
    assert encoder.encode_conversation(messages, **options).input_ids.tolist() == expected
