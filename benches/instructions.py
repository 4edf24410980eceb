"""Compares how many instructions two commits need for each stage, from text and values to ids.

    python benches/instructions.py main
    python benches/instructions.py v0.1.0 my-branch

Instructions do not depend on what else the machine does, so a change of one per cent shows. They are not time: waiting
for memory costs none. Only what is committed is compared. Needs valgrind, and builds both commits.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fasttok.cli.run import run

ROOT = Path(__file__).parents[1]
BENCH = "benches/instructions.rs"


class ComparisonError(Exception):
    """Why two commits cannot be compared, as the command line prints it."""


def git(*arguments: str, within: Path = ROOT) -> str:
    command = ["git", "-C", str(within), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ComparisonError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def commit(name: str) -> str:
    """The full hash of a commit that has the bench."""
    try:
        found = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except ComparisonError:
        raise ComparisonError(f"expected a commit, found {name!r}") from None
    if not git("ls-tree", found, "--", BENCH):
        raise ComparisonError(f"{name} has no {BENCH}, so its instructions cannot be counted")
    return found


@contextmanager
def worktree(at: str, folder: Path) -> Generator[None]:
    git("worktree", "add", "--detach", str(folder), at)
    try:
        yield
    finally:
        git("worktree", "remove", "--force", str(folder))


def build(source: Path, target: Path, program: Path) -> None:
    """Builds the bench of `source` and copies it to `program`."""
    command = ["cargo", "bench", "--bench", "instructions", "--no-run", "--message-format=json-render-diagnostics"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    done = subprocess.run(command, cwd=source, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ComparisonError(f"cargo bench failed with status {done.returncode}")
    for line in done.stdout.splitlines():
        message: dict[str, Any] = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "instructions":
            shutil.copy(message["executable"], program)
            return
    raise ComparisonError("cargo named no program among what it built")


def stages(program: Path) -> list[str]:
    """The names of the stages; runs each once."""
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ComparisonError(f"{program.name} failed: {done.stderr.strip()}")
    return done.stdout.splitlines()


def count(program: Path, stage: str, scratch: Path) -> int:
    """The instructions of one run of `stage`, without those that prepare it."""
    output = f"--callgrind-out-file={scratch / 'callgrind.out'}"
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=*instructions::counted*", output, str(program), stage]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None or found[1] == "0":
        raise ComparisonError(f"valgrind counted nothing in {program.name}, stage {stage!r}: {done.stderr.strip()}")
    return int(found[1])


def table(names: tuple[str, str], counts: dict[str, tuple[int | None, int | None]]) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column("stage")
    for heading in (*names, "change"):
        shown.add_column(heading, justify="right")
    for stage, (base, head) in counts.items():
        change = f"{(head - base) / base:+.2%}" if base and head else ""
        shown.add_row(stage, *("" if number is None else f"{number:,}" for number in (base, head)), change)
    return shown


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def instructions(
    base: Annotated[str, typer.Argument(metavar="BASE", help="The commit to compare with.")],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="The commit to compare.")] = "HEAD",
) -> None:
    """Count the instructions that two commits need for each stage, on the example conversations of HEAD."""
    for program, package in (("valgrind", "valgrind"), ("cargo", "rust")):
        if shutil.which(program) is None:
            raise ComparisonError(f"{program} is not installed: get it from your system's package {package!r}")
    hashes = (commit(base), commit(head))
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
    with tempfile.TemporaryDirectory(prefix="fasttok-instructions-") as folder:
        scratch = Path(folder)
        # One place for both, so that both read the same example conversations, and paths are equally long.
        source = scratch / "source"
        programs = (scratch / "base", scratch / "head")
        with worktree(hashes[0], source):
            build(source, target, programs[0])
            git("checkout", "--quiet", "--detach", hashes[1], within=source)
            build(source, target, programs[1])
            counts: dict[str, tuple[int | None, int | None]] = {}
            known = [stages(program) for program in programs]
            for stage in dict.fromkeys(name for names in known for name in names):
                found = [
                    count(program, stage, scratch) if stage in names else None
                    for program, names in zip(programs, known, strict=True)
                ]
                counts[stage] = (found[0], found[1])
    Console(markup=False, emoji=False, highlight=False).print(table((hashes[0][:10], hashes[1][:10]), counts))


def main() -> int:
    return run(app, "benches/instructions.py", failures=(ComparisonError,))


if __name__ == "__main__":
    sys.exit(main())
