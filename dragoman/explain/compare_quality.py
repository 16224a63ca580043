"""Compares the scores of two runs, unless they were computed differently; a note then says so."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel

from dragoman.measure.records import Records


class ComparedScore(BaseModel):
    metric: str
    a: float | None = None  # best of the run
    b: float | None = None
    a_signature: str | None = None
    b_signature: str | None = None
    is_comparable: bool = False
    better: Literal["a", "b"] | None = None  # None: equal, or not comparable
    note: str = ""  # why they are not comparable, or a caution


def scores(a: Records, b: Records) -> list[ComparedScore]:
    """Compares the best of each metric that at least one run has."""
    rows = [_score(metric, a, b) for metric in ("bleu", "chrf", "eval_loss")]
    return [row for row in rows if row.a is not None or row.b is not None]


def _score(metric: str, a: Records, b: Records) -> ComparedScore:
    (best_a, made_a), (best_b, made_b) = _best(metric, a), _best(metric, b)
    row = ComparedScore(metric=metric, a=best_a, b=best_b, a_signature=made_a, b_signature=made_b)
    if best_a is None or best_b is None:
        row.note = "only one run has it"
    elif made_a is None or made_b is None:
        which = "neither run" if made_a == made_b else "only one run"
        row.note = f"not compared: {which} recorded how it was computed"
    elif made_a != made_b:
        row.note = f"not compared: {_unlike(metric, a, b) or f'computed differently ({made_a}, {made_b})'}"
    else:
        row.is_comparable = True
        higher: Literal["a", "b"] = "a" if best_a > best_b else "b"
        lower: Literal["a", "b"] = "b" if higher == "a" else "a"
        row.better = None if best_a == best_b else lower if metric == "eval_loss" else higher
        if a.facts.data_card.get("fingerprint") != b.facts.data_card.get("fingerprint"):
            row.note = "the data sets differ: comparable only if the held-out text is the same"
    return row


def _unlike(metric: str, a: Records, b: Records) -> str:
    """Says how losses were computed differently; empty for scores, whose signatures say it."""
    if metric != "eval_loss":
        return ""
    smoothing = [records.facts.settings.get("train.label_smoothing") for records in (a, b)]
    pieces = [records.facts.data_card.get("vocabulary_pieces") for records in (a, b)]
    if smoothing[0] != smoothing[1]:
        return f"labels were smoothed by {smoothing[0]} in one run and by {smoothing[1]} in the other"
    sizes = f" of {pieces[0]:,} and {pieces[1]:,} pieces" if all(pieces) and pieces[0] != pieces[1] else ""
    return f"a token means something else in different vocabularies{sizes}"


def _best(metric: str, records: Records) -> tuple[float | None, str | None]:
    """Returns the best value and its signature."""
    known = [
        (value, row)
        for row in records.evaluations
        if (value := getattr(row, metric)) is not None and math.isfinite(value)
    ]
    if not known:
        return None, None
    if metric == "eval_loss":
        return min(value for value, _ in known), _loss_signature(records)
    value, row = max(known, key=lambda pair: pair[0])
    return value, getattr(row, f"{metric}_signature")


def _loss_signature(records: Records) -> str | None:
    """Returns what a loss per token depends on: the vocabulary and the label smoothing."""
    vocabulary = records.facts.data_card.get("vocabulary_sha256")
    smoothing = records.facts.settings.get("train.label_smoothing")
    if vocabulary is None or smoothing is None:
        return None
    return f"vocabulary:{str(vocabulary)[:12]}|label_smoothing:{smoothing}"
