"""Decides how a run exchanges (as configured, by measuring, or as before a restart); builds that exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import BaseModel
from torch.nn import Module

from dragoman.config import Sync
from dragoman.cost.step import BUCKET_BYTES, bucket_bytes_for
from dragoman.exchange_way import ExchangeWay, Mode, open_ways
from dragoman.sync import allreduce, diloco, sharded
from dragoman.sync.exchange import Exchange
from dragoman.sync.topology import Topology
from dragoman.sync.world import World

# The function that builds the exchange of each mode. Collective: it also sends rank 0's weights to all.
BUILDERS: dict[Mode, Callable[[Module, World, Topology, ExchangeWay, Sync, bool], Exchange]] = {
    "allreduce": allreduce.build,
    "sharded": sharded.Sharded,
    "diloco": diloco.DiLoCo,
}


class MeasuredLink(NamedTuple):
    """The slowest link between neighbouring hosts."""

    bits_per_second: float
    round_trip_seconds: float


class Choice(BaseModel):
    """A way, the reason for it, and what it depends on. While that stays the same, restarts keep the way."""

    way: ExchangeWay
    why: str  # empty if the settings name the way
    asked: dict[str, Any]  # the settings that it follows from
    rank_hosts: list[int]

    @classmethod
    def of(cls, way: ExchangeWay, why: str, settings: Sync, topology: Topology) -> Choice:
        return cls(way=way, why=why, asked=_deciding(settings), rank_hosts=topology.rank_hosts)

    def __str__(self) -> str:
        words = f"{self.way}, {self.way.bucket_words}"
        return f"{words} ({self.why})" if self.why else words

    def for_other_hosts(self, settings: Sync, topology: Topology) -> Choice:
        """The same way, as far as these hosts allow it: nothing is measured while a run is interrupted."""
        ways = open_ways(settings, topology.rank_hosts)
        same = [way for way in ways if way.kind == self.way.kind]
        way = self.way if same else ways[0].model_copy(update={"bucket_bytes": self.way.bucket_bytes})
        return self.model_copy(update={"way": way})

    def still_fits(self, settings: Sync, topology: Topology) -> bool:
        """Would these settings and hosts still allow this choice?"""
        return (
            self.asked == _deciding(settings)
            and self.rank_hosts == topology.rank_hosts
            and self.way.kind in [way.kind for way in open_ways(settings, topology.rank_hosts)]
        )


def _deciding(settings: Sync) -> dict[str, Any]:
    """The settings that the choice follows from."""
    return settings.model_dump(include={"mode", "wire", "hierarchical", "bucket_mb"})


def decide(
    settings: Sync,
    topology: Topology,
    link: MeasuredLink | None,
    kept: Choice | None,
    measured: Callable[[], Choice],
) -> Choice:
    """The way of this run. Calls `measured`, which is collective, only if needed."""
    if kept and kept.still_fits(settings, topology):
        return kept
    if settings.mode == "auto" and len(topology.hosts) > 1:
        return measured()
    return _as_configured(settings, topology, link)


def _as_configured(settings: Sync, topology: Topology, link: MeasuredLink | None) -> Choice:
    """The one way that the settings leave open, with DDP's bucket size if no link was measured."""
    [way] = open_ways(settings, topology.rank_hosts)
    why = "one machine, so nothing crosses a network" if settings.mode == "auto" else ""
    if way.bucket_bytes is None and not way.is_sharded:
        bucket_bytes = BUCKET_BYTES
        if link:
            bucket_bytes = bucket_bytes_for(len(topology.rank_hosts), *link)
            why = "bucket size chosen for the measured link"
        way = way.model_copy(update={"bucket_bytes": bucket_bytes})
    return Choice.of(way, why, settings, topology)


def build(
    model: Module,
    world: World,
    topology: Topology,
    way: ExchangeWay,
    settings: Sync,
    weights_agree: bool = False,
) -> Exchange:
    """The exchange for this way. Collective: also sends rank 0's weights to all, unless they agree."""
    return BUILDERS[way.mode](model, world, topology, way, settings, weights_agree)
