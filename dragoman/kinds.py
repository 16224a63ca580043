"""Tells whether a path is a run, a data set or a model, by the files in it.

Every command that takes a RUN, DATA or MODEL reports the wrong kind with `refused`, in the same words.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from dragoman.errors import UsageError
from dragoman.rundir import RunFolder

Kind = Literal["run", "data set", "model"]

_HINTS: dict[Kind, str] = {
    "run": "give a run folder made with: dragoman train CONFIG --data DATA --run RUN",
    "data set": "make one with: dragoman prepare ... -o DATA",
    "model": "give a run folder, its best, one of its checkpoints, or an exported model",
}
# Files, the kind they mark together, and its name. The first row whose files all exist decides.
_MARKS: tuple[tuple[tuple[str, ...], Kind, str], ...] = (
    (("card.json",), "data set", "a data set"),
    (("records.db",), "run", "a run"),
    (("model.bin",), "model", "a model in CTranslate2's format"),
    (("config.json", "model.safetensors"), "model", "a model in the format of Hugging Face's transformers"),
    (("model.safetensors",), "model", "a checkpoint"),
    (("config.toml", "checkpoints"), "run", "a run without records"),
    (("provenance.json",), "run", "a run that has not begun"),
)
_MOST_ENTRIES = 200  # of a folder that are searched for a suggestion


def kind(path: Path) -> tuple[Kind | None, str]:
    """The path's kind, or None if it is none of ours, and a description to follow `is`."""
    for marks, marked_kind, name in _MARKS:
        if all(os.path.lexists(path / mark) for mark in marks):
            return marked_kind, f"{name} (it has {marks[0]})"
    if not path.exists():
        return None, "not there"
    if not path.is_dir():
        return None, "a file"
    return None, "a folder of something else" if _entries(path) else "an empty folder"


def refused(path: Path, wanted: Kind) -> UsageError:
    """The error for a path of the wrong kind."""
    actual, description = kind(path)
    what = {"run": "no run here", "data set": "no data set here", "model": "no model here"}[wanted]
    instead = f", not a {wanted}" if actual not in (None, wanted) else ""
    return UsageError(
        f"{what}: it is {description}{instead}", path=path, hint=_suggestion(path, wanted) or _HINTS[wanted]
    )


def check_for_run(path: Path) -> None:
    """Raises if the path is a data set or a model: a run must not be written among its files."""
    actual, _ = kind(path)
    if actual not in (None, "run"):
        raise refused(path, "run")


def _suggestion(path: Path, wanted: Kind) -> str:
    """A nearby path of the wanted kind: the run of a checkpoint, or a data set in a folder of several."""
    if wanted == "run" and path.parent.name in ("checkpoints", "replicas"):
        run = path.parent.parent
        return f"give its run: {run}" if RunFolder(run).records.exists() else ""
    inside = [entry for entry in _entries(path) if kind(entry)[0] == wanted]
    return f"give one inside it: {', '.join(map(str, inside[:3]))}" if inside else ""


def _entries(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return sorted(path / entry.name for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False))
    except OSError:
        return []
