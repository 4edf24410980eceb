"""All figures as JSON, with what is needed to make them again."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fasttok.bench.comparison import Comparison
from fasttok.bench.machine import Machine
from fasttok.bench.scaling import Scaling
from fasttok.bench.timing import Timed
from fasttok.cli.whole_file import whole_file


def comparison_report(comparison: Comparison) -> dict[str, Any]:
    workload = comparison.workload
    return {
        "mode": "comparison",
        "data": {
            "conversations": len(workload),
            "messages": sum(map(workload.messages, range(len(workload)))),
            "tokens": sum(map(len, workload.ids)),
            "bytes": sum(workload.sizes),
        },
        "timed": [timed_report(one) for one in comparison.timed],
        "not_timed": [{"name": name, "reason": reason} for name, reason in comparison.not_timed],
        "differences": {
            name: [asdict(difference) for difference in equality.differences]
            for name, equality in comparison.equality.items()
        },
    }


def timed_report(one: Timed) -> dict[str, Any]:
    return {
        "name": one.name,
        "kind": one.contender.kind,
        "threads": one.threads,
        "first_pass": one.first_pass,
        "conversations": list(one.indices),
        "bytes": one.size,
        "seconds": one.seconds,
        "fasttok_seconds": one.reference.seconds if one.reference else None,
        "ratios": one.ratios if one.reference else None,
        "megabytes_per_second": asdict(one.rate),
    }


def scaling_report(scaling: Scaling) -> dict[str, Any]:
    return {
        "mode": "scaling",
        "sizes": [asdict(size) for size in scaling.sizes],
        "timed": [asdict(point) for point in scaling.points],
        "notes": list(scaling.notes),
    }


def write_report(path: Path, command: Sequence[str], model: str, data: str, machine: Machine, figures: Any) -> None:
    report = {"command": list(command), "model": model, "source": data, "machine": machine, **figures}
    with whole_file(path) as unfinished:
        text = json.dumps(report, ensure_ascii=False, indent=1) + "\n"
        # The name of a file need not be UTF-8; a half of a surrogate pair is escaped as JSON does it.
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")
