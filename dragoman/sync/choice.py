"""Which way a run exchanges: as asked for, measured, or chosen before; and the exchange built for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import BaseModel
from torch.nn import Module

from dragoman.config import Sync
from dragoman.cost.step import BUCKET_BYTES, bucket_bytes_for
from dragoman.sync.allreduce import AllReduce, Flat
from dragoman.sync.diloco import DiLoCo
from dragoman.sync.exchange import Exchange, Way
from dragoman.sync.hierarchical import Groups, ThroughLeaders
from dragoman.sync.topology import Topology
from dragoman.sync.world import World


class MeasuredLink(NamedTuple):
    """Between neighbouring hosts, the slowest of them."""

    bits_per_second: float
    round_trip_seconds: float


class Choice(BaseModel):
    """A way, and for what it was chosen: it is kept for as long as that is the same, also over restarts."""

    way: Way
    why: str  # nothing where it was simply asked for
    asked: dict[str, Any]
    rank_hosts: list[int]

    @classmethod
    def of(cls, way: Way, why: str, settings: Sync, topology: Topology) -> Choice:
        return cls(way=way, why=why, asked=asked(settings), rank_hosts=topology.rank_hosts)

    def __str__(self) -> str:
        return f"{self.way} ({self.why})" if self.why else str(self.way)

    def still_fits(self, settings: Sync, topology: Topology) -> bool:
        return self.asked == asked(settings) and self.rank_hosts == topology.rank_hosts


def asked(settings: Sync) -> dict[str, Any]:
    """What the choice follows from."""
    return settings.model_dump(include={"mode", "wire", "hierarchical", "bucket_mb"})


def decide(
    settings: Sync,
    topology: Topology,
    link: MeasuredLink | None,
    kept: Choice | None,
    measured: Callable[[], Choice],
) -> Choice:
    """The way of this run. `measured` is asked only where it is needed. Collective then."""
    if kept and kept.still_fits(settings, topology):
        return kept
    if settings.mode == "auto" and len(topology.hosts) > 1:
        return measured()
    way, why = _plain(settings, topology, link)
    return Choice.of(way, why, settings, topology)


def _plain(settings: Sync, topology: Topology, link: MeasuredLink | None) -> tuple[Way, str]:
    """As the settings say; where they say nothing, as DDP does it."""
    shape = "hierarchical" if settings.hierarchical and can_be_hierarchical(topology) else "allreduce"
    why = "on one machine nothing crosses a network" if settings.mode == "auto" else ""
    if settings.bucket_mb:
        bucket_bytes = int(settings.bucket_mb * 2**20)
    elif link:
        bucket_bytes = bucket_bytes_for(len(topology.rank_hosts), *link)
        why = "bucket size by the measured link"
    else:
        bucket_bytes = BUCKET_BYTES
    return Way(algorithm=shape, wire=settings.wire or "fp32", bucket_bytes=bucket_bytes), why


def can_be_hierarchical(topology: Topology) -> bool:
    """Several hosts, and several ranks on one of them."""
    return len(topology.rank_hosts) > len(topology.hosts) > 1


def build(model: Module, world: World, topology: Topology, way: Way, settings: Sync) -> Exchange:
    """Collective: also sends rank 0's weights to all."""
    if settings.mode == "diloco":
        return DiLoCo(model, world, topology, way, settings)
    if way.algorithm == "hierarchical":
        return AllReduce(model, world, way, ThroughLeaders(Groups(world, topology, way.flows), way))
    return AllReduce(model, world, way, Flat(world, way) if way.wire != "fp32" else None)
