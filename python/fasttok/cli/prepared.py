"""What commands need to know of a folder that is prepared."""

import json
from pathlib import Path
from typing import Any, NoReturn, cast

import typer

import fasttok
from fasttok._core import MANIFEST_FILE
from fasttok.cli.output import write_error


def fail(message: str) -> NoReturn:
    write_error(message)
    raise typer.Exit(2)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished folder; ends the command if there is none."""
    path = folder / MANIFEST_FILE
    try:
        return cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        fail(f"{folder}: expected a folder that fasttok prepare has finished, found no {MANIFEST_FILE} in it")
    except (OSError, ValueError) as error:
        fail(f"{path}: cannot read this manifest: {error}")


def encoder_of(folder: Path, model: str | None) -> fasttok.Encoder:
    """The encoder that a folder was prepared with, as far as the manifest says which that is, or that of `model`.

    Raises FasttokError for a model that is not known.
    """
    template = cast("str", read_manifest(folder)["model"]["template"])
    if model is None:
        return fasttok.Encoder(template)
    # The files of a folder need not say which template is theirs.
    return fasttok.Encoder(model, template=template if Path(model).is_dir() else None)
