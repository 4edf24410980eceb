"""The numbers of a prepared folder, out of its manifest."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Statistics:
    """What is in a folder."""

    records: int
    written: int
    skipped: dict[str, int]
    failed: dict[str, int]
    rows: int
    tokens: int
    trained: int
    notes: list[tuple[str, int]]
    findings: dict[str, int]
    lengths: list[tuple[int, int]]
    """Each length and how many rows have it, the shortest first."""
    trained_shares: list[int]
    """Rows by the share of their tokens that trains, in steps of a twentieth."""
    parts: list[tuple[str, str, int, int]]
    """Role, part, tokens, and those of them that train; the commonest first."""

    @classmethod
    def of(cls, manifest: dict[str, Any]) -> "Statistics":
        summary = manifest["summary"]
        parts = [
            (role, part, tokens["all"], tokens["trained"])
            for role, parts in summary["parts"].items()
            for part, tokens in parts.items()
        ]
        notes = [
            ("without a trained token", "untrained_records"),
            ("cut", "cut_records"),
            ("with reasoning left out", "dropped_reasoning_records"),
            ("with hidden tool names", "hidden_tool_name_records"),
            ("with control strings", "control_string_records"),
            ("with weights left out", "lost_weight_records"),
        ]
        return cls(
            records=summary["records"],
            written=summary["written"],
            skipped=summary["skipped"],
            failed=summary["failed"],
            rows=summary["rows"],
            tokens=summary["tokens"],
            trained=summary["trained_tokens"],
            notes=[(name, summary[key]) for name, key in notes if summary[key]],
            findings=summary["findings"],
            lengths=[(length, rows) for length, rows in summary["lengths"]],
            trained_shares=summary["trained_shares"],
            parts=sorted(parts, key=lambda part: -part[2]),
        )

    def quantile(self, share: float) -> int:
        """The smallest length that this share of the rows do not exceed; 0 without rows."""
        rank = max(1, -int(-share * self.rows // 1))
        below = 0
        for length, rows in self.lengths:
            below += rows
            if below >= rank:
                return length
        return 0

    def numbers(self) -> Iterator[tuple[str, int, str]]:
        """Name, number and remark, in the order in which people read them."""
        yield "records", self.records, ""
        yield "  written", self.written, ""
        for reason, count in self.skipped.items():
            yield "  skipped", count, reason
        for kind, count in self.failed.items():
            yield "  failed", count, kind
        for name, count in self.notes:
            yield f"  {name}", count, ""
        for code, count in self.findings.items():
            yield f"  {code}", count, "docs/findings.md"
        yield "rows", self.rows, ""
        yield "tokens", self.tokens, ""
        yield "  trained", self.trained, f"{self.trained / self.tokens:.1%}" if self.tokens else ""
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
            yield f"  {name}", self.quantile(share), "tokens in a row" if name == "p50" else ""
