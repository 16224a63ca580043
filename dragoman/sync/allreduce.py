"""All-reduce of every step's gradients with DDP, which sends them while the backward pass still computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch.distributed as dist
from torch import Tensor
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel

from dragoman.config import Sync
from dragoman.cost.step import BUCKET_BYTES
from dragoman.exchange_way import ExchangeWay
from dragoman.sync import wire
from dragoman.sync.bucket_sender import BucketSender, Route
from dragoman.sync.exchange import Exchange
from dragoman.sync.hierarchical import Groups, ThroughLeaders
from dragoman.sync.topology import Topology
from dragoman.sync.whole_buckets import WholeBuckets
from dragoman.sync.wire import Finish
from dragoman.sync.world import World


def build(
    model: Module,
    world: World,
    topology: Topology,
    way: ExchangeWay,
    settings: Sync,
    weights_agree: bool = False,
) -> AllReduce:
    """An all-reduce in every step. Collective: also sends rank 0's weights to all, unless they agree."""
    route: Route | None = None
    buckets = None
    if way.is_hierarchical:
        route = ThroughLeaders(Groups(world, topology, way.flows), way)
    elif dist.get_backend() == "nccl":
        buckets = WholeBuckets(way.wire)
    elif way.wire != "fp32":
        route = Flat(world, way)
    return AllReduce(model, world, way, route, whole_buckets=buckets, weights_agree=weights_agree)


class AllReduce(Exchange):
    """Averages gradients over ranks in the backward pass of a step's last microbatch.

    Without a route and without whole buckets, DDP sends them itself over a ring of all ranks, in fp32.
    """

    def __init__(
        self,
        model: Module,
        world: World,
        way: ExchangeWay,
        route: Route | None = None,
        group: dist.ProcessGroup | None = None,
        whole_buckets: WholeBuckets | None = None,
        weights_agree: bool = False,
    ):
        """Collective: also sends rank 0's weights to all, unless they agree."""
        super().__init__(model, way)
        self._ranks = dist.get_world_size(group)
        self._ddp = DistributedDataParallel(
            model,
            device_ids=[world.device.index] if world.device.type == "cuda" else None,
            bucket_cap_mb=_bucket_cap_mb(way),
            gradient_as_bucket_view=True,
            process_group=group,
            init_sync=self._ranks > 1 and not weights_agree,  # it copies all weights, even of a single rank
        )
        self._ddp._set_ddp_runtime_logging_sample_rate(1)  # DDP's own timings, in every step
        self._sender = BucketSender(route, world.device) if route else None
        if self._sender:
            self._ddp.register_comm_hook(None, self._sender.hook)
        elif whole_buckets:
            self._ddp.register_comm_hook(None, whole_buckets.hook)
        self.model = self._ddp

    @contextmanager
    def microbatch(self, is_last: bool) -> Iterator[None]:
        """Surrounds forward and backward: DDP decides in the forward whether to exchange."""
        if is_last:
            yield
            if self._sender:
                self._sender.raise_failure()
        else:
            with self._ddp.no_sync():
                yield

    def exposed_seconds(self) -> float:
        """Taken from DDP's own timings, a private interface of torch; includes the wait for a slower rank.

        On a GPU this call waits for the exchange.
        """
        assert self._ddp.logger
        self._ddp.logger.set_runtime_stats_and_log()  # DDP itself does so in the next forward, a step late
        times = self._ddp._get_ddp_logging_data()
        hidden = times.get("backward_compute_comm_overlap_time", 0)
        return max(0, times.get("backward_comm_time", 0) - hidden) / 1e9

    def settle(self, forward: Callable[[], Tensor]) -> None:
        """Makes one exchange and throws its result away. Collective.

        DDP changes the layout of its buckets after its first backward pass. With three or more ranks the
        layout decides the order of summation, and so the last bits. A stopped run and an unbroken one agree
        only if the layout is settled before the first counted step.
        """
        if self._ranks < 3:
            return
        with self.microbatch(is_last=True):
            (forward() * 0).backward()
        self._ddp.zero_grad(set_to_none=False)

    def close(self) -> None:
        if self._sender:
            self._sender.close()


def _bucket_cap_mb(way: ExchangeWay) -> float | None:
    """The bucket size for DDP; None keeps its default, which also has a small first bucket."""
    return None if way.bucket_bytes in (None, BUCKET_BYTES) else way.bucket_bytes / 2**20


class Flat:
    """Sends gradients around one ring of all ranks."""

    def __init__(self, world: World, way: ExchangeWay):
        self._size = world.size
        self._wire = way.wire

    def begin(self, gradients: Tensor) -> Finish:
        summed = wire.begin(gradients, None, self._wire)

        def finish() -> None:
            summed()
            gradients.div_(self._size)

        return finish
