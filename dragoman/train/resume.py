"""Restores a checkpoint into the state of every rank."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from dragoman.checkpoint import saved_state
from dragoman.checkpoint.saved_state import MODEL_FILE, OPTIMIZER_FILE, OUTER_FILE, Loaded, SavedState
from dragoman.model import Transformer
from dragoman.rundir import RunFolder
from dragoman.sync import diloco, shards
from dragoman.sync.agree import any_rank, decided_by_main, done_by, done_by_main, ranks_that
from dragoman.sync.topology import Placement
from dragoman.sync.world import World
from dragoman.train import optimizer
from dragoman.train.state import State


def restore(state: State, folder: RunFolder, step: int, placement: Placement) -> list[str]:
    """Restores a sound checkpoint of rank 0's host on every rank; returns lines for people. Collective."""
    world = placement.world
    room = optimizer.empty_state(state.optimizer, state.model)
    loaded = done_by_main(world, lambda: _load(folder.checkpoint(step), state, room))  # collective
    state_json = loaded.state.model_dump_json() if loaded else ""
    saved = SavedState.model_validate_json(decided_by_main(world, state_json))  # collective
    for field in dataclasses.fields(State):
        if field.name in SavedState.model_fields:
            setattr(state, field.name, getattr(saved, field.name))
    _restore_tensors(state, loaded, room, world)  # collective
    lines = [f"continuing from step {saved.step:,}{_ranks(saved, world)}"]
    replicas = diloco.replicas(state.config.sync, placement.topology)
    if len(set(replicas)) > 1:
        lines += _restore_replicas(state, folder, saved, replicas, world)  # collective
    return lines


def _load(path: Path, state: State, moments: dict[str, Tensor]) -> Loaded:
    """Loads a checkpoint and checks its shapes: a misfit found while sending would stop rank 0 alone."""
    loaded = saved_state.load(path)
    parameters = saved_state.shapes(dict(state.model.named_parameters()))
    saved_state.check_shapes(path / MODEL_FILE, saved_state.shapes(loaded.model), parameters)
    saved_state.check_shapes(
        path / OPTIMIZER_FILE, saved_state.shapes(loaded.optimizer), saved_state.shapes(moments)
    )
    if loaded.outer:
        saved_state.check_shapes(path / OUTER_FILE, saved_state.shapes(loaded.outer), parameters)
    return loaded


def _restore_tensors(state: State, loaded: Loaded | None, room: dict[str, Tensor], world: World) -> None:
    """Restores rank 0's model, and the optimizer on all ranks. Collective."""
    give_weights(state.model, loaded.model if loaded else None, world)  # collective
    moments = _sent_by_main(room, loaded.optimizer if loaded else {}, world)  # collective
    optimizer.restore(state.optimizer, state.model, moments)
    if any_rank(world, bool(loaded and loaded.outer)):  # collective
        empty = {name: torch.zeros_like(parameter) for name, parameter in state.model.named_parameters()}
        state.outer = _sent_by_main(empty, loaded.outer if loaded else {}, world)  # collective


def give_weights(model: Transformer, weights: Mapping[str, Tensor] | None, world: World) -> None:
    """Puts weights into rank 0's model, or their parts into that of every rank. Other ranks have none.

    The exchange will send rank 0's model to all; with shards nobody has a whole one. Collective then.
    """
    if shards.is_sharded(model):
        _sent_by_main(model.state_dict(), weights or {}, world)  # collective
    elif weights:
        model.load_state_dict(weights)


def _sent_by_main(room: dict[str, Tensor], loaded: Mapping[str, Tensor], world: World) -> dict[str, Tensor]:
    """Rank 0's tensors on every rank, or each rank's part of them, copied into `room`. Collective."""
    for name, tensor in room.items():
        shards.fill(tensor, loaded.get(name), world)  # collective
    return room


def _restore_replicas(
    state: State, folder: RunFolder, saved: SavedState, replicas: Sequence[int], world: World
) -> list[str]:
    """Restores each replica's moments, except the first's, from its host's disk; returns lines. Collective.

    A replica without saved moments keeps rank 0's, which every rank has by now. Without any, its first steps
    would be as large as the learning rate allows.
    """
    if saved.replicas != list(replicas):
        before = f"{len(set(saved.replicas))} replicas" if saved.replicas else "no replicas"
        return [f"saved with {before}, now {len(set(replicas))}: all use rank 0's optimizer state"]
    number = replicas[world.rank]
    path = folder.replica(number).at(saved.step)
    is_kept = number > 0 and path.exists()
    if kept := done_by(world, is_kept, lambda: saved_state.load_replica(path)):  # collective
        replica_state, moments = kept
        device = next(state.model.parameters()).device
        on_device = {name: tensor.to(device) for name, tensor in moments.items()}
        optimizer.restore(state.optimizer, state.model, on_device)
        state.loss_scale = replica_state.loss_scale
    without = ranks_that(world, number > 0 and not is_kept)  # collective
    lacking = sorted({replicas[rank] for rank in without})
    return [f"replica {each} has no optimizer state of its own: it uses rank 0's" for each in lacking]


def _ranks(saved: SavedState, world: World) -> str:
    if saved.world_size == world.size:
        return ""
    before = f"{saved.world_size} rank{'s' * (saved.world_size > 1)}"
    return f", saved on {before}, now on {world.size}: the same pairs, summed in another order"
