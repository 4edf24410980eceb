"""Measures the figures of the README's section on speed anew: `python benches/refresh.py TRAJECTORIES`.

Writes both tables into the README, of the examples and of the trajectories, a JSONL file, and both pictures into
`docs/images/`. What is installed is what is measured.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
IMAGES = ROOT / "docs" / "images"
# What each table is of.
EXAMPLES, TRAJECTORIES = "examples", "trajectories"


def measured(*options: str | Path) -> str:
    command = [sys.executable, "-m", "fasttok.bench", *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def with_table(readme: str, of: str, table: str) -> str:
    place = re.compile(rf"(?<=<!-- measured: {of} -->\n```text\n)(?:(?!```).*\n)*")
    if not place.search(readme):
        sys.exit(f"error: README.md: expected a table below <!-- measured: {of} -->")
    return place.sub(lambda _: table, readme, count=1)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python benches/refresh.py TRAJECTORIES")
    readme = README.read_text(encoding="utf-8")
    for of in (EXAMPLES, TRAJECTORIES):
        with_table(readme, of, "")
    readme = with_table(readme, EXAMPLES, measured("--plot", IMAGES / "speed.svg"))
    against = ("--against", "tiktoken,gigatoken,splintr")
    readme = with_table(readme, TRAJECTORIES, measured("--data", sys.argv[1], *against))
    README.write_text(readme, encoding="utf-8")
    measured("--scaling", "--plot", IMAGES / "scaling.svg")


if __name__ == "__main__":
    main()
