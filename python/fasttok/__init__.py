"""Chats into training tokens: the exact ids of Kimi's chat templates, and loss masks from structure."""

from abc import ABCMeta as _ABCMeta
from collections.abc import Mapping as _Mapping
from typing import cast as _cast

from fasttok import types
from fasttok._core import (
    EncodedBatch,
    EncodedConversation,
    Encoder,
    FasttokError,
    Finding,
    Span,
    Spans,
    Tokenizer,
    __version__,
    encode_conversation,
    prepare,
    verify,
)

# So that code which asks for a mapping, such as PyTorch's default collate function, takes one.
_cast(_ABCMeta, _Mapping).register(EncodedConversation)

__all__ = [
    "EncodedBatch",
    "EncodedConversation",
    "Encoder",
    "FasttokError",
    "Finding",
    "Span",
    "Spans",
    "Tokenizer",
    "__version__",
    "encode_conversation",
    "prepare",
    "types",
    "verify",
]
