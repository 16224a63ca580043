"""What `dragoman evaluate` found for a run, and whether the run's model is still the one it scored."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.errors import RecordsError
from dragoman.measure import scored
from dragoman.measure.scored import Scored
from dragoman.rundir import RunFolder

TITLE = "Scored by dragoman evaluate"
HEADER = ("text", "step", "score", "95 % interval", "signature", "translated by")
_NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "comet": "COMET"}
_DECIMALS = {"comet": 4}


@dataclass(frozen=True)
class Scores:
    """One text to an entry."""

    note: str
    entries: list[Scored] = field(default_factory=list)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        return [
            (entry.held_out, f"{entry.step:,}", *figures(name, score), score.signature, entry.made)
            for entry in self.entries
            for name, score in entry.scores.items()
        ]

    def document(self) -> dict[str, Any]:
        return {"note": self.note, "evaluations": [entry.model_dump() for entry in self.entries]}


def find(folder: Path) -> Scores | None:
    """None where nothing was scored."""
    run = RunFolder(folder)
    try:
        entries = scored.load(run.scores)
    except RecordsError as error:
        return Scores(f"{run.scores.name}: {error.what}.")
    return Scores(_note(run, entries), entries) if entries else None


def _note(run: RunFolder, entries: list[Scored]) -> str:
    """Which step the commands take now, and what to do if that one was not scored."""
    current = run.model_step()
    if current is None:
        return (
            "The checkpoints of this run are gone: nothing tells whether these are scores of its last model."
        )
    if current in {entry.step for entry in entries}:
        return f"Step {current:,} is the model of this run, which translate, export and serve take."
    again = shlex.join(["dragoman", "evaluate", str(run.path)])
    return (
        f"Out of date: the model of this run, which translate, export and serve take, is now that of step "
        f"{current:,}, which was not scored. Try: {again}"
    )


def figures(name: str, score: scored.IntervalScore) -> tuple[str, str]:
    """The score and its interval."""
    value, low, high = (
        f"{figure:.{_DECIMALS.get(name, 2)}f}" for figure in (score.value, score.low, score.high)
    )
    return f"{_NAMES.get(name, name)} {value}", f"{low} to {high}"
