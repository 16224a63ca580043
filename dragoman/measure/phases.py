"""The named phases of a step and their clocks, on one rank.

A step is always in exactly one phase. On a CPU, a phase ends when the next one begins. On a GPU, the host
runs ahead of the device: each change of phase puts an event into the stream, which is read later, so that no
step waits for its clock.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import torch

from dragoman.measure.counters import Counters
from dragoman.measure.records import PHASES

_NUMBER = {name: number for number, name in enumerate(PHASES)}
BETWEEN_STEPS = -1


class Phases:
    """The clock of a CPU rank. Other threads may read `step` and `position` at any time.

    `counted` holds the counts of the step that ended last (records.COUNTED).
    """

    def __init__(self, counters: Counters | None = None) -> None:
        self._counters = counters or Counters()
        self.counted = self._counters.take()
        self.step = 0
        self.current = BETWEEN_STEPS
        self._since = 0.0
        self._seconds = np.zeros(len(PHASES))

    def close(self) -> None:
        """Ends the counting: a rank may be in hundreds of worlds, each with counters of its own."""
        self._counters.close()

    def position(self) -> tuple[int, int]:
        """The step and the phase (or BETWEEN_STEPS) that the device is in. May be called by other threads."""
        return self.step, self.current

    def begin(self, name: str) -> None:
        """Ends the current phase and begins this one."""
        if self.current == BETWEEN_STEPS:
            self._counters.begin()
        self._close()
        self.current = _NUMBER[name]

    def move(self, seconds: float, origin: str, to: str) -> None:
        """Moves seconds from one phase to another, as the exchange's own clock knows better."""
        seconds = min(max(0.0, seconds), self._seconds[_NUMBER[origin]])
        self._seconds[_NUMBER[origin]] -= seconds
        self._seconds[_NUMBER[to]] += seconds

    def pause(self) -> None:
        """Stops the clock between steps, for an evaluation, a checkpoint or bookkeeping."""
        self._close()
        if self.current != BETWEEN_STEPS:
            self._counters.end()
        self.current = BETWEEN_STEPS

    def end_step(self) -> np.ndarray:
        """Ends the step and returns the seconds of each phase."""
        self.pause()
        self.counted = self._counters.take()
        self.step += 1
        return self._finished()

    def discard(self) -> np.ndarray:
        """The seconds of each phase since the last step, which are not counted as one."""
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


class _Span(NamedTuple):
    """A phase between two events in the stream."""

    step: int
    phase: int
    opened: torch.cuda.Event
    closed: torch.cuda.Event


class GpuPhases(Phases):
    """The clock of a GPU rank. Not yet run on hardware.

    Kernels that have not finished when a step ends (the optimizer's last ones) count towards the next step:
    waiting for them would delay the host in every step.
    """

    def __init__(self, counters: Counters | None = None) -> None:
        super().__init__(counters)
        self._opened = self._event()
        self._spans: list[_Span] = []  # those that the GPU has not finished, as far as we have asked

    def position(self) -> tuple[int, int]:
        # A copy, as the rank's thread may change the list meanwhile. Asking an event waits for nothing.
        step, phase, opened = self.step, self.current, self._opened
        for span in tuple(self._spans):
            if not span.closed.query():
                step, phase, opened = span.step, span.phase, span.opened
                break
        return step, phase if opened.query() else BETWEEN_STEPS

    def discard(self) -> np.ndarray:
        """Waits for the GPU. What it had not finished of the last step still counts towards the next."""
        self.pause()
        self._counters.take()
        self._opened.synchronize()
        of_step = [span for span in self._spans if span.step < self.step]
        self._spans = [span for span in self._spans if span.step >= self.step]
        seconds = self._finished()
        self._spans = of_step
        return seconds

    def _finished(self) -> np.ndarray:
        """The seconds of the phases that the GPU has finished."""
        seconds, self._seconds = self._seconds, np.zeros(len(PHASES))
        while self._spans and self._spans[0].closed.query():
            span = self._spans.pop(0)
            seconds[span.phase] += span.opened.elapsed_time(span.closed) / 1e3
        return seconds

    def move(self, seconds: float, origin: str, to: str) -> None:
        self._seconds[_NUMBER[origin]] -= seconds
        self._seconds[_NUMBER[to]] += seconds

    def _close(self) -> None:
        closed = self._event()
        if self.current != BETWEEN_STEPS:
            self._spans.append(_Span(self.step, self.current, self._opened, closed))
        self._opened = closed

    @staticmethod
    def _event() -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
