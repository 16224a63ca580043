"""Changes of the wall clock, by a person or a time server, during a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman import format_units
from dragoman.measure.clock import LEAST_JUMP_SECONDS
from dragoman.measure.records import Attempt, Records


def recorded(records: Records) -> list[float]:
    """Returns the seconds of each change that the run recorded; its times are already corrected for them."""
    return [jump for attempt in records.attempts for jump in attempt.jumps]


def inferred(records: Records) -> list[float]:
    """Returns the seconds of each change that shows in uncorrected times, because they go backwards.

    A clock that was set forward cannot be told from a pause.
    """
    changes: list[float] = []
    end = -np.inf  # of the previous attempt
    rows = _rows_by_attempt(records)
    for attempt in records.attempts:
        times, seconds = _times(records, attempt, rows.get(attempt.number, np.array([], dtype=int)))
        times, seconds = np.concatenate(([end], times)), np.concatenate(([0.0], seconds))
        end = times[-1]
        if attempt.clock_offset is None:
            is_back = np.diff(times) <= -LEAST_JUMP_SECONDS
            changes += (np.diff(times) - seconds[1:])[is_back].tolist()
    return changes


def sentence(jumps: Sequence[float]) -> str:
    """Describes the changes; empty if there were none."""
    if not jumps:
        return ""
    ways = [f"{format_units.seconds(abs(jump))} {'forward' if jump > 0 else 'back'}" for jump in jumps]
    times = f"{len(ways)} times: {format_units.listed(ways[:3])}{', ...' * (len(ways) > 3)}"
    return f"The wall clock was set {times if len(ways) > 1 else ways[0]}; times are corrected for this."


def _rows_by_attempt(records: Records) -> dict[int, np.ndarray]:
    """Returns which steps with a time each attempt made, in the order of the table."""
    known = np.flatnonzero(np.isfinite(records.steps["attempt"]) & np.isfinite(records.steps["ended"]))
    known = known[np.argsort(records.steps["attempt"][known], kind="stable")]
    attempts = records.steps["attempt"][known]
    parts = np.split(known, np.flatnonzero(np.diff(attempts)) + 1)
    return {int(records.steps["attempt"][part[0]]): part for part in parts if len(part)}


def _times(records: Records, attempt: Attempt, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns when the attempt started, its steps ended and it ended, each with the seconds it took."""
    ended = attempt.ended if attempt.ended is not None else np.nan
    times = np.concatenate(([attempt.started], records.steps["ended"][rows], [ended]))
    seconds = np.nan_to_num(np.concatenate(([0.0], records.steps["seconds"][rows], [0.0])))
    return times[np.isfinite(times)], seconds[np.isfinite(times)]
