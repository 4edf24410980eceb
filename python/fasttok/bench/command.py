"""The command `fasttok-bench`."""

import os
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from fasttok import Encoder, FasttokError
from fasttok.bench.comparison import Comparison, run_comparison
from fasttok.bench.conversations import EXAMPLES_NAME, read_conversations
from fasttok.bench.error import BenchError
from fasttok.bench.machine import Machine, described, machine, usable_cores
from fasttok.bench.peers import PEERS
from fasttok.bench.progress import shown_steps
from fasttok.bench.report import comparison_report, scaling_report, write_report
from fasttok.bench.scaling import CHARACTERS, run_scaling
from fasttok.bench.table import comparison_table, print_page, scaling_table
from fasttok.bench.workload import encodable
from fasttok.cli.output import counted
from fasttok.cli.whole_file import check_place

PICTURES = (".svg", ".png", ".pdf")
MOST_THREADS = 256
DEFAULT_MODEL = "kimi-k2.5"
DEFAULT_ROUNDS = 5
DEFAULT_BUDGET = 20.0
READING = (
    "fasttok = 1: the time over the same conversations, divided by fasttok's in the same round; medians",
    "first pass: by one that has seen no text yet, divided by fasttok's own first pass",
)


def peer_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PEERS:
            message = f"expected names out of {', '.join(PEERS)}, found {name!r}"
            raise typer.BadParameter(message, param_hint="'--against'")
    return list(dict.fromkeys(names))


def thread_counts(text: str) -> list[int]:
    counts = text.split(",")
    for count in counts:
        if not (count.strip().isdecimal() and len(count) < 10 and 1 <= int(count) <= MOST_THREADS):
            message = f"expected numbers from 1 to {MOST_THREADS}, as in 1,2, found {count!r}"
            raise typer.BadParameter(message, param_hint="'--threads'")
    return list(dict.fromkeys(map(int, counts)))


def picture(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"expected a name that ends with {', '.join(PICTURES)}, found {text!r}")
    return path


def bench(
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Conversations to encode: JSONL, .gz and .zst are fine. By default the examples.",
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The model, by name or by folder, as in fasttok prepare.")
    ] = DEFAULT_MODEL,
    against: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help=f"What to compare with: {','.join(PEERS)}. By default all."),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Threads, as in 1,2. By default one, and as many as there are cores."),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many times everything is timed.")
    ] = DEFAULT_ROUNDS,
    hf_model: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER_OR_ID",
            help="Time the tokenizer of this model as it is shipped, by hf and hf-per-message, in place of one made of "
            "fasttok's vocabulary. Runs the Python code that comes with it.",
        ),
    ] = None,
    scaling: Annotated[
        bool,
        typer.Option(
            "--scaling",
            help="Time one conversation of 8, 16, … 8,192 messages instead: fasttok, hf and hf-per-message.",
        ),
    ] = False,
    budget: Annotated[
        float,
        typer.Option(
            min=0.1, metavar="SECONDS", help="With --scaling: a curve ends where one run would take longer than this."
        ),
    ] = DEFAULT_BUDGET,
    json: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write every figure of every round to a file.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="OUT", parser=picture, help="Draw a chart: .svg, .png or .pdf."),
    ] = None,
) -> None:
    """Measure how fast fasttok is on this machine, beside other libraries.

    fasttok goes from Python dicts to ids, loss mask, spans and findings. The others:

    \b
      hf              transformers, one apply_chat_template a conversation
      hf-per-message  transformers, one for every prefix of its messages (5 conversations)
      jinja-tiktoken  the chat template in jinja2, and tiktoken
      tiktoken, gigatoken, splintr
                      tokenization alone, of text that was rendered for them

    A library that is not installed is named and left out; pip install 'fasttok-kimi[bench]' brings all.

    Ids are compared before anything is timed. A conversation whose ids differ, or that the model cannot read, is
    reported, and is not timed. Then all run in turns: one round to warm up, and five that count. The figures are
    medians, in MB of rendered text a second.

    \b
    Example:
      fasttok-bench --data chats.jsonl --threads 1,2 --plot speed.svg

    \b
    Exit status:
      0    done; what differs or is missing is in the output
      2    it failed: a bad option, a file that cannot be read or written
      130  stopped with Ctrl-C; nothing was written
    """
    if scaling and (against is not None or threads is not None):
        raise BenchError("--scaling has no --against and no --threads: it times hf and hf-per-message in one thread")
    outputs = [(option, path) for option, path in (("--json", json), ("--plot", plot)) if path is not None]
    for option, path in outputs:
        check_place(option, path)
        if data is not None and path.resolve() == data.resolve():
            raise BenchError(f"{option}: {path} holds the conversations")
    if json is not None and plot is not None and json.resolve() == plot.resolve():
        raise BenchError(f"--json and --plot: expected two files, found {json} twice")
    if plot is not None and find_spec("matplotlib") is None:
        raise BenchError("--plot needs matplotlib: pip install matplotlib")
    names = list(PEERS) if against is None else peer_names(against)
    counts = thread_counts(threads or f"1,{min(usable_cores(), MOST_THREADS)}")
    # Those with one pool for the whole process read this when they start it.
    os.environ["RAYON_NUM_THREADS"] = str(max(counts))

    read = read_conversations(data)
    source = EXAMPLES_NAME if data is None else data.name
    encoder = Encoder(model)
    here = machine()
    command = command_line(data, model, against, threads, rounds, hf_model, scaling, budget)
    try:
        conversations, refused = encodable(encoder, read)
        with shown_steps() as steps:
            if scaling:
                figures = run_scaling(encoder, conversations, rounds, budget, hf_model, steps)
            else:
                figures = run_comparison(encoder, conversations, names, counts, rounds, hf_model, steps)
    except FasttokError as error:
        raise BenchError(f"{data or EXAMPLES_NAME}: {error}") from None
    if isinstance(figures, Comparison):
        lines = facts(figures, encoder, source, here, command)
        below = [*refused, *notes(figures), "", *lines]
        table, report = comparison_table(figures), comparison_report(figures)
    else:
        lines = [*refused, *figures.notes, *scaling_facts(encoder, here, command)]
        table, below, report = scaling_table(figures), lines, scaling_report(figures)
    # The file comes first: it has all that the page shows.
    if json is not None:
        write_report(json, shlex.split(command), model, source, here, report)
    print_page(table, below)
    if plot is not None:
        # matplotlib takes a second to import, and only this needs it.
        from fasttok.bench.chart import draw_comparison, draw_scaling

        if isinstance(figures, Comparison):
            draw_comparison(figures, plot, lines)
        else:
            draw_scaling(figures, plot, lines)


def command_line(
    data: Path | None,
    model: str,
    against: str | None,
    threads: str | None,
    rounds: int,
    hf_model: str | None,
    scaling: bool,
    budget: float,
) -> str:
    """The command that makes these figures again, without what says where to write them."""
    parts = ["fasttok-bench"]
    if scaling:
        parts.append("--scaling")
        if budget != DEFAULT_BUDGET:
            parts += ["--budget", f"{budget:g}"]
    if data is not None:
        parts += ["--data", data.name]
    if model != DEFAULT_MODEL:
        parts += ["--model", model]
    if against is not None:
        parts += ["--against", against]
    if threads is not None:
        parts += ["--threads", threads]
    if rounds != DEFAULT_ROUNDS:
        parts += ["--rounds", str(rounds)]
    if hf_model is not None:
        parts += ["--hf-model", hf_model]
    return shlex.join(parts)


def scaling_facts(encoder: Encoder, here: Machine, command: str) -> list[str]:
    return [
        f"user and assistant in turns, {CHARACTERS} characters a message; {encoder.template}",
        f"{described(here)}; {command}",
    ]


def notes(comparison: Comparison) -> list[str]:
    lines = [f"{name}: {equality}" for name, equality in comparison.equality.items() if equality.differences]
    lines += [f"{name}: {reason}" for name, reason in comparison.not_timed]
    sampled = {one.name: one for one in comparison.timed if len(one.contender.sample()) < len(comparison.workload)}
    lines += [
        f"{name}: over {len(one.indices):,} of {len(comparison.workload):,} conversations, {one.size / 1e6:.2f} MB"
        for name, one in sampled.items()
    ]
    return [*lines, *READING]


def facts(comparison: Comparison, encoder: Encoder, source: str, here: Machine, command: str) -> list[str]:
    workload = comparison.workload
    tokens = sum(map(len, workload.ids))
    return [
        f"{source}: {counted(len(workload), 'conversation')}, {sum(workload.sizes) / 1e6:,.1f} MB of rendered text, "
        f"{tokens:,} tokens; {encoder.template}",
        f"{described(here)}; {command}",
    ]
