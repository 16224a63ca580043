"""How far another machine's clock is ahead, from readings taken over a connection with a delay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

READINGS = 5  # the one with the shortest round trip counts


class ClockReading(NamedTuple):
    """One reading of the other clock, in seconds of the two clocks."""

    sent: float  # own clock
    there: float
    received: float  # own clock

    @property
    def round_trip(self) -> float:
        return self.received - self.sent


class ClockOffset(NamedTuple):
    seconds: float  # below 0: that clock is behind
    error_seconds: float  # how far off this may be


def clock_offset(readings: Sequence[ClockReading]) -> ClockOffset:
    """The offset from the reading with the shortest round trip, taken to lie in the middle of it."""
    best = min(readings, key=lambda reading: reading.round_trip)
    return ClockOffset(best.there - (best.sent + best.received) / 2, best.round_trip / 2)
