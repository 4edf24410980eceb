"""What is in prepared folders, as a picture."""

# matplotlib is typed in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fasttok.cli.statistics import Statistics
from fasttok.cli.whole_file import whole_file

INK, FAINT, GRID = "#1f2933", "#616e7c", "#e4e7eb"
TRAINED, UNTRAINED = "#d9480f", "#bcccdc"
# In inches.
WIDTH, HEAD, FOLDER, CURVES, ROW = 11.0, 0.5, 1.35, 2.0, 0.27
# Parts with a smaller share of the tokens than this are drawn together.
SMALL = 0.002
# Bins of lengths to a factor of ten.
BINS_PER_DECADE = 8


def draw(known: Sequence[tuple[Path, Statistics]], path: Path) -> None:
    """Draws for each folder how long its rows are, how much of them trains, and what their tokens are."""
    rows = [parts_of(statistics) for _, statistics in known]
    heights = [FOLDER + CURVES + ROW * len(parts) + 1.0 for parts in rows]
    height = HEAD + sum(heights)
    figure = Figure(figsize=(WIDTH, height))
    top = height - HEAD
    for (folder, statistics), parts, tall in zip(known, rows, heights, strict=True):
        draw_folder(figure, folder, statistics, parts, top)
        top -= tall
    settings: dict[Any, str] = {"svg.hashsalt": "fasttok", "font.family": "sans-serif"}
    # The time of day in it would make every picture a new one.
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with whole_file(path) as unfinished, matplotlib.rc_context(settings):
        figure.savefig(unfinished, format=path.suffix.removeprefix("."), dpi=160, metadata=metadata)


def draw_folder(
    figure: Figure, folder: Path, statistics: Statistics, parts: Sequence[tuple[str, int, int]], top: float
) -> None:
    height = figure.get_figheight()

    def axes(left: float, bottom: float, width: float, tall: float) -> Axes:
        made = figure.add_axes((left / WIDTH, bottom / height, width / WIDTH, tall / height))
        for side in ("top", "right", "left", "bottom"):
            made.spines[side].set_visible(False)
        made.tick_params(length=0, which="both", colors=FAINT, labelsize=9)
        return made

    share = f"{statistics.trained / statistics.tokens:.1%}" if statistics.tokens else "none"
    figure.text(0.3 / WIDTH, top / height, folder.name or str(folder), size=15, weight="bold", color=INK, va="top")
    subtitle = f"{statistics.rows:,} rows, {statistics.tokens:,} tokens, {share} of them trained"
    figure.text(0.3 / WIDTH, (top - 0.36) / height, subtitle, size=11, color=FAINT, va="top")
    bottom = top - FOLDER - CURVES
    draw_lengths(axes(0.75, bottom + 0.35, 4.6, CURVES), statistics)
    draw_shares(axes(6.1, bottom + 0.35, 4.6, CURVES), statistics)
    tall = ROW * len(parts)
    draw_parts(axes(2.6, bottom - 0.55 - tall, 7.0, tall), parts, statistics.tokens)


def draw_lengths(axes: Axes, statistics: Statistics) -> None:
    axes.set_title("rows by their length in tokens", size=10, color=INK, loc="left")
    axes.yaxis.grid(visible=True, color=GRID)
    axes.set_axisbelow(True)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(in_letters))
    if not statistics.lengths:
        return
    shortest, longest = max(1, statistics.lengths[0][0]), statistics.lengths[-1][0]
    first = math.floor(math.log10(shortest) * BINS_PER_DECADE)
    last = max(first + 1, math.ceil(math.log10(longest + 1) * BINS_PER_DECADE))
    edges = [10 ** (step / BINS_PER_DECADE) for step in range(first, last + 1)]
    counts = [0] * (len(edges) - 1)
    for length, rows in statistics.lengths:
        step = math.floor(math.log10(max(1, length)) * BINS_PER_DECADE) - first
        counts[min(step, len(counts) - 1)] += rows
    widths = [right - left for left, right in pairwise(edges)]
    axes.bar(edges[:-1], counts, width=[0.94 * width for width in widths], align="edge", color=UNTRAINED)
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        length = statistics.quantile(share)
        axes.axvline(max(1, length), color=TRAINED, linewidth=1)
        axes.annotate(
            f"{name} {short(length)}",
            (max(1, length), 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3, -2),
            textcoords="offset points",
            rotation=90,
            size=8,
            color=TRAINED,
            va="top",
            ha="right",
        )


def draw_shares(axes: Axes, statistics: Statistics) -> None:
    axes.set_title("rows by the share of their tokens that trains", size=10, color=INK, loc="left")
    axes.yaxis.grid(visible=True, color=GRID)
    axes.set_axisbelow(True)
    step = 1 / len(statistics.trained_shares)
    edges = [index * step for index in range(len(statistics.trained_shares))]
    axes.bar(edges, statistics.trained_shares, width=0.94 * step, align="edge", color=TRAINED)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(FuncFormatter(in_percent))


def parts_of(statistics: Statistics) -> list[tuple[str, int, int]]:
    """Name, tokens and trained tokens of each part, those that are small together."""
    large = [
        (f"{role}: {part.replace('_', ' ')}", tokens, trained)
        for role, part, tokens, trained in statistics.parts
        if tokens >= SMALL * statistics.tokens
    ]
    rest = statistics.parts[len(large) :]
    if rest:
        large.append(("the rest", sum(part[2] for part in rest), sum(part[3] for part in rest)))
    return large


def draw_parts(axes: Axes, parts: Sequence[tuple[str, int, int]], tokens: int) -> None:
    axes.set_title("tokens by who speaks, and which part of the message they are", size=10, color=INK, loc="left")
    places = [-index for index in range(len(parts))]
    axes.barh(places, [trained for _, _, trained in parts], color=TRAINED, height=0.7, label="trained")
    axes.barh(
        places,
        [count - trained for _, count, trained in parts],
        left=[trained for _, _, trained in parts],
        color=UNTRAINED,
        height=0.7,
        label="not trained",
    )
    axes.set_yticks(places, [name for name, _, _ in parts])
    axes.tick_params(axis="y", colors=INK)
    axes.set_xticks([])
    axes.set_ylim(-len(parts) + 0.4, 0.6)
    for place, (_, count, _) in zip(places, parts, strict=True):
        label = f"  {short(count)}  {count / tokens:.1%}" if tokens else ""
        axes.text(count, place, label, size=9, color=FAINT, va="center")
    if parts:
        axes.legend(frameon=False, fontsize=9, loc="lower right", labelcolor=FAINT)


def in_letters(value: float, _place: int | None) -> str:
    return short(value)


def in_percent(value: float, _place: int | None) -> str:
    return f"{value:.0%}"


def short(number: float) -> str:
    """A number in a few letters: 950, 13.7k, 2.3M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
