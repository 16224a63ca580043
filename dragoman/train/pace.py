"""How fast a run goes: over the last interval, and so how long it still takes."""

from __future__ import annotations

import time

from dragoman.train.state import StepOutcome


class Pace:
    """Counts one attempt, from its first step."""

    def __init__(self) -> None:
        self._began = self._interval_began = time.monotonic()
        self._steps = 0
        self._tokens = 0
        self._loss_sum = 0.0

    def note(self, outcome: StepOutcome) -> None:
        self._steps += 1
        self._tokens += outcome.target_tokens
        self._loss_sum += outcome.loss * outcome.target_tokens

    def interval(self) -> tuple[float, float]:
        """Loss per token and target tokens per second since the last call."""
        now = time.monotonic()
        loss, speed = self._loss_sum / self._tokens, self._tokens / (now - self._interval_began)
        self._interval_began, self._tokens, self._loss_sum = now, 0, 0.0
        return loss, speed

    def seconds_for(self, steps: int) -> float:
        """At the mean pace so far, evaluations and checkpoints included."""
        return steps * (time.monotonic() - self._began) / self._steps
