"""What a step needs, on the pretended GPU: made inside `card.pretended()`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch._subclasses.fake_tensor import unset_fake_temporarily

from dragoman.config import Model, Training
from dragoman.data.batches import Batches, Microbatch, Position, StepBatch
from dragoman.measure.phases import GpuPhases
from dragoman.model import Transformer
from dragoman.sync.exchange import Exchange
from dragoman.sync.world import World
from dragoman.train import optimizer
from dragoman.train.state import State
from dragoman.train.step import Stepper
from tests.fake_cuda.card import DEVICE

VOCABULARY = 32_768
_SHORTEST, _LONGEST = 10, 40  # tokens of a sentence


def model(config: Model | None = None, vocabulary: int = VOCABULARY) -> Transformer:
    """A model with fake weights on the GPU; without a config, transformer-base."""
    with unset_fake_temporarily(), torch.device("meta"):
        made = Transformer(config or Model(), vocabulary)
    for module in made.modules():
        for name, weight in module.named_parameters(recurse=False):
            setattr(module, name, nn.Parameter(torch.empty(weight.shape, device=DEVICE)))
    return made


def microbatch(pairs: int, seed: int = 0, vocabulary: int = VOCABULARY) -> Microbatch:
    """Random pairs of different lengths; tokens and lengths are real, as they are on the host."""
    random = np.random.default_rng(seed)
    sides = []
    for _ in ("source", "target"):
        lengths = random.integers(_SHORTEST, _LONGEST, pairs)
        sides += [random.integers(4, vocabulary, lengths.sum()), lengths]
    return Microbatch(*sides)


class OneRank(World):
    """A world of one, whose sums need no other process."""

    def __init__(self) -> None:
        super().__init__(0, 1, 0, 1, DEVICE)

    def sum(self, values: Sequence[float]) -> list[float]:
        return list(values)


class _SameBatches(Batches):
    """Every microbatch holds the same pairs, so that two cost twice what one costs."""

    def __init__(self, pairs: int, vocabulary: int) -> None:
        self._pairs, self._vocabulary = pairs, vocabulary

    def load(self, rows: np.ndarray) -> Microbatch:
        return microbatch(self._pairs, vocabulary=self._vocabulary)


class Steps:
    """Makes steps of the real Stepper with fake weights."""

    def __init__(self, settings: Training, vocabulary: int = VOCABULARY, pairs: int = 64) -> None:
        self.model = model(settings.model, vocabulary)
        for layer in self.model.layers:
            layer.recompute = settings.train.recompute
        self.state = State(settings, self.model, optimizer.build(self.model, settings.train))
        self._pairs, self._target_tokens = pairs, microbatch(pairs, vocabulary=vocabulary).target_tokens
        batches = _SameBatches(pairs, vocabulary)
        self.stepper = Stepper(self.state, Exchange(self.model), batches, OneRank(), GpuPhases())

    def step(self, microbatches: int = 1):  # noqa: ANN201
        """One step, with the next one loaded ahead as in the training loop."""
        batch = self._batch(microbatches)
        return self.stepper.update(batch, stop_wanted=False, upcoming=lambda: batch)

    def _batch(self, microbatches: int) -> StepBatch:
        rows = tuple(np.arange(self._pairs) + self._pairs * number for number in range(microbatches))
        each = (self._target_tokens,) * microbatches
        return StepBatch(rows, each, sum(each), Position(), each)
