"""The measured counterfactual: some steps are also computed without their exchange.

Their gradients are thrown away and dropout is seeded by microbatch, so training stays the same bit for bit.
Each costs a step's computing: at five exchanges near the start, then at one in five hundred.
"""

from __future__ import annotations

import numpy as np

from dragoman.data.batches import StepBatch
from dragoman.measure import clock
from dragoman.measure.recorder import Recorder
from dragoman.measure.records import PHASES
from dragoman.sync.world import World
from dragoman.train.step import Stepper

_FIRST = range(5, 10)  # exchanges of an attempt; the first few are not typical
_EVERY = 500
_FORWARD, _BACKWARD, _EXCHANGE = (PHASES.index(name) for name in ("forward", "backward", "exchange"))


class Counterfactual:
    """Times steps without their exchange.

    Does nothing with one rank, which exchanges nothing, and with shards, which compute nothing without.
    """

    def __init__(self, stepper: Stepper, recorder: Recorder, world: World):
        self._stepper = stepper
        self._recorder = recorder
        self._world = world
        self._exchanges = 0
        self._began = 0.0
        self._without: float | None = None  # seconds of the slowest rank, for the step under way

    def before_step(self, batch: StepBatch) -> None:
        """Times the step without its exchange if one is due, and is collective then."""
        self._without = None
        if not self._stepper.ends_round(stop_wanted=False):
            return
        due = self._exchanges in _FIRST or self._exchanges % _EVERY == _EVERY - 1
        if due and self._world.size > 1 and self._stepper.can_compute_alone:
            self._began = clock.seconds()
            # Collective, so all ranks begin the real step together: none waits for another's probe.
            self._without = self._world.most([self._stepper.seconds_without_exchange(batch)])[0]
        self._exchanges += 1

    def after_step(self, step: int, phases: np.ndarray) -> None:
        """Records both times of the step; collective if `before_step` was."""
        if self._without is None:
            return
        with_exchange = float(phases[[_FORWARD, _BACKWARD, _EXCHANGE]].sum())
        per_step = (self._world.most([with_exchange])[0] - self._without) / self._stepper.whole_rounds(1)
        self._recorder.probe(
            "exchange",
            step,
            self._began,
            self._without,
            step_seconds=self._without + per_step,  # an exchange serves all steps of a round
            step_seconds_without_exchange=self._without,
        )
