"""Hands the state of a run from ranks that have it in memory to those that lack it, without a checkpoint.

A world can be lost at any moment, so its ranks may be one step apart: some made an update whose result the
others never received. The ranks that are furthest give, all others take. What they take replaces what they
had, so no update is made twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from dragoman.checkpoint.saved_state import SavedState
from dragoman.config import Training
from dragoman.data.store import DataSet
from dragoman.model import Transformer
from dragoman.sync.topology import Placement
from dragoman.sync.world import World
from dragoman.train import optimizer
from dragoman.train.precision import SettledPrecision
from dragoman.train.state import State, StepOutcome


class Progress(NamedTuple):
    """How far a rank is. The order of the fields is that of what happens in a step."""

    step: int = -1  # -1: it has no state
    has_closed_round: bool = False
    has_settled: bool = False  # the step's evaluation and checkpoint are made
    evaluations: int = 0

    @classmethod
    def of(cls, state: State | None) -> Progress:
        if state is None:
            return cls()
        return cls(state.step, not state.round_is_open, state.outcome is None, len(state.history))

    @property
    def weights(self) -> tuple[int, bool]:
        """Ranks that agree on this have the weights of the same moment."""
        return self.step, self.has_closed_round


@dataclass(frozen=True)
class Handover:
    """Who gives the state to whom."""

    source: int  # the rank whose account of the run counts
    givers: dict[int, int]  # for each rank that lacks the newest weights, the one that sends them


def find(state: State | None, placement: Placement) -> Handover | None:
    """Who has the newest state; None if nobody has any. Collective."""
    world, rank_hosts = placement.world, placement.topology.rank_hosts
    table = torch.zeros(world.size, len(Progress._fields), dtype=torch.int64)
    table[world.rank] = torch.tensor([int(value) for value in Progress.of(state)])
    world.sum_(table)  # collective
    ranks = [Progress(row[0], bool(row[1]), bool(row[2]), row[3]) for row in table.tolist()]
    newest = max(ranks)
    if newest.step < 0:
        return None
    having = [rank for rank, progress in enumerate(ranks) if progress.weights == newest.weights]

    def nearest(taker: int) -> int:
        return next((rank for rank in having if rank_hosts[rank] == rank_hosts[taker]), having[0])

    givers = {rank: nearest(rank) for rank in range(world.size) if rank not in having}
    return Handover(ranks.index(newest), givers)


class _Account(BaseModel):
    """What the source tells all ranks of the run."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    settings: Training
    precision: str  # in words
    precision_why: str
    saved: SavedState
    outcome: StepOutcome | None  # of the newest step, if that needs more than its update
    round_is_open: bool
    is_diloco: bool


def account(
    state: State | None, settled: SettledPrecision | None, data: DataSet, placement: Placement
) -> bytes:
    """The source's account of the run, for `give`; empty on a rank without a state."""
    if state is None or settled is None:
        return b""
    names = [name for name in SavedState.model_fields if hasattr(state, name)]
    values = {name: getattr(state, name) for name in names}
    told = _Account(
        settings=state.config,
        precision=settled.words,
        precision_why=settled.why,
        saved=SavedState(**values, world_size=placement.world.size, data_fingerprint=data.card.fingerprint),
        outcome=state.outcome,
        round_is_open=state.round_is_open,
        is_diloco=state.round_start is not None,
    )
    return told.model_dump_json().encode()


@dataclass(frozen=True)
class TakenOver:
    state: State
    settled: SettledPrecision
    data_fingerprint: str


def give(state: State | None, own: bytes, handover: Handover, data: DataSet, world: World) -> TakenOver:
    """The newest state on every rank: in place on those that have one, else new. Collective."""
    told = _Account.model_validate_json(world.broadcast_bytes(own, handover.source))  # collective
    state = state or _empty(told.settings, data, world)
    state.config = told.settings
    for field in dataclasses.fields(State):
        # With DiLoCo each replica has an optimizer and so a loss scale of its own.
        if field.name in SavedState.model_fields:
            setattr(state, field.name, getattr(told.saved, field.name))
    state.outcome, state.round_is_open = told.outcome, told.round_is_open
    for taker, giver in handover.givers.items():
        _send(state, giver, taker, told.is_diloco, world)
    settled = SettledPrecision(told.settings, told.precision, told.precision_why)
    return TakenOver(state, settled, told.saved.data_fingerprint)


def _empty(settings: Training, data: DataSet, world: World) -> State:
    model = Transformer(settings.model, len(data.tokenizer), settings.train.recompute).to(world.device)
    return State(settings, model, optimizer.build(model, settings.train))


def _send(state: State, giver: int, taker: int, is_diloco: bool, world: World) -> None:
    """Sends weights and moments from one rank to another; nothing happens on the others."""
    if world.rank == giver:
        moments = optimizer.state(state.optimizer, state.model)
        for tensor in _tensors(state, moments):
            world.send(tensor.detach().contiguous(), taker)
    if world.rank == taker:
        if is_diloco and state.round_start is None:
            parameters = dict(state.model.named_parameters())
            state.outer = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
            state.round_start = torch.zeros(sum(parameter.numel() for parameter in parameters.values()))
        moments = optimizer.empty_state(state.optimizer, state.model)
        for tensor in _tensors(state, moments):
            arrived = torch.empty_like(tensor, memory_format=torch.contiguous_format)
            world.receive_(arrived, giver)
            with torch.no_grad():
                tensor.copy_(arrived)
        optimizer.restore(state.optimizer, state.model, moments)


def _tensors(state: State, moments: dict[str, Tensor]) -> Iterator[Tensor]:
    """All tensors of a state, in the same order on every rank."""
    yield from state.model.state_dict().values()
    yield from moments.values()
    if state.round_start is not None:
        yield from state.outer.values()
        yield state.round_start
