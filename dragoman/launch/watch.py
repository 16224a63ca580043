"""Notices ranks that hold a run up. The limits follow from its own steps (docs/timeouts.md)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from dragoman.launch.events import Slot
from dragoman.sync.silence import SILENT_SECONDS

LEAST_STEP_SECONDS = 60.0  # a step may always take this long
STEP_FACTOR = 10.0  # or this many times the slowest of the recent steps
OTHER_SECONDS = 600.0  # for start-up, first step, evaluation or checkpoint to show any movement
_RECENT_STEPS = 50


class ProgressWatch:
    def __init__(self) -> None:
        self._step = -1
        self._ended = 0.0  # when the newest step had ended
        self._interrupted = -1  # the newest step that something else than a step followed
        self._seconds: deque[float] = deque(maxlen=_RECENT_STEPS)

    def note(self, at: dict[str, Any], now: float) -> None:
        """Takes the position of a rank, which arrives once a second."""
        step = at["step"]
        if at["activity"] != "step":
            self._step, self._interrupted = -1, step
        elif step > max(self._step, self._interrupted):
            if self._step >= 0:
                self._seconds.append((now - self._ended) / (step - self._step))
            self._step, self._ended = step, now

    def forget(self) -> None:
        """A new world begins: the time until its first step is none of a step."""
        self._step = self._interrupted = -1

    def limit(self, activity: str) -> float:
        """The seconds for which a rank may show no movement."""
        if activity != "step" or not self._seconds:
            return OTHER_SECONDS
        return max(LEAST_STEP_SECONDS, STEP_FACTOR * max(self._seconds))

    @staticmethod
    def silent(placed: Sequence[Slot], now: float) -> list[Slot]:
        """Ranks whose process does not even say where it is."""
        return [slot for slot in placed if now - slot.heard > SILENT_SECONDS]

    def is_stuck(self, placed: Sequence[Slot], now: float) -> bool:
        """Has no rank moved for longer than what it does may take?"""
        return all(now - slot.moved > self.limit(slot.at.get("activity", "")) for slot in placed)
