"""The named phases of a step and their clocks, on one rank.

A step is always in one phase. On a CPU a phase ends when the next begins. On a GPU the host runs ahead: an
event is put into the stream at each change and read later, so that no step waits for its clock.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from dragoman.measure.counters import Counters
from dragoman.measure.records import PHASES

_NUMBER = {name: number for number, name in enumerate(PHASES)}
BETWEEN_STEPS = -1


class Phases:
    """The clock of a CPU rank. `step` and `current` may be read by another thread at any time.

    `counted` is what the counters counted in the step that ended last (records.COUNTED).
    """

    def __init__(self, counters: Counters | None = None) -> None:
        self._counters = counters or Counters()
        self.counted = self._counters.take()
        self.step = 0
        self.current = BETWEEN_STEPS
        self._since = 0.0
        self._seconds = np.zeros(len(PHASES))

    def begin(self, name: str) -> None:
        """From now on the step is in this phase."""
        if self.current == BETWEEN_STEPS:
            self._counters.begin()
        self._close()
        self.current = _NUMBER[name]

    def move(self, seconds: float, origin: str, to: str) -> None:
        """So much of what was counted as one phase was another. The clock of the exchange knows it."""
        seconds = min(max(0.0, seconds), self._seconds[_NUMBER[origin]])
        self._seconds[_NUMBER[origin]] -= seconds
        self._seconds[_NUMBER[to]] += seconds

    def pause(self) -> None:
        """Between steps: evaluation, checkpoint, bookkeeping."""
        self._close()
        if self.current != BETWEEN_STEPS:
            self._counters.end()
        self.current = BETWEEN_STEPS

    def end_step(self) -> np.ndarray:
        """The seconds of each phase of the step that ends here."""
        self.pause()
        self.counted = self._counters.take()
        self.step += 1
        return self._finished()

    def discard(self) -> np.ndarray:
        """The same for something that was no step."""
        self.pause()
        self._counters.take()
        return self._finished()

    def _finished(self) -> np.ndarray:
        seconds, self._seconds = self._seconds, np.zeros(len(PHASES))
        return seconds

    def _close(self) -> None:
        now = time.perf_counter()
        if self.current != BETWEEN_STEPS:
            self._seconds[self.current] += now - self._since
        self._since = now


class GpuPhases(Phases):
    """The clock of a GPU rank. Written with care; not run on hardware yet.

    What the card has not finished when a step ends (the optimizer's last kernels) counts to the next one: to
    wait for it would hold up the host in every step.
    """

    def __init__(self, counters: Counters | None = None) -> None:
        super().__init__(counters)
        self._opened = self._event()
        self._pairs: list[tuple[int, torch.cuda.Event, torch.cuda.Event]] = []

    def discard(self) -> np.ndarray:
        self.pause()
        self._counters.take()
        self._opened.synchronize()
        return self._finished()

    def _finished(self) -> np.ndarray:
        """The seconds of what the card is done with."""
        seconds, self._seconds = self._seconds, np.zeros(len(PHASES))
        while self._pairs and self._pairs[0][2].query():
            phase, opened, closed = self._pairs.pop(0)
            seconds[phase] += opened.elapsed_time(closed) / 1e3
        return seconds

    def move(self, seconds: float, origin: str, to: str) -> None:
        self._seconds[_NUMBER[origin]] -= seconds
        self._seconds[_NUMBER[to]] += seconds

    def _close(self) -> None:
        closed = self._event()
        if self.current != BETWEEN_STEPS:
            self._pairs.append((self.current, self._opened, closed))
        self._opened = closed

    @staticmethod
    def _event() -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
