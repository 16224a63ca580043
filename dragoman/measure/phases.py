"""The named phases of a step and their clocks, on one rank.

A step is always in one phase. On a CPU a phase ends when the next begins. On a GPU the host runs ahead: an
event is put into the stream at each change and read later, so that no step waits for its clock.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from dragoman.measure.records import PHASES

_NUMBER = {name: number for number, name in enumerate(PHASES)}
BETWEEN_STEPS = -1


class Phases:
    """The clock of a CPU rank. `step` and `current` may be read by another thread at any time."""

    def __init__(self) -> None:
        self.step = 0
        self.current = BETWEEN_STEPS
        self._since = 0.0
        self._seconds = np.zeros(len(PHASES))

    def begin(self, name: str) -> None:
        """From now on the step is in this phase."""
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
        self.current = BETWEEN_STEPS

    def end_step(self) -> np.ndarray:
        """The seconds of each phase of the step that ends here."""
        seconds = self.discard()
        self.step += 1
        return seconds

    def discard(self) -> np.ndarray:
        """The same for something that was no step."""
        self.pause()
        seconds, self._seconds = self._seconds, np.zeros(len(PHASES))
        return seconds

    def _close(self) -> None:
        now = time.perf_counter()
        if self.current != BETWEEN_STEPS:
            self._seconds[self.current] += now - self._since
        self._since = now


class GpuPhases(Phases):
    """The clock of a GPU rank. Written with care; not run on hardware yet.

    The step ends with a host-device wait of its own (the gradient norm), so the events of a step are complete
    when it is asked for its seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self._opened = self._event()
        self._pairs: list[tuple[int, torch.cuda.Event, torch.cuda.Event]] = []

    def discard(self) -> np.ndarray:
        self.pause()
        self._opened.synchronize()
        seconds = np.zeros(len(PHASES))
        for phase, opened, closed in self._pairs:
            seconds[phase] += opened.elapsed_time(closed) / 1e3
        moved, self._seconds, self._pairs = self._seconds, np.zeros(len(PHASES)), []
        return seconds + moved

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
