"""Kimi's vocabulary, taken out of fasttok for the libraries that it is compared with."""

import base64
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fasttok import Tokenizer

RANKS = 163_584

# The pattern as the models' own `tokenization_kimi.py` gives it to tiktoken.
PATTERN = "|".join(
    [
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


@dataclass(frozen=True)
class Vocabulary:
    """The ranks of a tokenizer and its special tokens, reserved ones included. `folder` is for files made of them."""

    tokenizer: Tokenizer
    folder: Path

    @cached_property
    def ranks(self) -> dict[bytes, int]:
        return {self.tokenizer.decode_bytes([rank]): rank for rank in range(RANKS)}

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        """In the order of their ids, without a gap."""
        return {self.tokenizer.decode([token]): token for token in range(RANKS, len(self.tokenizer))}

    @cached_property
    def tiktoken_file(self) -> Path:
        """A file in the form of the models' own `tiktoken.model`."""
        path = self.folder / "tiktoken.model"
        with path.open("wb") as file:
            for token, rank in self.ranks.items():
                file.write(b"%s %d\n" % (base64.b64encode(token), rank))
        return path
