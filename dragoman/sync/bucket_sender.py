"""The one thread that makes a rank's collectives where a bucket needs several of them.

DDP hands over a bucket and goes on computing. All collectives are made here, in the order of the buckets,
which is the same on every rank: started from gloo's own callbacks they would overtake one another, and ranks
would wait for each other for ever.
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
        """Starts the mean of these flat gradients over all ranks, in place; what ends it. Collective.

        Ends are called in the order of beginnings, each after the beginning that follows it.
        """


class Pipeline:
    """Gradients in pieces, two of which are under way at a time."""

    def __init__(self, route: Route):
        self._route = route
        self._finish: Finish | None = None

    def send(self, gradients: Tensor, arrived: Finish | None = None) -> None:
        """`arrived` is called when the whole is there, perhaps while something else is sent. Collective."""
        pieces = gradients.split(PIECE_BYTES // gradients.element_size())
        for number, piece in enumerate(pieces):
            finish, before = self._route.begin(piece), self._finish
            self._finish = _both(finish, arrived) if arrived and number == len(pieces) - 1 else finish
            if before:
                before()

    def flush(self) -> None:
        """Until everything has arrived. Collective."""
        finish, self._finish = self._finish, None
        if finish:
            finish()


def _both(first: Finish, second: Finish) -> Finish:
    def finish() -> None:
        first()
        second()

    return finish


class _Bucket(NamedTuple):
    """A bucket of gradients that waits to be exchanged, or is being exchanged."""

    gradients: Tensor
    is_last: bool
    arrived: Future[Tensor]
    ready: torch.cuda.Event | None  # on a GPU: when the gradients are computed


class BucketSender:
    """Sends the buckets of a DDP model along a route. On GPUs not run on hardware yet."""

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
        """For `register_comm_hook`, which asks for this name and these types (as types, not as text)."""
        arrived: Future[Tensor] = Future(devices=[self._device] if self._is_gpu else None)
        ready = torch.cuda.Event() if self._is_gpu else None
        if ready:
            ready.record()
        self._waiting.put(_Bucket(bucket.buffer(), bucket.is_last(), arrived, ready))
        return arrived

    def raise_failure(self) -> None:
        """A collective that failed fails the step, here: DDP cannot pass an error on."""
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
            self._arrived()  # as it is: nobody may wait for ever

    def _arrived(self) -> None:
        """They arrive in the order in which they left."""
        bucket = self._under_way.popleft()
        bucket.arrived.set_result(bucket.gradients)

    def _stream(self) -> AbstractContextManager[object]:
        """Beside the computing, not in its queue."""
        return torch.cuda.stream(torch.cuda.Stream(self._device)) if self._is_gpu else nullcontext()
