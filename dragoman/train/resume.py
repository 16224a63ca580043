"""Going on with a run: whether the settings still fit it, and its state put back on all ranks."""

from __future__ import annotations

import dataclasses

from dragoman import config
from dragoman.config import Training
from dragoman.errors import ConfigError, DataError
from dragoman.rundir import RunFolder
from dragoman.sync.agree import done_by_main
from dragoman.sync.world import World
from dragoman.train import checkpoint, optimizer
from dragoman.train.checkpoint import Loaded, SavedState
from dragoman.train.state import State

# What decides which pairs a step holds and what the weights are: to change it is to begin another run.
_FIXED = ("model.", "data.unit", "data.step", "data.microbatch", "train.seed", "train.optimizer")


def check_settings(folder: RunFolder, settings: Training) -> list[str]:
    """The settings that differ from the run's own, a line each; an error if one of them cannot be changed."""
    if not folder.config.exists():
        return []
    before = dict(config.flat(config.load(Training, folder.config)))
    changed = {key: value for key, value in config.flat(settings) if before.get(key) != value}
    refused = [key for key in changed if key.startswith(_FIXED)]
    if refused:
        what = ", ".join(f"{key} ({before[key]} in the run, {changed[key]} now)" for key in refused)
        raise ConfigError(
            f"this run cannot go on with another {what}",
            path=folder.path,
            hint="use the run's own value, or another --run for a new run (--from takes over its weights)",
        )
    return [f"changed: {key} = {value} (was {before[key]})" for key, value in changed.items()]


def restore(state: State, folder: RunFolder, data_fingerprint: str, world: World) -> list[str]:
    """Puts the newest sound checkpoint into the state of every rank; what is worth saying. Collective.

    Only rank 0 looks at the folder: the others may be on machines that do not have it.
    """
    loaded, said = done_by_main(world, lambda: _newest(folder, data_fingerprint)) or (None, [])
    saved_text = world.broadcast_bytes(loaded.state.model_dump_json().encode() if loaded else b"")
    if not saved_text:
        return said
    saved = SavedState.model_validate_json(saved_text)
    for field in dataclasses.fields(State):
        if field.name in SavedState.model_fields:
            setattr(state, field.name, getattr(saved, field.name))
    _restore_tensors(state, loaded, world)
    return [*said, f"going on from step {saved.step:,}{_ranks(saved, world)}"]


def _newest(folder: RunFolder, data_fingerprint: str) -> tuple[Loaded | None, list[str]]:
    loaded, said = checkpoint.newest(folder)
    if loaded and loaded.state.data_fingerprint != data_fingerprint:
        raise DataError(
            "this run was trained on other data: its fingerprint is "
            f"{loaded.state.data_fingerprint[:16]}, that of the data given {data_fingerprint[:16]}",
            path=folder.path,
            hint="give the data set of the run, or another --run",
        )
    return loaded, said


def _restore_tensors(state: State, loaded: Loaded | None, world: World) -> None:
    """Weights reach the other ranks when the exchange is built; the optimizer's moments are sent here."""
    if loaded:
        state.model.load_state_dict(loaded.model)
    moments = optimizer.empty_state(state.model)
    for name, tensor in moments.items():
        if loaded:
            tensor.copy_(loaded.optimizer[name])
        world.broadcast_(tensor)
    optimizer.restore(state.optimizer, state.model, moments)


def _ranks(saved: SavedState, world: World) -> str:
    if saved.world_size == world.size:
        return ""
    return f", then on {saved.world_size} ranks, now on {world.size}: same pairs, sums in another order"
