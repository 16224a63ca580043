"""Picks sentences worth a look: where two systems differ most, or one is furthest from the reference."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel
from sacrebleu.metrics import CHRF

from dragoman.evaluate.heldout import HeldOut


class Shown(BaseModel):
    """A sentence with each system's translation and its chrF; BLEU says little about single sentences."""

    line: int  # from 1
    source: str
    reference: str
    translations: list[str]
    chrf: list[float]


def most_telling(systems: Sequence[Sequence[str]], held_out: HeldOut, count: int) -> list[Shown]:
    """At most `count` sentences, the most telling first."""
    metric = CHRF()
    references = list(zip(*held_out.references, strict=True))
    scores = [
        [
            metric.sentence_score(text, list(expected)).score
            for text, expected in zip(system, references, strict=True)
        ]
        for system in systems
    ]

    def distance(row: int) -> float:
        return abs(scores[1][row] - scores[0][row]) if len(systems) > 1 else 100 - scores[0][row]

    rows = sorted(range(len(references)), key=distance, reverse=True)[:count]
    return [
        Shown(
            line=row + 1,
            source=held_out.sources[row],
            reference=references[row][0],
            translations=[system[row] for system in systems],
            chrf=[score[row] for score in scores],
        )
        for row in rows
        if distance(row) > 0
    ]
