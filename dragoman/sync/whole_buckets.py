"""Gradients over NCCL: each bucket of DDP in one piece.

NCCL runs collectives in the order of the calls, on a stream of its own. So a bucket is sent as soon as DDP
hands it over, without a thread. Without a hook DDP would divide each gradient in a launch of its own, 155
in a step of transformer-base; NCCL divides while it sums. Run on a stand-in for NCCL, not on hardware.
"""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from dragoman.exchange_way import Wire


class WholeBuckets:
    def __init__(self, wire: Wire):
        self._wire = wire

    def hook(self, state: object, bucket: dist.GradBucket) -> Future[Tensor]:
        """The hook for `register_comm_hook`, which needs this name and these types (as types, not text)."""
        gradients = bucket.buffer()
        sent = gradients.to(torch.bfloat16) if self._wire == "bf16" else gradients
        averaging = dist.all_reduce(sent, op=dist.ReduceOp.AVG, async_op=True)
        assert averaging

        def arrived(done: Future[list[Tensor]]) -> Tensor:
            (average,) = done.value()
            return average if average.dtype == gradients.dtype else gradients.copy_(average)

        return averaging.get_future().then(arrived)
