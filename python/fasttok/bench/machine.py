"""What the figures were measured on."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypedDict

import fasttok
from fasttok.bench.peers import PEERS, package


class Machine(TypedDict):
    cpu: str
    cores: int
    system: str
    python: str
    load_average: list[float]
    versions: dict[str, str]


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, None) or platform.processor() or platform.machine()


def usable_cores() -> int:
    """Those that this process may use, of which a container may have fewer than the machine."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def versions() -> dict[str, str]:
    found = {"fasttok": fasttok.__version__}
    for name in ("numpy", "tokenizers", *sorted({package(module) for modules in PEERS.values() for module in modules})):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> Machine:
    return Machine(
        cpu=cpu_model(),
        cores=usable_cores(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        load_average=list(os.getloadavg()) if hasattr(os, "getloadavg") else [],
        versions=versions(),
    )


def described(one: Machine) -> str:
    return f"{one['cpu']}, {one['cores']} cores, Python {one['python']}"
