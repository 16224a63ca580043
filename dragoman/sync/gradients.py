"""How gradients meet: DDP, which sends them while the rest of the backward pass still computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.parallel import DistributedDataParallel

from dragoman.model import Transformer
from dragoman.sync.world import World


class Exchange:
    """A model whose gradients are averaged over ranks in the backward pass of a step's last microbatch."""

    def __init__(self, model: Transformer, world: World):
        """Collective: also sends rank 0's weights to all."""
        devices = [world.device.index] if world.device.type == "cuda" else None
        self.model = DistributedDataParallel(model, device_ids=devices, gradient_as_bucket_view=True)
        self.model._set_ddp_runtime_logging_sample_rate(1)  # DDP's own clocks, of every step

    @contextmanager
    def microbatch(self, is_last: bool) -> Iterator[None]:
        """Around the forward and backward of a microbatch: DDP decides in the forward whether to exchange."""
        if is_last:
            yield
        else:
            with self.model.no_sync():
                yield

    def exposed_seconds(self) -> float:
        """Of the last exchange: from the end of computing to the end of communicating, by DDP's own clocks.

        It holds the wait for a slower rank as well. This is a private interface of torch.
        """
        times = self.model._get_ddp_logging_data()
        ended, computed = times.get("backward_comm_time_end"), times.get("backward_compute_time_end")
        return (ended - computed) / 1e9 if ended and computed else 0.0

    def settle(self, loss: torch.Tensor) -> None:
        """One exchange whose result is thrown away. Collective.

        DDP lays out its buckets anew after its first backward pass. From three ranks on the layout decides
        the order of summation, and so the last bits: a run that was stopped and one that was not agree only
        if the layout is settled before the first counted step.
        """
        (loss * 0).backward()
        self.model.zero_grad(set_to_none=False)
