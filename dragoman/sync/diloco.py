"""DiLoCo: replicas make steps of their own and meet every so many steps (Douillard et al., arXiv 2311.08105).

In between each replica follows its own optimizer. When they meet, their weight changes since the common start
(start less now) are averaged and used as a gradient: an outer step with Nesterov's momentum leads to the next
start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Module

from dragoman.config import Sync
from dragoman.exchange_way import ExchangeWay
from dragoman.sync.allreduce import AllReduce, Flat
from dragoman.sync.bucket_sender import Route
from dragoman.sync.exchange import Exchange
from dragoman.sync.hierarchical import Groups, ThroughLeaders
from dragoman.sync.topology import Topology
from dragoman.sync.world import World


def replicas(settings: Sync, topology: Topology) -> list[int]:
    """The replica of each rank: every rank is one, or every host. Nothing without DiLoCo."""
    if settings.mode != "diloco":
        return []
    return list(topology.rank_hosts if settings.hierarchical else range(len(topology.rank_hosts)))


class DiLoCo(Exchange):
    """Ranks of one replica average their gradients in every step, inside their host."""

    def __init__(self, model: Module, world: World, topology: Topology, way: ExchangeWay, settings: Sync):
        """Collective: also sends rank 0's weights to all."""
        super().__init__(model, way)
        self.replicas = replicas(settings, topology)
        self.together = [
            rank for rank, replica in enumerate(self.replicas) if replica == self.replicas[world.rank]
        ]
        self._rate, self._momentum = settings.outer_rate, settings.outer_momentum
        for tensor in model.state_dict().values():
            world.broadcast_(tensor)
        groups = Groups(world, topology, way.flows) if way.is_hierarchical else None
        self._route: Route = ThroughLeaders(groups, way) if groups else Flat(world, way)
        # A route gives the mean over ranks. Replicas count alike, however many ranks they have.
        self._weight = world.size / len(self.together) / len(set(self.replicas))
        inside = ExchangeWay(bucket_bytes=way.bucket_bytes)
        self._inner = (
            AllReduce(model, world, inside, group=groups.local if groups else None)
            if len(self.together) > 1
            else Exchange(model, inside)
        )
        self.model = self._inner.model
        self._parameters = dict(model.named_parameters())
        self._start = torch.cat(self._flattened())
        self._moved = torch.empty_like(self._start)
        self._velocity = torch.zeros_like(self._start)
        self.outer = dict(zip(self._parameters, self._views(self._velocity), strict=True))

    @contextmanager
    def microbatch(self, is_last: bool) -> Iterator[None]:
        with self._inner.microbatch(is_last):
            yield

    def exposed_seconds(self) -> float:
        """Inside the replica. To meet the others is all exposed: the step's own clock counts it."""
        return self._inner.exposed_seconds()

    def settle(self, forward: Callable[[], Tensor]) -> None:
        self._inner.settle(forward)

    def restore_outer(self, outer: Mapping[str, Tensor]) -> None:
        for name, velocity in outer.items():
            self.outer[name].copy_(velocity)

    @torch.no_grad()
    def end_round(self) -> None:
        """Everybody goes on from the same weights. Collective."""
        torch.cat(self._flattened(), out=self._moved)
        torch.sub(self._start, self._moved, out=self._moved)
        if self._weight != 1.0:
            self._moved.mul_(self._weight)
        self._route.begin(self._moved)()
        self._velocity.mul_(self._momentum).add_(self._moved)
        self._start.sub_(self._moved.add_(self._velocity, alpha=self._momentum), alpha=self._rate)
        for parameter, start in zip(self._parameters.values(), self._views(self._start), strict=True):
            parameter.copy_(start)

    def close(self) -> None:
        self._inner.close()

    def _flattened(self) -> list[Tensor]:
        return [parameter.detach().flatten() for parameter in self._parameters.values()]

    def _views(self, flat: Tensor) -> list[Tensor]:
        """Each parameter's part, in its shape."""
        shapes = [parameter.shape for parameter in self._parameters.values()]
        parts = flat.split([shape.numel() for shape in shapes])
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
