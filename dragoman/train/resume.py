"""A checkpoint put back into the state of every rank."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from dragoman.checkpoint import saved_state
from dragoman.checkpoint.saved_state import MODEL_FILE, OPTIMIZER_FILE, OUTER_FILE, Loaded, SavedState
from dragoman.rundir import RunFolder
from dragoman.sync import diloco
from dragoman.sync.agree import any_rank, decided_by_main, done_by, done_by_main, ranks_that
from dragoman.sync.topology import Placement
from dragoman.sync.world import World
from dragoman.train import optimizer
from dragoman.train.state import State


def restore(state: State, folder: RunFolder, step: int, placement: Placement) -> list[str]:
    """Puts a sound checkpoint of rank 0's host into the state of every rank; what to say. Collective."""
    world = placement.world
    room = optimizer.empty_state(state.optimizer, state.model)
    loaded = done_by_main(world, lambda: _load(folder.checkpoint(step), state, room))  # collective
    own = loaded.state.model_dump_json() if loaded else ""
    saved = SavedState.model_validate_json(decided_by_main(world, own))  # collective
    for field in dataclasses.fields(State):
        if field.name in SavedState.model_fields:
            setattr(state, field.name, getattr(saved, field.name))
    _restore_tensors(state, loaded, room, world)  # collective
    lines = [f"going on from step {saved.step:,}{_ranks(saved, world)}"]
    replicas = diloco.replicas(state.config.sync, placement.topology)
    if len(set(replicas)) > 1:
        lines += _restore_replicas(state, folder, saved, replicas, world)  # collective
    return lines


def _load(path: Path, state: State, moments: dict[str, Tensor]) -> Loaded:
    """A checkpoint that fits: what does not would stop rank 0 alone, in the middle of sending it."""
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
    """Sends all but the weights to the other ranks; those follow with the exchange. Collective."""
    if loaded:
        state.model.load_state_dict(loaded.model)
    moments = _sent_by_main(room, loaded.optimizer if loaded else {}, world)  # collective
    optimizer.restore(state.optimizer, state.model, moments)
    if any_rank(world, bool(loaded and loaded.outer)):  # collective
        empty = {name: torch.zeros_like(parameter) for name, parameter in state.model.named_parameters()}
        state.outer = _sent_by_main(empty, loaded.outer if loaded else {}, world)  # collective


def _sent_by_main(room: dict[str, Tensor], own: dict[str, Tensor], world: World) -> dict[str, Tensor]:
    """Rank 0's tensors on every rank. Collective."""
    for name, tensor in room.items():
        if world.is_main:
            tensor.copy_(own[name])
        world.broadcast_(tensor)  # collective
    return room


def _restore_replicas(
    state: State, folder: RunFolder, saved: SavedState, replicas: Sequence[int], world: World
) -> list[str]:
    """The moments of every replica but the first, from its own host's disk; what to say. Collective.

    A replica without any goes on with those of rank 0, which every rank has by now. To begin with none would
    make the first steps as large as the learning rate allows.
    """
    if saved.replicas != list(replicas):
        before = f"{len(set(saved.replicas))} replicas" if saved.replicas else "no replicas"
        return [f"then {before}, now {len(set(replicas))}: all go on with rank 0's optimizer state"]
    number = replicas[world.rank]
    path = folder.replica(number).at(saved.step)
    is_kept = number > 0 and path.exists()
    if kept := done_by(world, is_kept, lambda: saved_state.load_replica(path)):  # collective
        own, moments = kept
        device = next(state.model.parameters()).device
        on_device = {name: tensor.to(device) for name, tensor in moments.items()}
        optimizer.restore(state.optimizer, state.model, on_device)
        state.loss_scale = own.loss_scale
    without = ranks_that(world, number > 0 and not is_kept)  # collective
    lacking = sorted({replicas[rank] for rank in without})
    return [f"replica {each} has no optimizer state of its own: it goes on with rank 0's" for each in lacking]


def _ranks(saved: SavedState, world: World) -> str:
    if saved.world_size == world.size:
        return ""
    return f", then on {saved.world_size} ranks, now on {world.size}: same pairs, sums in another order"
