"""The one thread that calls a rank's collectives, for exchanges that need several of them per bucket.

DDP hands over a bucket and continues computing. This thread calls all collectives in the order of the
buckets, which is the same on every rank. Started from gloo's own callbacks they would overtake one another,
and ranks would wait for each other forever.
"""

import threading
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import NamedTuple, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from dragoman.sync.wire import Finish

PIECE_BYTES = 4 * 2**20  # while a piece crosses the network, the next is summed or rounded


class Route(Protocol):
    def begin(self, gradients: Tensor) -> Finish:
        """Starts averaging flat gradients over all ranks, in place; the result finishes it. Collective.

        Callers finish in the order of starting, each exchange after the next one has started.
        """


class Pipeline:
    """Sends gradients in pieces, two at a time."""

    def __init__(self, route: Route):
        self._route = route
        self._finish: Finish | None = None

    def send(self, gradients: Tensor, arrived: Finish | None = None) -> None:
        """Sends gradients; calls `arrived` once all are there, perhaps while others are sent. Collective."""
        pieces = gradients.split(PIECE_BYTES // gradients.element_size())
        for number, piece in enumerate(pieces):
            finish, before = self._route.begin(piece), self._finish
            self._finish = _both(finish, arrived) if arrived and number == len(pieces) - 1 else finish
            if before:
                before()

    def flush(self) -> None:
        """Waits until everything has arrived. Collective."""
        finish, self._finish = self._finish, None
        if finish:
            finish()


def _both(first: Finish, second: Finish) -> Finish:
    def finish() -> None:
        first()
        second()

    return finish


class _Bucket(NamedTuple):
    """A bucket of gradients that is waiting to be exchanged or is being exchanged."""

    gradients: Tensor
    is_last: bool
    arrived: Future[Tensor]
    ready: torch.cuda.Event | None  # on a GPU: when the gradients are computed


class BucketSender:
    """Sends the buckets of a DDP model along a route. Not yet run on GPU hardware."""

    def __init__(self, route: Route, device: torch.device):
        self._pipeline = Pipeline(route)
        self._device = device
        self._is_gpu = device.type == "cuda"
        self._failure: Exception | None = None
        self._under_way: deque[_Bucket] = deque()
        self._waiting: SimpleQueue[_Bucket | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="bucket-sender", daemon=True)
        self._thread.start()

    def hook(self, state: object, bucket: dist.GradBucket) -> Future[Tensor]:
        """The hook for `register_comm_hook`, which needs this name and these types (as types, not text)."""
        arrived: Future[Tensor] = Future(devices=[self._device] if self._is_gpu else None)
        ready = torch.cuda.Event() if self._is_gpu else None
        if ready:
            ready.record()
        self._waiting.put(_Bucket(bucket.buffer(), bucket.is_last(), arrived, ready))
        return arrived

    def raise_failure(self) -> None:
        """Raises the error of a failed collective in the step: DDP cannot pass it on."""
        if self._failure:
            raise self._failure

    def close(self) -> None:
        self._waiting.put(None)

    def _run(self) -> None:
        with self._stream():
            while bucket := self._waiting.get():
                if bucket.ready:
                    bucket.ready.wait()
                self._send(bucket)

    def _send(self, bucket: _Bucket) -> None:
        self._under_way.append(bucket)
        try:
            if not self._failure:
                self._pipeline.send(bucket.gradients, self._arrived)
                if bucket.is_last:
                    self._pipeline.flush()
        except Exception as error:
            self._failure = error
        while self._failure and self._under_way:
            self._arrived()  # not averaged, but nobody may wait for it forever

    def _arrived(self) -> None:
        """Notes the arrival of a bucket; buckets arrive in the order in which they were sent."""
        bucket = self._under_way.popleft()
        bucket.arrived.set_result(bucket.gradients)

    def _stream(self) -> AbstractContextManager[object]:
        """A CUDA stream of its own, so that sending does not queue behind computing."""
        return torch.cuda.stream(torch.cuda.Stream(self._device)) if self._is_gpu else nullcontext()
