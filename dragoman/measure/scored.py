"""scores.json: the scores that `dragoman evaluate` computed for a run's models, shown in its report."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from dragoman import atomic
from dragoman.content import read_whole
from dragoman.errors import RecordsError, reading
from dragoman.measure.quality import Score

SCHEMA = 1
_MOST_KEPT = 100  # only the newest are kept; a run is usually scored on few texts


class IntervalScore(Score):
    """A score with its 95 % bootstrap interval."""

    value: float = Field(allow_inf_nan=False)
    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)


class Scored(BaseModel):
    """The scores of one of the run's models on one text."""

    step: int = Field(ge=0, lt=10**15)  # of the checkpoint
    held_out: str
    sentences: int = Field(ge=1, lt=10**15)
    made: str  # how the translations were made
    scores: dict[str, IntervalScore]


class _Saved(BaseModel):
    schema_version: int = SCHEMA
    evaluations: list[Scored]


def load(path: Path) -> list[Scored]:
    """All saved scores, the oldest first; empty if there are none."""
    if not path.exists():
        return []
    with reading(path, RecordsError, hint="remove it, and score the run again: dragoman evaluate"):
        saved = _Saved.model_validate_json(read_whole(path, RecordsError))
        if saved.schema_version != SCHEMA:
            raise ValueError(f"schema {saved.schema_version}, this version reads {SCHEMA}")
        return saved.evaluations


def add(path: Path, scored: Scored) -> None:
    """Saves scores, replacing earlier ones of the same step, text and way of decoding."""
    kept = [old for old in load(path) if _key(old) != _key(scored)]
    saved = _Saved(evaluations=[*kept, scored][-_MOST_KEPT:])
    atomic.write(path, saved.model_dump_json(indent=1).encode("utf-8", errors="replace"))


def _key(scored: Scored) -> tuple[int, str, str]:
    return scored.step, scored.held_out, scored.made
