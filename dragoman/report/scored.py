"""The scores of a run from `dragoman evaluate`, and whether they are those of its current model."""

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
HEADER = ("text", "step", "score", "95% interval", "signature", "translated by")
_NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "comet": "COMET"}
_DECIMALS = {"comet": 4}


@dataclass(frozen=True)
class Scores:
    """The scores of a run, one entry per text."""

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
    """Returns the scores in a run folder; None if there are none."""
    run = RunFolder(folder)
    try:
        entries = scored.load(run.scores)
    except RecordsError as error:
        return Scores(f"{run.scores.name}: {error.what}.")
    return Scores(_note(run, entries), entries) if entries else None


def _note(run: RunFolder, entries: list[Scored]) -> str:
    """Says which step is the run's model, and how to score it if it was not."""
    current = run.model_step()
    if current is None:
        return (
            "This run's checkpoints are gone, so it is not known whether these scores are of its last model."
        )
    if current in {entry.step for entry in entries}:
        return f"This run's model, which translate, export and serve use, is that of step {current:,}."
    again = shlex.join(["dragoman", "evaluate", str(run.path)])
    return (
        "Out of date: this run's model, which translate, export and serve use, is now that of step "
        f"{current:,}, which was not scored. Try: {again}"
    )


def figures(name: str, score: scored.IntervalScore) -> tuple[str, str]:
    """Returns the score and its interval as text."""
    value, low, high = (
        f"{figure:.{_DECIMALS.get(name, 2)}f}" for figure in (score.value, score.low, score.high)
    )
    return f"{_NAMES.get(name, name)} {value}", f"{low} to {high}"
