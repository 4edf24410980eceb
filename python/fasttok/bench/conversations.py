"""The conversations that are timed: those of a file, or the examples that come with the package."""

import gzip
import io
import json
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias, cast

from fasttok.bench.error import BenchError

# In a checkout this is a link to `examples/`; the build puts the file itself into the package.
EXAMPLES = files("fasttok.bench") / "trajectories.jsonl"
EXAMPLES_NAME = "the example conversations"

Conversation: TypeAlias = dict[str, Any]


def read_conversations(path: Path | None) -> list[Conversation]:
    name = EXAMPLES_NAME if path is None else str(path)
    try:
        content = EXAMPLES.read_bytes() if path is None else path.read_bytes()
        lines = decompressed(content).splitlines()
    except (OSError, EOFError, zlib.error) as error:
        # What the system says of a file names it already.
        raise BenchError(str(error) if isinstance(error, OSError) and error.filename else f"{name}: {error}") from None
    conversations = [conversation(line, f"{name}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not conversations:
        raise BenchError(f"{name}: expected conversations, one a line, found an empty file")
    return conversations


def decompressed(content: bytes) -> bytes:
    """Told apart by content, as in `fasttok prepare`."""
    if content.startswith(b"\x1f\x8b"):
        return gzip.decompress(content)
    if content.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            import zstandard
        except ImportError:
            raise BenchError("reading zstd needs zstandard: pip install zstandard") from None
        try:
            with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content), read_across_frames=True) as reader:
                return reader.read()
        except zstandard.ZstdError as error:
            raise OSError(str(error)) from None
    return content


def conversation(line: bytes, place: str) -> Conversation:
    try:
        value: object = json.loads(line)
    except ValueError as error:
        raise BenchError(f"{place}: expected JSON: {error}") from None
    if isinstance(value, list):
        value = cast(Conversation, {"messages": value})
    if not isinstance(value, dict) or not isinstance(cast(Conversation, value).get("messages"), list):
        raise BenchError(f'{place}: expected an object with a list of "messages"')
    return cast(Conversation, value)
