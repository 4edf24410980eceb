"""Kills `fasttok prepare` at random moments, runs it again, and compares what it made with an undisturbed run.

    python tests/kill.py chats.jsonl --runs 30 --repeat 4

Each run is killed (SIGKILL) up to three times before it may finish. Every file of the folder must be the same, byte for
byte. Prints a line a run, and fails at the first difference.
"""

import argparse
import hashlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

MOST_KILLS = 3


def command(source: Path, folder: Path, options: Sequence[str]) -> list[str]:
    fasttok = [sys.executable, "-m", "fasttok", "prepare", str(source), "-o", str(folder)]
    return [*fasttok, "--model", "kimi-k2.5", "--quiet", *options]


def digests(folder: Path) -> dict[str, str]:
    """The sha256 of every file, hidden ones too, by its path in the folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def undisturbed(source: Path, folder: Path, options: Sequence[str]) -> tuple[dict[str, str], float]:
    """What a run makes that nobody kills, and the seconds that it takes."""
    started = time.monotonic()
    run(source, folder, options)
    seconds = time.monotonic() - started
    assert (folder / "manifest.json").is_file()
    return digests(folder), seconds


def run(source: Path, folder: Path, options: Sequence[str]) -> None:
    status = subprocess.run(command(source, folder, options), check=False).returncode
    # 1 says that some records were rejected.
    assert status in (0, 1), f"exit status {status}"


def killed(source: Path, folder: Path, options: Sequence[str], seconds: float) -> bool:
    """Whether a run was killed after these seconds, before it ended by itself."""
    process = subprocess.Popen(command(source, folder, options))
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def disturbed(source: Path, folder: Path, options: Sequence[str], longest: float, rng: random.Random) -> list[str]:
    """Kills a run some times, lets it finish, and says when each kill came and how much of the output was saved."""
    kills: list[str] = []
    for _ in range(rng.randint(1, MOST_KILLS)):
        seconds = rng.uniform(0, longest)
        if not killed(source, folder, options, seconds):
            break
        partial = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        kills.append(f"{seconds:.2f} s ({partial / 1e6:.0f} MB)")
    run(source, folder, options)
    return kills


def repeated(source: Path, times: int, folder: Path) -> Path:
    if times == 1:
        return source
    target = folder / f"repeated{source.suffix}"
    with target.open("wb") as file:
        for _ in range(times):
            file.write(source.read_bytes())
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="conversations, as JSON lines")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--repeat", type=int, default=1, help="write the source so many times over, for longer runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("options", nargs="*", help="options of fasttok prepare, after --")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    kills = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = repeated(arguments.source, arguments.repeat, folder)
        expected, seconds = undisturbed(source, folder / "undisturbed", arguments.options)
        print(f"undisturbed: {seconds:.2f} s, {len(expected)} files")
        for index in range(arguments.runs):
            output = folder / f"run{index}"
            moments = disturbed(source, output, arguments.options, seconds, rng)
            assert digests(output) == expected, f"run {index}, killed after {moments}, made something else"
            kills += len(moments)
            print(f"run {index}: killed after {', '.join(moments) or 'nothing'}; the same bytes", flush=True)
            shutil.rmtree(output)
    print(f"{arguments.runs} runs, {kills} kills: every output is the undisturbed one, byte for byte")


if __name__ == "__main__":
    main()
