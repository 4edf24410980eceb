"""Figures as a picture for a slide."""

# matplotlib is typed in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from fasttok.bench.comparison import Comparison
from fasttok.bench.contender import Kind
from fasttok.bench.scaling import Scaling
from fasttok.bench.table import number, threads
from fasttok.bench.timing import Spread, Timed
from fasttok.cli.whole_file import whole_file

INK = "#1f2933"
FAINT = "#616e7c"
GRID = "#e4e7eb"
OWN = "#d9480f"
OWN_FIRST_PASS = "#f5a27a"
OTHER = "#829ab1"
OTHER_FIRST_PASS = "#bcccdc"
SHADES = {"fasttok": OWN, "hf": "#486581", "hf-per-message": "#9fb3c8"}
MARKERS = {"fasttok": "o", "hf": "s", "hf-per-message": "^"}
HEADINGS: dict[Kind, str] = {
    "chats to ids and mask": "chats to ids, loss mask, spans and findings",
    "chats to ids": "chats to ids alone",
    "rendered text to ids": "text, rendered beforehand, to ids alone",
}
# In inches: the picture, what is above and below the bars, a line of small print, a row, the labels on the left, and
# what the figures need beside the longest bar.
WIDTH, TOP, AXIS, LINE, ROW, LABELS, VALUES = 11.0, 1.2, 0.5, 0.2, 0.36, 2.45, 2.3
BARS = WIDTH - LABELS - 0.3
# As many letters of a title fit in its usual size.
TITLE_LETTERS = 72


def save(figure: Figure, path: Path) -> None:
    settings: dict[Any, str] = {"svg.hashsalt": "fasttok", "font.family": "sans-serif"}
    # The time of day in it would make every picture a new one.
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
    with whole_file(path) as unfinished, matplotlib.rc_context(settings):
        figure.savefig(unfinished, format=path.suffix.lower().removeprefix("."), dpi=160, metadata=metadata)


def written_around(figure: Figure, title: str, subtitle: str, footnotes: Sequence[str]) -> None:
    height = figure.get_figheight()
    size = min(17.0, 17.0 * TITLE_LETTERS / len(title))
    figure.text(0.25 / WIDTH, 1 - 0.28 / height, title, size=size, weight="bold", color=INK, va="top")
    figure.text(0.25 / WIDTH, 1 - 0.72 / height, subtitle, size=11.5, color=FAINT, va="top")
    figure.text(0.25 / WIDTH, 0.14 / height, "\n".join(footnotes), size=9, color=FAINT, va="bottom", linespacing=1.5)


def plain(axes: Axes) -> None:
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, which="both", colors=FAINT, labelsize=10)


def draw_comparison(comparison: Comparison, path: Path, footnotes: Sequence[str]) -> None:
    """Bars for the first number of threads that was asked for; the table has the others."""
    count = comparison.timed[0].threads
    timed = [one for one in comparison.timed if one.threads == count]
    # Bars and headings from the top, each with its height.
    places: list[tuple[float, Timed]] = []
    headings: list[tuple[float, str]] = []
    depth = 0.0
    kind: Kind | None = None
    for one in timed:
        if one.contender.kind != kind:
            kind = one.contender.kind
            depth += 0.35 if headings else 0.0
            headings.append((depth, HEADINGS[kind]))
            depth += 1.0
        places.append((depth, one))
        depth += 1.0
    footnotes = [*left_out(comparison), *footnotes]
    bottom = AXIS + LINE * len(footnotes)
    height = TOP + bottom + depth * ROW
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    axes = figure.add_axes((LABELS / WIDTH, bottom / height, BARS / WIDTH, depth * ROW / height))
    plain(axes)
    rates = [one.rate.median for one in timed]
    left, longest = min(rates) / 3, max(one.rate.most for one in timed)
    right = left * (longest / left) ** (BARS / (BARS - VALUES))
    decades = range(math.ceil(math.log10(left)), math.floor(math.log10(longest)) + 1)
    axes.set(xscale="log", xlim=(left, right), ylim=(depth - 0.5, -0.5), yticks=[])
    axes.set_xticks([10.0**power for power in decades])
    axes.xaxis.set_major_formatter(FuncFormatter(plain_number))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for place, one in places:
        draw_bar(axes, place, one)
    for place, text in headings:
        axes.annotate(
            text,
            (0, place),
            xycoords=("axes fraction", "data"),
            xytext=((0.25 - LABELS) * 72, 0),
            textcoords="offset points",
            va="center",
            size=10,
            color=FAINT,
            style="italic",
        )
    written_around(figure, comparison_title(timed), subtitle(count), footnotes)
    save(figure, path)


def left_out(comparison: Comparison) -> list[str]:
    most = max((len(equality.differences) for equality in comparison.equality.values()), default=0)
    if not most:
        return []
    of = f"{most:,} of {len(comparison.workload):,} conversations"
    return [f"only where the ids are equal; for some of the others they are not in up to {of}"]


def subtitle(count: int) -> str:
    return f"MB of rendered text a second, {threads(count)}, log scale; medians, with lines from the least to the most"


def draw_bar(axes: Axes, place: float, one: Timed) -> None:
    own = one.reference is None
    warm, first = (OWN, OWN_FIRST_PASS) if own else (OTHER, OTHER_FIRST_PASS)
    rate = one.rate
    axes.barh(place, rate.median, height=0.72, color=first if one.first_pass else warm)
    axes.plot([rate.least, rate.most], [place, place], color=INK, linewidth=1.4, solid_capstyle="butt")
    value = f"{number(rate.median)} MB/s"
    if one.reference:
        ratio = Spread.of(one.ratios).median
        value += f", {number(ratio)}× slower" if ratio >= 1 else f", {number(1 / ratio)}× faster"
    if len(one.contender.sample()) < len(one.contender.workload):
        value += f"\nover {len(one.indices):,} of {len(one.contender.workload):,} conversations"
    axes.annotate(
        value,
        (max(rate.most, rate.median), place),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        size=10 if "\n" in value else 10.5,
        linespacing=1.1,
        # So that a line of the grid does not cross it.
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        color=OWN if own and not one.first_pass else INK,
        weight="bold" if own and not one.first_pass else "normal",
    )
    axes.annotate(
        one.contender.label + (", first pass" if one.first_pass else ""),
        (0, place),
        xycoords=("axes fraction", "data"),
        xytext=(-8, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        size=11,
        color=OWN if own and not one.first_pass else INK,
        weight="bold" if own else "normal",
    )


def comparison_title(timed: Sequence[Timed]) -> str:
    """The finding: against the library that people use, or the first that there is."""
    others = [one for one in timed if one.reference and not one.first_pass]
    if not others:
        return f"fasttok encodes {number(timed[0].rate.median)} MB of chats a second"
    other = next((one for one in others if one.name == "hf"), others[0])
    ratio = Spread.of(other.ratios).median
    if ratio < 1:
        return f"fasttok takes {number(1 / ratio)} times the time of {other.contender.label}"
    return f"Chats to training tokens: fasttok is {rounded(ratio)} times as fast as {other.contender.label}"


def rounded(ratio: float) -> str:
    """For a title; the label beside the bar says more."""
    return f"{float(f'{ratio:.2g}'):,g}"


def draw_scaling(scaling: Scaling, path: Path, footnotes: Sequence[str]) -> None:
    bottom = 0.85 + LINE * len(footnotes)
    height = 5.2 + bottom
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    axes = figure.add_axes((0.95 / WIDTH, bottom / height, (WIDTH - 3.25) / WIDTH, (height - bottom - 1.25) / height))
    plain(axes)
    axes.set(xscale="log", yscale="log", aspect="auto")
    axes.set_xticks([size.messages for size in scaling.sizes], [f"{size.messages:,}" for size in scaling.sizes])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(duration))
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_xlabel("messages in the conversation", color=FAINT, size=10.5)
    for name, label in scaling.labels.items():
        points = [point for point in scaling.points if point.name == name]
        if not points:
            continue
        seconds = [Spread.of(point.seconds).median for point in points]
        messages = [point.messages for point in points]
        color = SHADES[name]
        axes.plot(messages, seconds, color=color, marker=MARKERS[name], linewidth=2.2, markersize=6, clip_on=False)
        axes.annotate(
            f"{label}\n{duration(seconds[-1])} at {messages[-1]:,}\n{growth(messages, seconds)}",
            (messages[-1], seconds[-1]),
            xytext=(12, 0),
            textcoords="offset points",
            va="center",
            size=11,
            color=color if name != "hf-per-message" else FAINT,
            weight="bold" if name == "fasttok" else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            annotation_clip=False,
        )
    written_around(
        figure,
        scaling_title(scaling),
        "Time for one conversation, one thread, caches warm, log-log; medians",
        footnotes,
    )
    save(figure, path)


def growth(messages: Sequence[int], seconds: Sequence[float]) -> str:
    """The slope of the line, in words."""
    doublings = math.log2(messages[-1] / messages[0])
    return f"×{(seconds[-1] / seconds[0]) ** (1 / doublings):.1f} for each doubling" if doublings else ""


def plain_number(value: float, _place: int | None = None) -> str:
    return f"{value:g}"


def duration(seconds: float, _place: int | None = None) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def scaling_title(scaling: Scaling) -> str:
    calls = [point for point in scaling.points if point.name == "hf-per-message"]
    if not calls:
        return "fasttok's time grows with the length of the conversation, and no faster"
    last = calls[-1]
    own = scaling.point("fasttok", last.messages)
    if own is None:
        return "A call for each message takes time with the square of their number"
    ratio = Spread.of(last.seconds).median / Spread.of(own.seconds).median
    return f"At {last.messages:,} messages, a call per message takes {rounded(ratio)} times as long as fasttok"
