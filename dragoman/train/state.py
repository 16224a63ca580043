"""The state of a run: everything that changes from step to step and that a checkpoint must hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor
from torch.optim import Optimizer

from dragoman.config import Training
from dragoman.data.batches import Position, StepBatch
from dragoman.measure.quality import Evaluation
from dragoman.model import Transformer
from dragoman.sync.choice import Choice


class StepOutcome(NamedTuple):
    """The outcome of a step, the same on every rank."""

    loss: float  # per target token, with dropout and label smoothing
    target_tokens: int
    gradient_norm: float  # before clipping; the mean over replicas
    learning_rate: float
    is_bad: bool  # some replica's gradient was not finite; that replica updated nothing
    stop_wanted: bool  # some rank wants to stop
    is_rescaled: bool = False  # fp16: skipped only because the loss scale was too large; it is lower now
    regroup_wanted: bool = False  # some rank is to leave this world, so that another can begin


@dataclass
class State:
    """Model, optimizer, position in the data, and the run's history so far."""

    config: Training
    model: Transformer
    optimizer: Optimizer
    attempt: int = 0  # how often the run was started or formed anew before
    step: int = 0  # updates made
    position: Position = Position()  # of the next step's pairs
    history: list[Evaluation] = field(default_factory=list)
    bad_steps: int = 0  # skipped because the gradient was not finite
    bad_in_a_row: int = 0
    seconds: float = 0.0  # spent in steps, over all attempts
    target_tokens: int = 0
    pairs: int = 0
    loss_scale: dict[str, int | float] = field(default_factory=dict)  # fp16 only: torch's GradScaler
    pass_tokens: int = 0  # that one forward and backward may hold, on both sides; 0: one microbatch
    choice: Choice | None = None  # how gradients are exchanged
    replicas: list[int] = field(default_factory=list)  # DiLoCo only: the replica of each rank
    outer: dict[str, Tensor] = field(default_factory=dict)  # DiLoCo only: the momentum of each parameter
    # What a step still needs after its update, for the next world if this one is lost in between:
    outcome: StepOutcome | None = None  # of the newest step, until its evaluation and checkpoint are made
    round_is_open: bool = False  # DiLoCo only: the round has ended, but replicas have not exchanged
    round_start: Tensor | None = None  # DiLoCo only: all weights when the round began

    def advance(self, batch: StepBatch, outcome: StepOutcome) -> None:
        """Counts a step, made or skipped: either way its pairs are used."""
        self.outcome = outcome
        self.step += 1
        self.position = batch.next
        self.bad_steps += outcome.is_bad
        if not outcome.is_rescaled:  # neither a bad step nor a good one
            self.bad_in_a_row = self.bad_in_a_row + 1 if outcome.is_bad else 0
        self.target_tokens += outcome.target_tokens
        self.pairs += batch.pairs

    @property
    def is_scored(self) -> bool:
        """Was an evaluation made at this step?"""
        return any(evaluation.step == self.step for evaluation in self.history)

    def is_among_the_best(self, evaluation: Evaluation) -> bool:
        """Would its checkpoint be one of the best, which are kept?"""
        metric = self.config.evaluate.metric
        better = [other for other in self.history if other.goodness(metric) > evaluation.goodness(metric)]
        return len(better) < self.config.checkpoint.keep_best

    def best(self) -> Evaluation | None:
        """The best evaluation; the first of equals, as a later one is no improvement."""
        metric = self.config.evaluate.metric
        return max(self.history, key=lambda evaluation: evaluation.goodness(metric), default=None)
