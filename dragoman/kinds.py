"""What a path that a user gave seems to be, by the files that mark it: a run, a data set, a model.

Every command that takes a RUN, DATA or MODEL refuses the wrong kind by `refused`, in the same words.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from dragoman.errors import UsageError
from dragoman.rundir import RunFolder

Kind = Literal["run", "data set", "model"]

_HINTS: dict[Kind, str] = {
    "run": "a run folder made by: dragoman train CONFIG --data DATA --run RUN",
    "data set": "make one with: dragoman prepare ... -o DATA",
    "model": "give a run folder, its best, one of its checkpoints, or an exported model",
}
# Files, the kind that they mark together, and its name. The first of which all are there decides.
_MARKS: tuple[tuple[tuple[str, ...], Kind, str], ...] = (
    (("card.json",), "data set", "a data set"),
    (("records.db",), "run", "a run"),
    (("model.bin",), "model", "a model in CTranslate2's format"),
    (("config.json", "model.safetensors"), "model", "a model in the format of Hugging Face's transformers"),
    (("model.safetensors",), "model", "a checkpoint"),
    (("config.toml", "checkpoints"), "run", "a run without records"),
    (("provenance.json",), "run", "a run that has not begun"),
)
_MOST_LOOKED_AT = 200  # entries of a folder, for what was perhaps meant


def kind(path: Path) -> tuple[Kind | None, str]:
    """The kind, if it is one of ours, and what it is in words, for after `is`."""
    for marks, found, name in _MARKS:
        if all(os.path.lexists(path / mark) for mark in marks):
            return found, f"{name} (it has {marks[0]})"
    if not path.exists():
        return None, "not there"
    if not path.is_dir():
        return None, "a file"
    return None, "a folder of something else" if _entries(path) else "an empty folder"


def refused(path: Path, wanted: Kind) -> UsageError:
    """The error for a path that is not what was asked for."""
    found, seems = kind(path)
    what = {"run": "no run here", "data set": "no data set here", "model": "no model here"}[wanted]
    instead = f", not a {wanted}" if found not in (None, wanted) else ""
    return UsageError(
        f"{what}: it is {seems}{instead}", path=path, hint=_meant(path, wanted) or _HINTS[wanted]
    )


def check_for_run(path: Path) -> None:
    """That a run may be written there: over a data set or a model it would be lost among its files."""
    found, _ = kind(path)
    if found not in (None, "run"):
        raise refused(path, "run")


def _meant(path: Path, wanted: Kind) -> str:
    """A neighbour that is of the kind: the run of a checkpoint, a data set in a folder of several."""
    if wanted == "run" and path.parent.name in ("checkpoints", "replicas"):
        run = path.parent.parent
        return f"its run: {run}" if RunFolder(run).records.exists() else ""
    inside = [entry for entry in _entries(path) if kind(entry)[0] == wanted]
    return f"inside it: {', '.join(map(str, inside[:3]))}" if inside else ""


def _entries(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as found:
            return sorted(path / entry.name for entry, _ in zip(found, range(_MOST_LOOKED_AT), strict=False))
    except OSError:
        return []
