"""The pace of a run: the speed of its steps, and how long the rest takes including evaluations."""

from __future__ import annotations

import time
from typing import NamedTuple

from dragoman.train.state import State, StepOutcome

_FIRST = 1  # steps that do not count: memory is allocated and caches fill
_RECENT = 3  # evaluations
_ENOUGH_STEPS = 5  # to estimate how long a run takes
_ENOUGH_SECONDS = 60.0  # or the steps made in this time


class AttemptPace:
    """The pace of one attempt, from its first step."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._steps = 0
        self._tokens = 0
        self._loss_sum = 0.0
        self._step_seconds = self._last_step_seconds = 0.0  # of the interval, and of the last step
        self._evaluations: list[float] = []  # seconds of each
        self._since_first: list[float] = []  # those made after the first step

    def step(self, outcome: StepOutcome, seconds: float) -> None:
        """Notes a step and its seconds, without the time between steps."""
        self._steps += 1
        if self._steps <= _FIRST:
            self._began = time.monotonic()
        self._tokens += outcome.target_tokens
        self._loss_sum += outcome.loss * outcome.target_tokens
        self._step_seconds += seconds
        self._last_step_seconds = seconds

    def evaluation(self, seconds: float) -> None:
        self._evaluations.append(seconds)
        if self._steps:
            self._since_first.append(seconds)

    def interval(self) -> tuple[float, float]:
        """Loss per token and target tokens per second of steps, since the last call."""
        loss, speed = self._loss_sum / self._tokens, self._tokens / self._step_seconds
        self._tokens, self._loss_sum, self._step_seconds = 0, 0.0, 0.0
        return loss, speed

    @property
    def is_settled(self) -> bool:
        """Were enough steps made to estimate the rest?"""
        counted = self._steps - _FIRST
        return counted >= _ENOUGH_STEPS or (counted > 0 and self._wall() > _ENOUGH_SECONDS)

    @property
    def seconds_per_step(self) -> float:
        """Seconds per step, including the time between steps but not evaluations."""
        if self._steps <= _FIRST:
            return self._last_step_seconds
        return max(0.0, self._wall() - sum(self._since_first)) / (self._steps - _FIRST)

    @property
    def seconds_per_evaluation(self) -> float | None:
        """The mean of the last few: translations grow shorter as a model learns. None before the first."""
        recent = self._evaluations[-_RECENT:]
        return sum(recent) / len(recent) if recent else None

    def _wall(self) -> float:
        return time.monotonic() - self._began


class Left(NamedTuple):
    """What remains of a run."""

    steps: int
    evaluations: int
    seconds: float
    seconds_per_step: float
    seconds_per_evaluation: float | None  # None: unknown, and not included in the seconds
    is_settled: bool  # are the numbers reliable?

    @classmethod
    def of(cls, state: State, pace: AttemptPace, evaluate_every: int) -> Left:
        """The rest of the run, with an evaluation every `evaluate_every` steps and after the last one."""
        steps = state.config.train.steps
        left = max(0, steps - state.step)
        evaluations = -(-steps // evaluate_every) - state.step // evaluate_every if left else 0
        each = pace.seconds_per_evaluation
        seconds = left * pace.seconds_per_step + evaluations * (each or 0.0)
        train = state.config.train
        is_settled = pace.is_settled and (train.fitted_at > 0 or not train.minutes)
        return cls(left, evaluations, seconds, pace.seconds_per_step, each, is_settled)
