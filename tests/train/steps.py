"""A step made by hand, in a world of one or of several processes. Run as a script, it is one rank of two."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from dragoman import config
from dragoman.config import Training
from dragoman.data.batches import Batches, Lookahead, StepSize
from dragoman.data.store import DataSet
from dragoman.errors import DragomanError
from dragoman.exchange_way import open_ways
from dragoman.measure.phases import Phases
from dragoman.model import Transformer
from dragoman.sync import choice, shards
from dragoman.sync import world as worlds
from dragoman.sync.failures import explained
from dragoman.sync.topology import Topology
from dragoman.sync.world import World
from dragoman.train import optimizer
from dragoman.train.state import State, StepOutcome
from dragoman.train.step import Stepper

NO_DROPOUT = ("model.dropout=0", "model.attention_dropout=0", "model.feedforward_dropout=0")
# Adam divides by the gradient's size: with its usual epsilon the last bits of a gradient near 0 would show.
COMPARABLE = (*NO_DROPOUT, "train.epsilon=0.001")
Forward = Callable[..., Tensor]
MOST_ROWS = 4  # that fit into the pretended memory; a microbatch of the task has more


def together(world: World) -> Topology:
    """All ranks on one host."""
    return Topology(["here"], [0] * world.size, ["lo"])


class Bench:
    """All that a step needs."""

    def __init__(self, data: Path, settings: Path, world: World, *changes: str):
        filled = config.load(Training, settings, changes)
        data_set = DataSet(data)
        torch.manual_seed(filled.train.seed)
        self.model = Transformer(filled.model, len(data_set.tokenizer), filled.train.recompute)
        if filled.sync.mode == "sharded":
            shards.shard(self.model, world, together(world))
        self.state = State(filled, self.model, optimizer.build(self.model, filled.train))
        size = StepSize(filled.data.step, filled.data.microbatch_size, filled.data.unit)
        self.batches = Batches(data_set, size, filled.train.seed)
        topology = together(world)
        (way,) = open_ways(filled.sync, topology.rank_hosts)
        self.exchange = choice.build(self.model, world, topology, way, filled.sync)
        self.stepper = Stepper(self.state, self.exchange, self.batches, world, Phases())

    def settle(self) -> None:
        self.stepper.settle(next(self.batches.after(self.state.position)))

    def step(self) -> StepOutcome:
        batch = next(self.batches.after(self.state.position))
        outcome = self.stepper.update(batch, stop_wanted=False)
        self.stepper.close_round()
        return outcome

    def steps_looking_ahead(self, number: int) -> None:
        """As the training loop makes them."""
        batches = Lookahead(self.batches.after(self.state.position))
        for batch in islice(batches, number):
            self.stepper.update(batch, stop_wanted=False, upcoming=batches.peek)
            self.stepper.close_round()

    def replace_forward(self, forward: Callable[[Forward], Forward]) -> None:
        """The model computes through this from now on."""
        self.model.forward = forward(self.model.forward)  # type: ignore[method-assign]


def out_of_memory_above(rows: int) -> Callable[[Forward], Forward]:
    """A forward that fails like one on a full device."""

    def wrap(forward: Forward) -> Forward:
        def limited(source: Tensor, source_lengths, *rest) -> Tensor:  # noqa: ANN001, ANN002
            if len(source_lengths) > rows:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return forward(source, source_lengths, *rest)

        return limited

    return wrap


class _FailingBackward(torch.autograd.Function):
    @staticmethod
    def forward(context, loss: Tensor) -> Tensor:  # noqa: ANN001
        return loss.clone()

    @staticmethod
    def backward(context, gradient: Tensor) -> Tensor:  # noqa: ANN001
        raise torch.OutOfMemoryError("CUDA out of memory")


def out_of_memory_in_backward(number: int) -> Callable[[Forward], Forward]:
    """The backward pass of this forward, counted from 1, fails, and all later ones."""
    calls = 0

    def wrap(forward: Forward) -> Forward:
        def limited(*arguments) -> Tensor:  # noqa: ANN002
            nonlocal calls
            calls += 1
            loss = forward(*arguments)
            return _FailingBackward.apply(loss) if calls >= number else loss

        return limited

    return wrap


def main(data: Path, settings: Path, folder: Path, trouble: str) -> None:
    """Two steps as a rank; rank 1 has trouble."""
    with explained(), worlds.join(60) as world:
        bench = Bench(data, settings, world, *COMPARABLE)
        bench.settle()
        if world.rank == 1:
            if trouble == "forward":
                bench.replace_forward(out_of_memory_above(MOST_ROWS))
            elif trouble == "last backward":
                bench.replace_forward(
                    out_of_memory_in_backward(2)
                )  # two of the four microbatches are its own
        for _ in range(2):
            bench.step()
        save_file(dict(bench.model.state_dict()), folder / f"rank-{world.rank}.safetensors")


if __name__ == "__main__":
    try:
        main(*map(Path, sys.argv[1:4]), sys.argv[4])
    except DragomanError as error:
        sys.exit(f"error: {error}")
