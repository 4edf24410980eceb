"""What the Python benches run on."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples" / "trajectories.jsonl"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--trajectories",
        type=Path,
        default=EXAMPLES,
        metavar="FILE",
        help="conversations to encode: JSONL, or JSONL in zstd (default: the examples)",
    )


@pytest.fixture(scope="session")
def conversations(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    path = cast(Path, request.config.getoption("--trajectories"))
    content = path.read_bytes()
    if path.suffix == ".zst":
        import zstandard

        content = zstandard.ZstdDecompressor().stream_reader(content).read()
    return [json.loads(line) for line in content.splitlines()]
