"""Measures by what share steps are shorter without each cause, by removing causes in turns in one training.

Turns alternate because the speed of the machine itself changes from minute to minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.measure.records import Records

TURN_SECONDS = 1.5  # at least
TURN_STEPS = 6
SETTLING_SECONDS = 0.3  # at the start of a turn: queues empty or fill, connections reach full speed
SETTLING_STEPS = 2


@dataclass(frozen=True)
class Turn:
    relieved: str | None  # the cause that is removed; None: all are active
    began: float  # Unix time
    ended: float


def steps_of_turn(period: int) -> int:
    """The steps in a turn, with those in which it settles; in a longer period, the first one settles."""
    return SETTLING_STEPS + TURN_STEPS if period == 1 else 4 * period


def saved(records: Records, turns: Sequence[Turn], period: int = 1) -> Mapping[str, float]:
    """For each cause, the share of its time by which a step is shorter without it.

    A turn without a cause is compared with the turns before and after it, which have all causes; the median
    of these comparisons counts.
    """
    shares: dict[str, list[float]] = {}
    seconds = [_step_seconds(records, turn, period) for turn in turns]
    for number, turn in enumerate(turns):
        if turn.relieved is not None:
            share = 1 - 2 * seconds[number] / (seconds[number - 1] + seconds[number + 1])
            shares.setdefault(turn.relieved, []).append(share)
    return {cause: float(np.median(values)) for cause, values in shares.items()}


def _step_seconds(records: Records, turn: Turn, period: int) -> float:
    """The median step's seconds or, if a run repeats over several steps, the mean over whole periods.

    Whole periods include the time between steps.
    """
    number, ended, seconds = (records.steps[name] for name in ("step", "ended", "seconds"))
    inside = (ended - seconds >= turn.began + SETTLING_SECONDS) & (ended <= turn.ended)
    if period == 1:
        return float(np.median(seconds[inside][SETTLING_STEPS:]))
    ends = np.flatnonzero(inside & (number % period == 0))
    first, last = ends[1], ends[-1]
    return float((ended[last] - ended[first]) / (number[last] - number[first]))
