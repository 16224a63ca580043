"""scores.json: what `dragoman evaluate` found for the models of a run, for its report."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from dragoman import atomic
from dragoman.content import read_whole
from dragoman.errors import RecordsError, reading
from dragoman.measure.quality import Score

SCHEMA = 1
_MOST_KEPT = 100  # the latest; a run is scored on a few texts


class IntervalScore(Score):
    """With the 95 % interval of its bootstrap."""

    value: float = Field(allow_inf_nan=False)
    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)


class Scored(BaseModel):
    """One model of the run on one text."""

    step: int = Field(ge=0, lt=10**15)  # of the checkpoint
    held_out: str
    sentences: int = Field(ge=1, lt=10**15)
    made: str  # how its translations came about
    scores: dict[str, IntervalScore]


class _Saved(BaseModel):
    schema_version: int = SCHEMA
    evaluations: list[Scored]


def load(path: Path) -> list[Scored]:
    """The oldest first; empty where nothing was scored."""
    if not path.exists():
        return []
    with reading(path, RecordsError, hint="remove it, and score again: dragoman evaluate"):
        saved = _Saved.model_validate_json(read_whole(path, RecordsError))
        if saved.schema_version != SCHEMA:
            raise ValueError(f"schema {saved.schema_version}, this version reads {SCHEMA}")
        return saved.evaluations


def add(path: Path, scored: Scored) -> None:
    """In place of what was found for the same step and text in the same way."""
    kept = [old for old in load(path) if _what(old) != _what(scored)]
    saved = _Saved(evaluations=[*kept, scored][-_MOST_KEPT:])
    atomic.write(path, saved.model_dump_json(indent=1).encode("utf-8", errors="replace"))


def _what(scored: Scored) -> tuple[int, str, str]:
    return scored.step, scored.held_out, scored.made
