"""Causes by ratio: how slow a link, a reader or a disk must be to take a multiple of the time of computing.

A link that starved last year's steps may be ample for slower ones and hopeless for faster ones. So the bench
measures the speed of this machine first, and derives from it everything that it puts in a training's way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

import psutil

from benchmarks.trainings import REPORTED_SECONDS, REPORTED_STEPS, Outcome

STEP_SECONDS = 0.15  # of computing, at least: below 0.1 s the machine's own hiccups are too large a share
TRIED_TOKENS = 2048
MICROBATCH_TOKENS = 512


@dataclass(frozen=True)
class Speed:
    """Of the bench's usual training, on however many cores: a step has as many tokens for each of them."""

    tokens: int  # per step and core
    step_seconds: float  # of computing
    evaluation_seconds: float
    parameters: int
    reported_seconds: float = REPORTED_SECONDS

    def steps(self) -> int:
        """Enough for a report."""
        return max(REPORTED_STEPS, math.ceil(self.reported_seconds / self.step_seconds))

    def rate(self, ratio: float, sent_share: float = 1.0) -> str:
        """Of a link that needs `ratio` times the computing for the gradients, sent so many times in fp32.

        In a ring of two hosts each sends them once.
        """
        seconds = ratio * self.step_seconds
        return f"{8e-3 * sent_share * self.gradient_bytes / seconds:.0f}kbit"

    def reader(self, ratio: float) -> str:
        microbatches = self.tokens / MICROBATCH_TOKENS
        return f"slow-reader={ratio * self.step_seconds / microbatches:.4f}"

    def disk(self, ratio: float, every: int) -> str:
        """A checkpoint takes `ratio` times as long to write as the steps from one to the next to compute."""
        checkpoint_bytes = 3 * self.gradient_bytes  # with Adam's moments
        return f"slow-disk={checkpoint_bytes / (ratio * every * self.step_seconds):.0f}"

    def evaluate_every(self, ratio: float) -> int:
        """Steps between evaluations that take together `ratio` times as long as these steps."""
        return max(1, round(self.evaluation_seconds / (ratio * self.step_seconds)))

    def memory(self, share: float, steps: int) -> str:
        """One worker keeps this share of the machine's memory, in so many steps."""
        microbatches = steps * self.tokens / MICROBATCH_TOKENS
        return f"growing-memory={share * psutil.virtual_memory().total / microbatches:.0f}"

    @property
    def gradient_bytes(self) -> float:
        return 4.0 * self.parameters


def speed_of(outcome: Outcome, step_seconds: float, reported_seconds: float) -> Speed:
    """From a training of `TRIED_TOKENS` per step: what it will be with steps that are long enough."""
    numbers = outcome.findings["step_time"].numbers
    seconds = sum(numbers["phase_seconds"][phase] for phase in ("forward", "backward", "optimizer"))
    tried = TRIED_TOKENS / 2  # on each of two cores
    tokens = MICROBATCH_TOKENS * max(1, math.ceil(step_seconds / seconds * tried / MICROBATCH_TOKENS))
    return Speed(
        tokens,
        seconds * tokens / tried,
        median(row.seconds or 0.0 for row in outcome.records.evaluations),
        outcome.records.facts.parameters or 0,
        reported_seconds,
    )
