"""The libraries that fasttok is compared with, by the names that `--against` takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fasttok import Encoder
from fasttok.bench.chat_template import chat_template, known_templates
from fasttok.bench.contender import Contender
from fasttok.bench.vocabulary import Vocabulary
from fasttok.bench.workload import Workload

if TYPE_CHECKING:
    from fasttok.bench.transformers import ChatTemplate

# What each imports. Where a package is called otherwise than its module, `PACKAGES` says how.
PEERS: Mapping[str, tuple[str, ...]] = {
    "hf": ("transformers", "jinja2"),
    "hf-per-message": ("transformers", "jinja2"),
    "jinja-tiktoken": ("jinja2", "tiktoken"),
    "tiktoken": ("tiktoken",),
    "gigatoken": ("gigatoken",),
    "splintr": ("splintr",),
}
PACKAGES = {"splintr": "splintr-rs"}


class UnavailableError(Exception):
    """A peer cannot take part, and why."""


def package(module: str) -> str:
    return PACKAGES.get(module, module)


def require(name: str) -> None:
    missing = [package(module) for module in PEERS[name] if find_spec(module) is None]
    if missing:
        raise UnavailableError(f"not installed: pip install {' '.join(missing)}")


@dataclass(frozen=True)
class Peers:
    """Makes them for one workload. `pool_size` is how many threads have those that fix it for the whole process."""

    encoder: Encoder
    workload: Workload
    vocabulary: Vocabulary
    hf_model: str | None
    pool_size: int

    def peer(self, name: str) -> Contender:
        """Raises UnavailableError."""
        require(name)
        # A library is imported where it is needed, and its absence is known by now.
        match name:
            case "hf":
                from fasttok.bench.transformers import OneCall

                return OneCall(self.workload, self.hf_tokenizer)
            case "hf-per-message":
                from fasttok.bench.transformers import CallPerMessage

                return CallPerMessage(self.workload, self.hf_tokenizer)
            case "jinja-tiktoken":
                from fasttok.bench.jinja2 import JinjaTiktoken

                return JinjaTiktoken(self.workload, self.vocabulary, self.encoder.template, self.template)
            case "tiktoken":
                from fasttok.bench.tiktoken import Tiktoken

                return Tiktoken(self.workload, self.vocabulary)
            case "gigatoken":
                from fasttok.bench.gigatoken import Gigatoken

                return Gigatoken(self.workload, self.vocabulary, self.pool_size)
            case "splintr":
                from fasttok.bench.splintr import Splintr

                return Splintr(self.workload, self.encoder.template, self.pool_size)
            case _:
                raise KeyError(name)

    @property
    def template(self) -> str:
        found = chat_template(self.encoder.template)
        if found is None:
            known = ", ".join(known_templates())
            raise UnavailableError(f"there is no chat template in Jinja for {self.encoder.template}, but for {known}")
        return found

    @cached_property
    def hf_tokenizer(self) -> "ChatTemplate":
        from fasttok.bench.transformers import ChatTemplate, converted, shipped

        if self.hf_model is not None:
            return ChatTemplate(shipped(self.hf_model), None)
        return ChatTemplate(converted(self.vocabulary, self.template), self.encoder.template)
