"""Kimi's chat templates in Jinja, and what the models' own wrapper hands to them."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from fasttok.bench.typescript import namespace

FOLDER = files("fasttok.bench") / "chat_templates"
SUFFIX = ".jinja"
DECLARED_AS_JSON = ("kimi-k2", "kimi-k2-thinking")


def known_templates() -> list[str]:
    return sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.iterdir() if path.name.endswith(SUFFIX))


def chat_template(name: str) -> str | None:
    """The Jinja text of a template, None if there is none: Kimi-K3 has none, and renders in Python."""
    return (FOLDER / (name + SUFFIX)).read_text(encoding="utf-8") if name in known_templates() else None


def wrapper_variables(name: str, tools: Sequence[Any] | None) -> dict[str, Any]:
    """The variables besides the messages and the tools. From Kimi-K2.5 on the wrapper declares tools in TypeScript."""
    if not tools or name in DECLARED_AS_JSON:
        return {}
    return {"declaration": namespace(tools)}
