"""Checks numbers read from a file, so that a damaged file does not pass for a strange run.

Explainers and charts rely on this: they convert, index and plot numbers without checking them again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_MOST = 1e24  # of any quantity: FLOPs per step, bytes, a diverged loss
_MOST_WHOLE = 2**53  # floats hold all integers up to here
_MOST_COUNTED = 1e15  # steps, tokens, ranks, hosts; microseconds
_LAST_TIME = 1e11  # Unix seconds, in the year 5138
_DEEPEST = 20
_TIMES = ("time", "ended", "started")
_DURATIONS = ("seconds", "span", "noticed_seconds")


def check_column(name: str, kind: str, values: np.ndarray) -> None:
    """Raises ValueError if a value of the column is impossible. NaN means not recorded."""
    known = values[~np.isnan(values)]
    if name in _TIMES:
        is_right = (known >= 0) & (known <= _LAST_TIME)
    elif kind == "INTEGER":
        least = -1 if name == "phase" else -_MOST_COUNTED if name.endswith("_us") else 0
        is_right = (known >= least) & (known <= _MOST_COUNTED)
    else:
        is_right = (np.abs(known) <= _MOST) & ((known >= 0) | (name not in _DURATIONS))
    if not is_right.all():
        raise ValueError(f"{name} is {known[~is_right][0]:g}")


def check(value: Any, name: str = "", depth: int = 0) -> None:
    """The same check for a JSON value. Unlike JSON, it allows losses that are not finite."""
    if depth > _DEEPEST:
        raise ValueError(f"{name} is nested too deeply")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            check(inner, str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            check(inner, name, depth + 1)
    elif isinstance(value, int | float) and not _is_right(value, name):
        raise ValueError(f"{name} is {str(value)[:20]}")


def _is_right(value: float, name: str) -> bool:
    if isinstance(value, int):
        return abs(value) <= _MOST_WHOLE
    if name in _TIMES or name in _DURATIONS:
        return 0 <= value <= _LAST_TIME
    return abs(value) <= _MOST or not math.isfinite(value)  # a diverged loss is not finite
