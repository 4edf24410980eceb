"""What several test files use: encoders, the structural mask, a model folder, and where the real data lies."""

import base64
import json
import os
import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from fasttok import EncodedConversation, Encoder
from fasttok.bench.peers import PEERS, package

# The data is other people's work and not in the repository; a checkout without it runs everything else.
DATA = Path(os.environ.get("FASTTOK_DATA", Path(__file__).parents[2] / "shared" / "data"))
DIGESTS = DATA.parent / "golden"
MODELS = (
    "kimi-k2-0711",
    "kimi-k2",
    "kimi-k2-thinking",
    "kimi-k2.5",
    "kimi-k2.6",
    "kimi-k2.7-code",
    "kimi-k3",
    "kimi-linear",
    "kimi-vl",
    "moonlight",
)
collect_ignore = [] if DATA.is_dir() and DIGESTS.is_dir() else ["test_real_data.py"]

# A loaded machine is slow now and then, which says nothing about the code.
settings.register_profile("fasttok", deadline=None)
settings.load_profile("fasttok")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if collect_ignore:
        terminalreporter.write_line(
            f"NOT RUN: the check against real conversations, since {DATA} or {DIGESTS} is not there "
            "(FASTTOK_DATA names the folder)"
        )
    libraries = dict.fromkeys([*(module for modules in PEERS.values() for module in modules), "matplotlib"])
    if missing := [package(module) for module in libraries if find_spec(module) is None]:
        terminalreporter.write_line(f"NOT RUN: fasttok-bench with {', '.join(missing)}: pip install '.[bench]'")


@pytest.fixture(scope="session")
def data() -> Path:
    return DATA


@pytest.fixture(scope="session")
def digests() -> Path:
    return DIGESTS


@pytest.fixture(scope="session")
def encoders() -> dict[str, Encoder]:
    return {name: Encoder(name) for name in MODELS}


@pytest.fixture(scope="session")
def text_encoders(encoders: dict[str, Encoder]) -> dict[str, Encoder]:
    """Those whose template renders to one text, which is then encoded: all but K3's."""
    return {name: encoder for name, encoder in encoders.items() if name != "kimi-k3"}


@pytest.fixture(scope="session")
def encoder(encoders: dict[str, Encoder]) -> Encoder:
    return encoders["kimi-k2.5"]


@pytest.fixture(scope="session")
def assistant_mask() -> Callable[[EncodedConversation], NDArray[np.uint8]]:
    """The mask of the reference data: 1 on all that follows an assistant header, up to and including the end token."""

    def mask_of(one: EncodedConversation) -> NDArray[np.uint8]:
        mask = np.zeros(len(one.input_ids), np.uint8)
        for span in one.spans:
            mask[span.start : span.end] = span.role == "assistant" and span.part != "header"
        return mask

    return mask_of


@pytest.fixture(scope="session")
def model_folder(encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer files of a model repository, made from the vocabulary in the package."""
    tokenizer = encoder.tokenizer
    folder = tmp_path_factory.mktemp("models") / "Kimi-K2.6"
    folder.mkdir()
    with (folder / "tiktoken.model").open("wb") as file:
        for rank in range(163_584):
            file.write(base64.b64encode(tokenizer.decode_bytes([rank])) + f" {rank}\n".encode())
    added = {str(token): {"content": name} for name, token in tokenizer.special_tokens.items()}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    return folder


@pytest.fixture
def heeded_ctrl_c() -> Iterator[None]:
    """Ctrl-C as in a foreground job: whoever runs the tests in the background has it ignored, children included."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
