"""`fasttok prepare`."""

import sys
import time
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

import typer

import fasttok
from fasttok._core import REJECTED_FILE
from fasttok.cli.interrupt import deferred_interrupt
from fasttok.cli.output import write, write_error
from fasttok.cli.prepared import fail
from fasttok.cli.progress import shown_progress
from fasttok.cli.summary import failed_records, print_summary
from fasttok.types import (
    ControlStrings,
    OnEmpty,
    OnError,
    OutputFormat,
    ReasoningMode,
    RecordField,
    RecordShape,
    Target,
    ToolCallIds,
    ToolNulls,
    Truncate,
    Validate,
)

EffortChoice: TypeAlias = Literal["low", "high", "max", "unstated"]


def folder(name: str) -> Path:
    """An empty name is a variable that was not set, not the present folder."""
    if not name:
        raise typer.BadParameter("expected a folder, found an empty name")
    return Path(name)


def byte_count(text: str) -> int:
    units = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    number = text.rstrip("BGKMT")
    unit = text[len(number) :]
    if unit not in units or not number.isdecimal() or not int(number):
        raise typer.BadParameter(f"expected a number of bytes such as 500MB, found {text!r}")
    return int(number) * units[unit]


def renamed_fields(options: list[str]) -> dict[RecordField, str]:
    pairs: dict[str, str] = {}
    for option in options:
        field, _, name = option.partition("=")
        if not (field and name):
            message = f"expected FIELD=NAME, such as messages=chat, found {option!r}"
            raise typer.BadParameter(message, param_hint="--field")
        pairs[field] = name
    # The native code says which fields there are.
    return cast("dict[RecordField, str]", pairs)


def prepare(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUT",
            help="JSONL files, plain, gzip or zstd; Parquet and Arrow files; folders of such, or that "
            "datasets.save_to_disk has made; patterns in quotes; - for standard input.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", parser=folder, help="The folder to write to; made if it is missing."
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What is trained: kimi-k2, kimi-k2-thinking, kimi-k2.5, kimi-k2.6, kimi-k3, … (a wrong name lists "
            "all), or a folder with tokenizer files.",
        ),
    ],
    template: Annotated[
        str | None, typer.Option(metavar="NAME", help="The chat template, if not the one that the model's name says.")
    ] = None,
    shape: Annotated[
        RecordShape | None,
        typer.Option(help="How a record holds its conversation; by default the first records of each file say so."),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=NAME",
            help="The name of a field of the records, if it is not the usual one, as in messages=chat.",
        ),
    ] = None,
    format: Annotated[
        OutputFormat | None,
        typer.Option(help="What to write: JSON lines, Parquet, or a folder for datasets.load_from_disk."),
    ] = None,
    target: Annotated[
        Target | None, typer.Option(help="Write the columns and files that this trainer reads (docs/targets.md).")
    ] = None,
    shard_size: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            parser=byte_count,
            help="Begin the next file after so many bytes of rows, such as 500MB; by default one file of JSON lines, "
            "and 500MB in the other formats.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Pass this field of the records through; give it again for more."),
    ] = None,
    on_error: Annotated[
        OnError, typer.Option(help="Leave out a record that cannot be encoded and report it, or stop there.")
    ] = "skip",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what an earlier run has left in DIR, whatever it was.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Threads that encode; by default all, at most 256.")
    ] = None,
    thinking: Annotated[
        bool,
        typer.Option(
            "--thinking/--no-thinking",
            help="Show the assistant's reasoning as the template does, or none (kimi-k2.5, kimi-k2.6, kimi-k3).",
        ),
    ] = True,
    preserve_thinking: Annotated[
        bool, typer.Option("--preserve-thinking", help="Keep the reasoning of finished turns too; kimi-k2.6 only.")
    ] = False,
    thinking_effort: Annotated[
        EffortChoice, typer.Option(help="How much kimi-k3 is asked to think; unstated says nothing of it.")
    ] = "max",
    tool_nulls: Annotated[
        ToolNulls,
        typer.Option(help="Leave out nulls in tool declarations that say nothing, or print them, as the models do."),
    ] = "absent",
    mask: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="Which tokens train: all_assistant_messages, last_assistant_turn, final_answer, …, with parts "
            "switched on or off, as in final_answer-think (docs/masks.md).",
        ),
    ] = "all_assistant_messages",
    on_empty: Annotated[
        OnEmpty, typer.Option(help="What becomes of a conversation in which no token trains.")
    ] = "keep",
    control_strings: Annotated[
        ControlStrings,
        typer.Option(help="What becomes of special tokens that a text spells out, such as <|im_end|>."),
    ] = "as_reference",
    reasoning: Annotated[
        ReasoningMode,
        typer.Option(
            help="What becomes of reasoning that the template does not show: left out, all shown (kimi-k2.6), or "
            "several rows a conversation, each with what the model saw."
        ),
    ] = "template",
    tool_call_ids: Annotated[
        ToolCallIds,
        typer.Option(help="Keep the ids of tool calls, or write functions.NAME:N, as Kimi models do."),
    ] = "verbatim",
    max_length: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The most tokens that a row may have; by default any number.")
    ] = None,
    truncate: Annotated[
        Truncate,
        typer.Option(
            help="What becomes of a longer row: whole messages left out from the end, or the oldest ones after the "
            "first user message; cut anywhere; the row left out; an error."
        ),
    ] = "turn",
    validate: Annotated[
        Validate,
        typer.Option(
            help="What becomes of what is odd and renders all the same, such as a result that answers no call: it is "
            "listed in DIR/findings.jsonl, its record fails, or nobody looks."
        ),
    ] = "warn",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Turn files of chats into training tokens.

    Each record of an INPUT is one conversation: a JSON object with "messages" and, if it has them, "tools" and "id",
    or one of another --shape: ShareGPT's "conversations", "prompt" and "response", or "instruction", "input" and
    "output". It becomes one row in DIR, in the same order: "input_ids", and a "loss_mask" that is 1 where a token
    trains.

    A record that cannot be encoded stops nothing: DIR/rejected.jsonl says which it is, and why. DIR/findings.jsonl
    says what is odd in the others, DIR/report.json has the numbers, and DIR/manifest.json says what all of it was made
    from. A run that was stopped, with Ctrl-C or by a crash, goes on where it was when the same command runs again.

    \b
    Example:
      fasttok prepare chats.jsonl more.jsonl.gz -o tokens --model kimi-k2.5

    \b
    Exit status:
      0    all is written (but for blank lines)
      1    some records were rejected, the others are written
      2    it failed: a bad option, a missing input, a folder that cannot be written
      130  stopped with Ctrl-C; the same command goes on from there
    """
    started = time.monotonic()
    renamed = renamed_fields(field or [])
    try:
        with deferred_interrupt() as check_interrupt, shown_progress(quiet) as report:

            def progress(records: int, failed: int, tokens: int, done: int, total: int) -> None:
                check_interrupt()
                report(records, failed, tokens, done, total)

            summary = fasttok.prepare(
                fasttok.Encoder(model, template=template),
                inputs,
                output,
                shape=shape,
                fields=renamed,
                format=format,
                target=target,
                shard_size=shard_size,
                keep=keep or (),
                on_error=on_error,
                overwrite=overwrite,
                thinking=thinking,
                preserve_thinking=preserve_thinking,
                thinking_effort=None if thinking_effort == "unstated" else thinking_effort,
                tool_nulls=tool_nulls,
                mask=mask,
                on_empty=on_empty,
                control_strings=control_strings,
                reasoning=reasoning,
                tool_call_ids=tool_call_ids,
                max_length=max_length,
                truncate=truncate,
                validate=validate,
                num_threads=threads,
                progress=progress,
            )
    except fasttok.FasttokError as error:
        fail(str(error))
    except KeyboardInterrupt:
        write(sys.stderr, "stopped; the same command goes on from here\n")
        raise typer.Exit(130) from None

    failed = failed_records(summary)
    if not quiet:
        try:
            print_summary(summary, output, time.monotonic() - started)
        except OSError as error:
            write_error(f"the records are written, but the summary cannot be: {error}")
    elif failed:
        write_error(f"{failed:,} of {summary['records']:,} records failed: see {output / REJECTED_FILE}")
    if failed:
        raise typer.Exit(1)
