"""DiLoCo: replicas train apart and exchange only once a round (Douillard et al., arXiv 2311.08105).

Within a round each replica follows its own optimizer. At its end the replicas average their weight changes
since the common start (start minus now) and use the mean as a gradient: an outer update with Nesterov's
momentum gives the next start.
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
    """The replica of each rank: every rank is one, or every host is. Empty without DiLoCo."""
    if settings.mode != "diloco":
        return []
    return list(topology.rank_hosts if settings.hierarchical else range(len(topology.rank_hosts)))


class DiLoCo(Exchange):
    """Averages gradients within a replica, inside its host, in every step, and replicas once a round."""

    def __init__(
        self,
        model: Module,
        world: World,
        topology: Topology,
        way: ExchangeWay,
        settings: Sync,
        weights_agree: bool = False,
    ):
        """Collective: also sends rank 0's weights to all, unless each replica continues with its own."""
        super().__init__(model, way)
        self.replicas = replicas(settings, topology)
        self.together = [
            rank for rank, replica in enumerate(self.replicas) if replica == self.replicas[world.rank]
        ]
        self._rate, self._momentum = settings.outer_rate, settings.outer_momentum
        for tensor in () if weights_agree else model.state_dict().values():
            world.broadcast_(tensor)
        groups = Groups(world, topology, way.flows) if way.is_hierarchical else None
        self._route: Route = ThroughLeaders(groups, way) if groups else Flat(world, way)
        # A route gives the mean over ranks. Replicas count equally, whatever their number of ranks.
        self._weight = world.size / len(self.together) / len(set(self.replicas))
        inside = ExchangeWay(bucket_bytes=way.bucket_bytes)
        self._inner = (
            AllReduce(
                model, world, inside, group=groups.local if groups else None, weights_agree=weights_agree
            )
            if len(self.together) > 1
            else Exchange(model, inside)
        )
        self.model = self._inner.model
        self._parameters = dict(model.named_parameters())
        self.round_start: Tensor = torch.cat(self._flattened())
        self._moved = torch.empty_like(self.round_start)
        self._velocity = torch.zeros_like(self.round_start)
        self.outer = dict(zip(self._parameters, self._views(self._velocity), strict=True))

    @contextmanager
    def microbatch(self, is_last: bool) -> Iterator[None]:
        with self._inner.microbatch(is_last):
            yield

    def exposed_seconds(self) -> float:
        """Only within the replica: the exchange between replicas is all exposed, and the step times it."""
        return self._inner.exposed_seconds()

    def settle(self, forward: Callable[[], Tensor]) -> None:
        self._inner.settle(forward)

    def restore(self, outer: Mapping[str, Tensor], round_start: Tensor | None) -> None:
        for name, velocity in outer.items():
            self.outer[name].copy_(velocity)
        if round_start is not None:
            self.round_start.copy_(round_start)

    @torch.no_grad()
    def end_round(self) -> None:
        """Gives all replicas the same weights. Collective."""
        torch.cat(self._flattened(), out=self._moved)
        torch.sub(self.round_start, self._moved, out=self._moved)
        if self._weight != 1.0:
            self._moved.mul_(self._weight)
        self._route.begin(self._moved)()
        self._velocity.mul_(self._momentum).add_(self._moved)
        self.round_start.sub_(self._moved.add_(self._velocity, alpha=self._momentum), alpha=self._rate)
        for parameter, start in zip(self._parameters.values(), self._views(self.round_start), strict=True):
            parameter.copy_(start)

    def close(self) -> None:
        self._inner.close()

    def _flattened(self) -> list[Tensor]:
        return [parameter.detach().flatten() for parameter in self._parameters.values()]

    def _views(self, flat: Tensor) -> list[Tensor]:
        """The part of each parameter, in its shape."""
        shapes = [parameter.shape for parameter in self._parameters.values()]
        parts = flat.split([shape.numel() for shape in shapes])
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
