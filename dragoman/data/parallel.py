"""Shares work out to all cores, and returns the results in the order of the work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from dragoman.errors import DragomanError

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """The cores this process may use: in a container or under taskset, fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """One process per core. Spawned, not forked: a fork copies locks that the parent's threads may hold."""

    def __init__(self, count: int | None = None):
        self._count = count or cores()
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self._count, mp_context=context, initializer=_end_with_the_parent)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """`function` of each item, in order. Few items are in progress at once, so memory stays flat."""
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                with ctrl_c_deferred():  # submitting starts the processes, one by one
                    pending.append(self._pool.submit(function, item))
                if len(pending) > 2 * self._count:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool:
            raise DragomanError(
                "a worker process died (it was killed, or the machine ran out of memory)",
                hint="run the same command again: it keeps the finished stages",
            ) from None


def _end_with_the_parent() -> None:
    """Ends this worker as soon as its parent is gone. It would otherwise wait for work for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def ctrl_c_deferred() -> Iterator[None]:
    """Processes started inside the block never see Ctrl-C: only the parent does, and ends them in order.

    They inherit the signal mask. For the parent the mask is not enough: a library's thread that does not
    block the signal may receive it, and Python would still raise KeyboardInterrupt in the main thread. So the
    parent handles it after the block.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if received:
            signal.raise_signal(signal.SIGINT)
