"""Time outside steps: evaluations and checkpoints during which training paused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman import format_units
from dragoman.explain import remedies
from dragoman.explain.step_breakdown import settled
from dragoman.measure.records import Records

ENOUGH_BESIDE = 5  # steps needed while a checkpoint was written, and while none was
DEAR = 0.10  # share of the time: doing it half as often saves 5 %, the least worth advising
# Half as many evaluations must still show a curve, and half as many checkpoints be more than one.
FEWEST = {"evaluation": 8, "checkpoint": 4}


@dataclass(frozen=True)
class Outside:
    training: float  # seconds
    evaluation: float
    checkpoint: float

    def shares(self) -> dict[str, float]:
        total = self.training + self.evaluation + self.checkpoint
        return {"evaluation": self.evaluation / total, "checkpoint": self.checkpoint / total}


def event_seconds(records: Records, kind: str) -> float:
    """Returns the seconds of all events of a kind."""
    known = [event.seconds for event in records.events if event.kind == kind and np.isfinite(event.seconds)]
    return float(sum(known))


def outside_seconds(records: Records) -> Outside | None:
    """Returns the time in and outside steps; None if no event was recorded or no step was timed."""
    seconds = records.steps["seconds"]
    training = float(seconds[np.isfinite(seconds) & (seconds > 0)].sum())
    evaluation, checkpoint = event_seconds(records, "evaluation"), event_seconds(records, "checkpoint")
    if training <= 0 or evaluation + checkpoint <= 0:
        return None
    return Outside(training, evaluation, checkpoint)


def slowed_by_writing(records: Records) -> float | None:
    """Returns by how many seconds writing checkpoints in the background slowed all steps together.

    None if too few steps ran with or without such writing.
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
    """Advises less frequent evaluations or checkpoints where they take much time."""
    outside = outside_seconds(records)
    if not outside:
        return []
    shares = outside.shares()
    names = {"evaluation": "evaluate half as often", "checkpoint": "write checkpoints half as often"}
    advice = []
    for kind, key in (("evaluation", "evaluate.every"), ("checkpoint", "checkpoint.every")):
        if shares[kind] < DEAR or sum(event.kind == kind for event in records.events) < FEWEST[kind]:
            continue
        every, how = records.facts.settings.get(key), ""
        if isinstance(every, int):
            how = f", every {2 * every:,} steps instead of {every:,}"
            how += remedies.setting(records.facts, key, 2 * every)
        advice.append(f"{names[kind]}{how}: {format_units.share(shares[kind] / 2)} less time")
    return advice
