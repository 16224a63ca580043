"""One evaluation: held-out text translated by one or two systems, scored and compared."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from dragoman.evaluate import comet, scores, sentences
from dragoman.evaluate.heldout import HeldOut
from dragoman.evaluate.scores import IntervalScore, ScoreDifference
from dragoman.evaluate.sentences import Shown
from dragoman.evaluate.system import System

SCHEMA = 1


class SystemScores(BaseModel):
    """One system's scores and translations."""

    name: str
    made: str  # how its translations were made
    scores: dict[str, IntervalScore]
    translations: list[str]


class Evaluated(BaseModel):
    """The result of `dragoman evaluate`; `--json` prints it unchanged."""

    schema_version: int = SCHEMA
    held_out: str
    sentences: int
    languages: tuple[str, str] | None
    systems: list[SystemScores]
    differences: list[ScoreDifference]  # the second system minus the first
    most_telling: list[Shown]
    notes: list[str]  # what a reader must know before believing the figures


def evaluate(systems: Sequence[System], held_out: HeldOut, shown: int) -> Evaluated:
    """Score one system, or two and whether they differ by more than chance."""
    metrics = scores.metrics(held_out.languages[1] if held_out.languages else None)
    notes = _different_settings(systems)
    try:
        metrics["comet"] = comet.Comet(held_out.sources)
    except comet.Absent as absent:
        notes.append(f"COMET was skipped: {absent.what}")
    texts = [system.translations for system in systems]
    comparison = scores.compare(texts, held_out.references, metrics)
    return Evaluated(
        held_out=held_out.name,
        sentences=len(held_out.sources),
        languages=held_out.languages,
        systems=[
            SystemScores(
                name=system.name, made=system.made, scores=by_metric, translations=system.translations
            )
            for system, by_metric in zip(systems, comparison.scores, strict=True)
        ],
        differences=comparison.differences,
        most_telling=sentences.most_telling(texts, held_out, shown),
        notes=notes,
    )


def _different_settings(systems: Sequence[System]) -> list[str]:
    """A note if the systems used different settings: their scores then do not tell the models apart."""
    ways = list(dict.fromkeys(system.made for system in systems))
    if len(ways) < 2:
        return []
    return [f"The translations were made with different settings: {' against '.join(ways)}"]
