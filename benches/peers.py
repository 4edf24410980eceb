"""Other tokenizers with Kimi's vocabulary, to measure against: those of `fasttok-bench`, if what they need is there.

Neither makes the cuts of Kimi's own tokenizer, so a conversation with very long text may get other ids; whoever times
must compare first.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timing import MeasurementError

from fasttok import Encoder
from fasttok.bench.chat_template import chat_template
from fasttok.bench.vocabulary import Vocabulary

if TYPE_CHECKING:
    from fasttok.bench.transformers import ChatTemplate


def installed(name: str) -> Any:
    """A module that is not among the project's own requirements, or needs one that is not."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MeasurementError(f"{error.name} is not installed: pip install {error.name}") from None


def gigatoken_tokenizer(encoder: Encoder, folder: Path) -> Any:
    return installed("fasttok.bench.gigatoken").fresh_tokenizer(Vocabulary(encoder.tokenizer, folder))


def huggingface_template(encoder: Encoder, folder: Path) -> "ChatTemplate":
    installed("jinja2")
    transformers = installed("fasttok.bench.transformers")
    tokenizer = transformers.converted(Vocabulary(encoder.tokenizer, folder), chat_template(encoder.template))
    return transformers.ChatTemplate(tokenizer, encoder.template)
