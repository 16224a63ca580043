"""Exchange of a sharded model: weights and gradients travel inside a host, sums of gradients between hosts.

For each microbatch, FSDP2 gathers every layer's weights for the forward pass and again for the backward pass,
and sums gradients so that each rank gets its rows. Between hosts, only the sums of a step's last microbatch
travel. Each of these is a collective, so all ranks compute the same number of microbatches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module

from dragoman.config import Sync
from dragoman.exchange_way import ExchangeWay
from dragoman.sync.exchange import Exchange
from dragoman.sync.shards import is_sharded
from dragoman.sync.topology import Topology
from dragoman.sync.world import World

if TYPE_CHECKING:  # takes half a second to import, which `shards.shard` does
    from torch.distributed.fsdp import FSDPModule

# torch 2.13 warns of the names that older ones know.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


class Sharded(Exchange):
    """Takes a model that `shards.shard` has divided, which also sent rank 0's weights."""

    in_lockstep = True

    def __init__(
        self,
        model: Module,
        world: World,
        topology: Topology,
        way: ExchangeWay,
        settings: Sync,
        weights_agree: bool = False,
    ):
        super().__init__(model, way)
        assert is_sharded(model)
        self._sharded = cast("FSDPModule", model)
        self._clock = _Clock()
        if world.device.type == "cpu":
            self._time_collectives(model, crosses_hosts=len(topology.hosts) > 1)

    @contextmanager
    def microbatch(self, is_last: bool) -> Iterator[None]:
        self._sharded.set_requires_all_reduce(is_last)
        yield

    def exposed_seconds(self) -> float:
        """On a CPU, all collectives of a backward pass, as they block. 0 on a GPU: nothing times them."""
        return self._clock.take("backward")

    def exposed_in_forward(self) -> float:
        return self._clock.take("forward")

    def _time_collectives(self, model: Module, crosses_hosts: bool) -> None:
        clock = self._clock
        model.register_forward_pre_hook(lambda *_: clock.enter("forward"), prepend=True)
        model.register_forward_hook(lambda *_: clock.enter("backward"))
        for each in model.modules():
            if is_sharded(each):
                module = cast("FSDPModule", each)
                module.set_custom_all_gather(_AllGather(clock))  # type: ignore[arg-type]
                module.set_custom_reduce_scatter(_ReduceScatter(clock))  # type: ignore[arg-type]
                if crosses_hosts:
                    # Called after the all-reduce, which follows the reduce-scatter.
                    module.set_all_reduce_hook(lambda _: clock.count_since_mark())


class _Clock:
    """The seconds spent in collectives, by pass."""

    def __init__(self) -> None:
        self._seconds = {"forward": 0.0, "backward": 0.0}
        self._within = "backward"
        self._marked = 0.0

    def enter(self, name: str) -> None:
        self._within = name

    def mark(self) -> None:
        self._marked = time.perf_counter()

    def count_since_mark(self) -> None:
        self._seconds[self._within] += time.perf_counter() - self._marked

    def take(self, name: str) -> float:
        """The seconds in this pass since the last call."""
        seconds, self._seconds[name] = self._seconds[name], 0.0
        return seconds


class _Timed:
    """What FSDP2 expects of the collectives it is given."""

    def __init__(self, clock: _Clock):
        self._clock = clock

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        self._clock.mark()  # with one rank per host, no reduce-scatter follows, only the all-reduce
        return torch.empty(*size, dtype=dtype, device=device)


class _AllGather(_Timed):
    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> dist.Work | None:
        self._clock.mark()
        work = _all_gather(output_tensor, input_tensor, group=group, async_op=async_op)
        self._clock.count_since_mark()
        return work


class _ReduceScatter(_Timed):
    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: dist.ProcessGroup,
        op: dist.ReduceOp.RedOpType,
        async_op: bool = False,
    ) -> dist.Work | None:
        self._clock.mark()
        work = _reduce_scatter(output_tensor, input_tensor, op=op, group=group, async_op=async_op)
        self._clock.count_since_mark()
        self._clock.mark()
        return work
