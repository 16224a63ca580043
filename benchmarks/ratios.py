"""Scales causes to this machine: how slow a link, reader or disk must be to take a multiple of computing.

A link too slow for one machine's steps may be fast enough for another's. So the bench first measures this
machine's speed and derives from it every cause that it injects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

import psutil

from benchmarks.trainings import REPORTED_SECONDS, REPORTED_STEPS, Outcome

STEP_SECONDS = 0.15  # of computing, at least: below 0.1 s the machine's own pauses are too large a share
TRIED_TOKENS = 2048
MICROBATCH_TOKENS = 512


@dataclass(frozen=True)
class Speed:
    """Speed of the bench's usual training; tokens per step grow with the number of cores."""

    tokens: int  # per step and core
    step_seconds: float  # of computing
    evaluation_seconds: float
    parameters: int
    reported_seconds: float = REPORTED_SECONDS

    def steps(self) -> int:
        """Steps that are enough for a report."""
        return max(REPORTED_STEPS, math.ceil(self.reported_seconds / self.step_seconds))

    def rate(self, ratio: float, sent_share: float = 1.0) -> str:
        """The rate at which a link needs `ratio` times the computing time to send the gradients.

        `sent_share` is the bytes sent over the gradients' bytes in fp32; it is 1 in a ring of two hosts.
        """
        seconds = ratio * self.step_seconds
        return f"{8e-3 * sent_share * self.gradient_bytes / seconds:.0f}kbit"

    def reader(self, ratio: float) -> str:
        """The hindrance that makes reading take `ratio` times the computing time."""
        microbatches = self.tokens / MICROBATCH_TOKENS
        return f"slow-reader={ratio * self.step_seconds / microbatches:.4f}"

    def disk(self, ratio: float, every: int) -> str:
        """The hindrance that makes writing a checkpoint take `ratio` times the steps until the next one."""
        checkpoint_bytes = 3 * self.gradient_bytes  # with Adam's moments
        return f"slow-disk={checkpoint_bytes / (ratio * every * self.step_seconds):.0f}"

    def evaluate_every(self, ratio: float) -> int:
        """The interval at which evaluations take `ratio` times as long as the steps between them."""
        return max(1, round(self.evaluation_seconds / (ratio * self.step_seconds)))

    def memory(self, share: float, steps: int) -> str:
        """The hindrance that fills this share of the machine's memory over this many steps of one worker."""
        microbatches = steps * self.tokens / MICROBATCH_TOKENS
        return f"growing-memory={share * psutil.virtual_memory().total / microbatches:.0f}"

    @property
    def gradient_bytes(self) -> float:
        return 4.0 * self.parameters


def speed_of(outcome: Outcome, step_seconds: float, reported_seconds: float) -> Speed:
    """The speed with steps that are long enough, from a training with `TRIED_TOKENS` per step."""
    numbers = outcome.findings["step_time"].numbers
    seconds = sum(numbers["phase_seconds"][phase] for phase in ("forward", "backward", "optimizer"))
    tried = TRIED_TOKENS / 2  # per core, on two cores
    tokens = MICROBATCH_TOKENS * max(1, math.ceil(step_seconds / seconds * tried / MICROBATCH_TOKENS))
    return Speed(
        tokens,
        seconds * tokens / tried,
        median(row.seconds or 0.0 for row in outcome.records.evaluations),
        outcome.records.facts.parameters or 0,
        reported_seconds,
    )
