"""Measures the figures of the README's section on speed anew: `python benches/refresh.py`.

Writes the table into the README, and both pictures into `docs/images/`. What is installed is what is measured.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
IMAGES = ROOT / "docs" / "images"
TABLE = re.compile(r"(?<=<!-- measured -->\n```text\n)(?:(?!```).*\n)*")


def measured(*options: str | Path) -> str:
    command = [sys.executable, "-m", "fasttok.bench", *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def main() -> None:
    readme = README.read_text(encoding="utf-8")
    if not TABLE.search(readme):
        sys.exit("error: README.md: expected a table below <!-- measured -->")
    table = measured("--plot", IMAGES / "speed.svg")
    README.write_text(TABLE.sub(lambda _: table, readme, count=1), encoding="utf-8")
    measured("--scaling", "--plot", IMAGES / "scaling.svg")


if __name__ == "__main__":
    main()
