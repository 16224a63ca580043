"""Thins long series, so that a page holds at most MOST points of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOST = 500
UNITS = {  # of a time axis, in seconds
    "seconds since start": 1.0,
    "minutes since start": 60.0,
    "hours since start": 3600.0,
    "days since start": 86400.0,
}


def means(*columns: np.ndarray, most: int = MOST) -> list[np.ndarray]:
    """Returns each column as means over the same groups of neighbours, ignoring NaN; only NaN gives NaN."""
    length = len(columns[0])
    if length <= most:
        return [np.asarray(column, dtype=float) for column in columns]
    bins = np.arange(length) * most // length
    return [binned(bins, column, most) for column in columns]


def where_known(values: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the steps with values, so that a log with a line every many steps still gives a curve.

    A browser draws no line to a point between two nulls.
    """
    known = np.isfinite(values)
    return steps[known], values[known]


def binned(bins: np.ndarray, values: np.ndarray, count: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Returns the mean of each bin's finite values; NaN for a bin without any."""
    values = np.asarray(values, dtype=float)
    weight = np.ones(len(values)) if weights is None else np.nan_to_num(np.asarray(weights, dtype=float))
    known = np.isfinite(values)
    total = np.bincount(bins[known], values[known] * weight[known], count)
    number = np.bincount(bins[known], weight[known], count)
    return np.divide(total, number, out=np.full(count, np.nan), where=number > 0)


def picks(values: np.ndarray, most: int = MOST) -> np.ndarray:
    """Returns which points of a smooth curve to keep: evenly spread ones and the peak."""
    if len(values) <= most:
        return np.arange(len(values))
    even = np.linspace(0, len(values) - 1, most - 1).astype(int)
    peak = [int(np.nanargmax(values))] if np.isfinite(values).any() else []
    return np.unique([*even, *peak])


class TimeBins:
    """Equal slices of time, none shorter than the longest row in it."""

    def __init__(self, times: np.ndarray, shortest: float, most: int = MOST):
        known = times[np.isfinite(times)]
        self.start = float(known.min()) if len(known) else 0.0
        length = float(known.max()) - self.start if len(known) else 0.0
        self.count = int(max(1, min(most, length / shortest if shortest > 0 else most)))
        self.width = max(length / self.count, 1e-9)

    @property
    def middles(self) -> np.ndarray:
        return self.start + (np.arange(self.count) + 0.5) * self.width

    def of(self, times: np.ndarray) -> np.ndarray:
        """Returns the slice of each time; times outside belong to the first or last."""
        places = (np.nan_to_num(times, nan=self.start) - self.start) / self.width
        return np.clip(places, 0, self.count - 1).astype(int)


def clock(times: np.ndarray, start: float) -> tuple[np.ndarray, str]:
    """Returns the times since the start in a fitting unit, and that unit's label."""
    since = np.asarray(times, dtype=float) - start
    longest = float(np.nanmax(since)) if np.isfinite(since).any() else 0.0
    unit = next((unit for unit, seconds in UNITS.items() if longest < 180 * seconds), "days since start")
    return since / UNITS[unit], unit


def is_known(*columns: np.ndarray | Sequence[float]) -> bool:
    """Whether each column holds at least one finite number."""
    return all(bool(np.isfinite(np.asarray(column, dtype=float)).any()) for column in columns)
