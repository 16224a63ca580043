"""The state a run begins with: new, with another model's weights, or from its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from dragoman.checkpoint import saved_model
from dragoman.config import Training
from dragoman.data.batches import Batches, StepSize
from dragoman.data.store import DataSet
from dragoman.model import Transformer
from dragoman.sync import shards
from dragoman.sync.agree import done_by_main
from dragoman.sync.topology import Placement
from dragoman.sync.world import World
from dragoman.train import optimizer, resume
from dragoman.train.precision import SettledPrecision
from dragoman.train.reconcile import Reconciled
from dragoman.train.state import State


@dataclass(frozen=True)
class Beginning:
    """What a rank has before its first step."""

    state: State
    batches: Batches
    lines: list[str]  # for people; on rank 0
    is_from_memory: bool = False  # else only rank 0's weights are right until the exchange sends them to all


def begin(
    reconciled: Reconciled, settled: SettledPrecision, data: DataSet, placement: Placement
) -> Beginning:
    """The model, its optimizer and its data at the step to begin with. Collective."""
    job, settings, world = reconciled.job, reconciled.job.settings, placement.world
    torch.manual_seed(settings.train.seed)
    model = Transformer(settings.model, len(data.tokenizer), settings.train.recompute)
    if settings.sync.mode == "sharded":
        shards.shard(model, world, placement.topology)  # collective
    else:
        model.to(world.device)
    state = State(settings, model, optimizer.build(model, settings.train))
    lines: list[str] = []
    if reconciled.step is not None:
        lines = resume.restore(state, job.folder, reconciled.step, placement)  # collective
    elif job.start_from:
        lines = _take_over(job.start_from, model, world)  # collective
    parameters = sum(parameter.numel() for parameter in model.parameters())
    lines += [*_unreached(state, settings), _size_line(settings, world, parameters, settled)]
    return Beginning(state, batches(settings, data), lines)


def batches(settings: Training, data: DataSet) -> Batches:
    """The batches of a run, from its first step on."""
    return Batches(data, _step_size(settings), settings.train.seed)


def _step_size(settings: Training) -> StepSize:
    return StepSize(settings.data.step, settings.data.microbatch_size, settings.data.unit)


def _unreached(state: State, settings: Training) -> list[str]:
    """Warnings of a number of steps that leaves nothing to do, or ends before the rate has risen."""
    steps, warmup = settings.train.steps, settings.train.warmup_steps
    if state.step > steps:
        return [
            f"warning: train.steps = {steps:,}, but this run is at step {state.step:,}: nothing is left to do"
        ]
    if warmup >= steps and not settings.train.minutes:
        because = "the learning rate never reaches its peak"
        return [f"warning: train.warmup_steps = {warmup:,}, but train.steps = {steps:,}: {because}"]
    return []


def _take_over(origin: Path, model: Transformer, world: World) -> list[str]:
    """Begins with another model's weights; returns lines for people. Collective."""
    other = done_by_main(world, lambda: saved_model.load([origin], torch.device("cpu")))  # collective
    resume.give_weights(model, other.model.state_dict() if other else None, world)  # collective
    if not other:
        return []
    return [*saved_model.note_on_newer(origin), f"weights from {origin}"]


def _size_line(settings: Training, world: World, parameters: int, settled: SettledPrecision) -> str:
    """The model's size and the arithmetic of a step, in words."""
    size = _step_size(settings)
    return (
        f"{parameters:,} parameters; a step is {size.step:,} {size.unit} in {size.microbatches} microbatches "
        f"over {world.size} rank{'s' if world.size > 1 else ''} on {world.device.type} in {settled}"
        + _idle(world.size - size.microbatches)
    )


def _idle(ranks: int) -> str:
    return f": {ranks} rank{'s are' if ranks > 1 else ' is'} idle" if ranks > 0 else ""
