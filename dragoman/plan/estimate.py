"""A number that is not known exactly: what is expected, between what, and where that comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

Case = Literal["value", "low", "high"]
CASES: tuple[Case, ...] = ("value", "low", "high")


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float
    source: str = ""

    @classmethod
    def within(cls, value: float, share: float, source: str = "") -> Estimate:
        """So much of it more or less."""
        return cls(value, value / (1 + share), value * (1 + share), source)

    @classmethod
    def exactly(cls, value: float, source: str = "") -> Estimate:
        return cls(value, value, value, source)

    @classmethod
    def of(cls, number: Callable[[Case], float], source: str = "") -> Estimate:
        """What follows where everything it rests on is as expected, at its best and at its worst."""
        return cls(number("value"), number("low"), number("high"), source)

    def at(self, case: Case) -> float:
        return {"value": self.value, "low": self.low, "high": self.high}[case]

    def times(self, factor: float) -> Estimate:
        return replace(self, value=self.value * factor, low=self.low * factor, high=self.high * factor)

    def wider(self, share: float, why: str) -> Estimate:
        """Less sure by so much, for a reason that is added to the source."""
        return Estimate(self.value, self.low / (1 + share), self.high * (1 + share), f"{self.source}; {why}")

    def inverse(self) -> Estimate:
        """Of a rate, the time: the fastest rate gives the least of it."""
        return Estimate(1 / self.value, 1 / self.high, 1 / self.low, self.source)

    def document(self) -> dict[str, Any]:
        """For JSON; without a source where it follows from numbers that have theirs."""
        numbers: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high}
        return numbers | ({"source": self.source} if self.source else {})


def spread(values: Sequence[float] | np.ndarray) -> float:
    """Half the distance between the quarters of what was measured, as a share of the middle one."""
    first, middle, last = np.percentile(values, (25, 50, 75))
    return float((last - first) / 2 / middle)
