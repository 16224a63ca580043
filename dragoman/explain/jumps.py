"""Times at which somebody, or a time server, set the wall clock while a run was under way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman import format_units
from dragoman.measure.clock import LEAST_JUMP_SECONDS
from dragoman.measure.records import Attempt, Records


def recorded(records: Records) -> list[float]:
    """Seconds of each, as the run noticed them. They are not in its times."""
    return [jump for attempt in records.attempts for jump in attempt.jumps]


def betrayed(records: Records) -> list[float]:
    """Seconds of each in times that were taken straight from the wall clock: where these go back.

    A clock that was set forward cannot be told from a pause.
    """
    found: list[float] = []
    end = -np.inf  # of the attempt before
    for attempt in records.attempts:
        times, seconds = _times(records, attempt)
        times, seconds = np.concatenate(([end], times)), np.concatenate(([0.0], seconds))
        end = times[-1]
        if attempt.clock_offset is None:
            is_back = np.diff(times) <= -LEAST_JUMP_SECONDS
            found += (np.diff(times) - seconds[1:])[is_back].tolist()
    return found


def sentence(jumps: Sequence[float]) -> str:
    """Empty where there was none."""
    if not jumps:
        return ""
    ways = [f"{format_units.seconds(abs(jump))} {'forward' if jump > 0 else 'back'}" for jump in jumps]
    times = f"{len(ways)} times: {format_units.listed(ways[:3])}{', ...' * (len(ways) > 3)}"
    return f"The wall clock was set {times if len(ways) > 1 else ways[0]}; this does not count."


def _times(records: Records, attempt: Attempt) -> tuple[np.ndarray, np.ndarray]:
    """When the attempt started, its steps ended and it ended itself, each with the seconds it took."""
    mine = (records.steps["attempt"] == attempt.number) & np.isfinite(records.steps["ended"])
    ended = attempt.ended if attempt.ended is not None else np.nan
    times = np.array([attempt.started, *records.steps["ended"][mine], ended])
    seconds = np.nan_to_num(np.array([0.0, *records.steps["seconds"][mine], 0.0]))
    return times[np.isfinite(times)], seconds[np.isfinite(times)]
