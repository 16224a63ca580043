"""Time outside steps: evaluations and checkpoints for which training stood still."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman import format_units
from dragoman.explain import remedies
from dragoman.explain.step_breakdown import settled
from dragoman.measure.records import Records

ENOUGH_BESIDE = 5  # steps while a checkpoint was written, and as many while none was
DEAR = 0.10  # of the time: half as often gives 5 %, the least worth advising


@dataclass(frozen=True)
class Outside:
    training: float  # seconds
    evaluation: float
    checkpoint: float

    def shares(self) -> dict[str, float]:
        total = self.training + self.evaluation + self.checkpoint
        return {"evaluation": self.evaluation / total, "checkpoint": self.checkpoint / total}


def event_seconds(records: Records, kind: str) -> float:
    known = [event.seconds for event in records.events if event.kind == kind and np.isfinite(event.seconds)]
    return float(sum(known))


def outside_seconds(records: Records) -> Outside | None:
    """None where nothing was recorded beside steps, or no step was timed."""
    seconds = records.steps["seconds"]
    training = float(seconds[np.isfinite(seconds) & (seconds > 0)].sum())
    evaluation, checkpoint = event_seconds(records, "evaluation"), event_seconds(records, "checkpoint")
    if training <= 0 or evaluation + checkpoint <= 0:
        return None
    return Outside(training, evaluation, checkpoint)


def slowed_by_writing(records: Records) -> float | None:
    """Seconds by which all steps together were longer while a checkpoint was written in the background.

    None where too few steps lie in or beside such times to tell.
    """
    ended, seconds = records.steps["ended"], records.steps["seconds"]
    chosen = settled(records) & np.isfinite(ended)
    beside = np.zeros(len(ended))
    for event in records.events:
        if event.kind == "writing":
            shared = np.minimum(ended, event.time + event.seconds) - np.maximum(ended - seconds, event.time)
            beside += np.nan_to_num(np.maximum(0.0, shared))
    during, alone = chosen & (beside > seconds / 2), chosen & (beside == 0)
    if min(during.sum(), alone.sum()) < ENOUGH_BESIDE:
        return None
    slower = float(np.median(seconds[during]) - np.median(seconds[alone]))
    return max(0.0, slower) * float(during.sum())


def outside_advice(records: Records) -> list[str]:
    outside = outside_seconds(records)
    if not outside:
        return []
    shares = outside.shares()
    names = {"evaluation": "evaluate half as often", "checkpoint": "write checkpoints half as often"}
    advice = []
    for kind, key in (("evaluation", "evaluate.every"), ("checkpoint", "checkpoint.every")):
        every = records.facts.settings.get(key)
        command = remedies.setting(records.facts, key, 2 * every) if isinstance(every, int) else ""
        if shares[kind] >= DEAR:
            now = f"(now every {every or '?'} steps)"
            advice.append(f"{names[kind]} {now}: {format_units.share(shares[kind] / 2)} less time{command}")
    return advice
