"""How far another machine's clock is ahead, by asking it and watching one's own clock meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

READINGS = 5  # the one with the shortest round trip counts


class ClockReading(NamedTuple):
    """One question and its answer, in seconds of the two clocks."""

    asked: float  # own clock
    there: float
    answered: float  # own clock

    @property
    def round_trip(self) -> float:
        return self.answered - self.asked


class ClockOffset(NamedTuple):
    seconds: float  # below 0: that clock is behind
    error_seconds: float  # how far off this may be


def clock_offset(readings: Sequence[ClockReading]) -> ClockOffset:
    """By the reading with the shortest round trip, as if it had been taken in the middle of it."""
    best = min(readings, key=lambda reading: reading.round_trip)
    return ClockOffset(best.there - (best.asked + best.answered) / 2, best.round_trip / 2)
