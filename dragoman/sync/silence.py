"""Tells of a host that falls silent, where no launcher of ours listens to the hosts.

mpirun, torchrun and srun say nothing while a cable is cut, and the ranks would wait for the timeout of a
collective. So the first rank of each host counts in the store through which the ranks met, and watches the
counts of the others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman import format_units

if TYPE_CHECKING:  # the launcher uses this file too, and starts without torch
    from torch.distributed import TCPStore

    from dragoman.sync.topology import Placement

SILENT_SECONDS = 10.0  # a host without a message for this long is told of
_BEAT_SECONDS = 2.0


def fell_silent(host: str, seconds: float, patience_seconds: float) -> str:
    """What is said of a host without messages, when the run waits for it this long."""
    waits = format_units.seconds(patience_seconds)
    return (
        f"warning: no message from {host} for {seconds:.0f} s: it or its network may be down; "
        f"the run waits up to {waits}"
    )


def answers_again(host: str) -> str:
    """What is said when a silent host is back."""
    return f"{host} answers again"


@contextmanager
def told(placement: Placement, say: Callable[[str], None]) -> Iterator[None]:
    """While this runs, says which of the other hosts is silent, and when it is back."""
    hosts, world = placement.topology.hosts, placement.world
    if len(hosts) == 1 or not placement.is_leader:
        yield
        return
    over = threading.Event()
    heard = Heard([host for host in hosts if host != hosts[placement.host]], world.timeout_seconds, say)
    # Two threads: over a cut cable, a call to the store waits until TCP gives up, a quarter of an hour.
    counting = threading.Thread(
        target=_count, args=(world.connect_to_store, hosts[placement.host], heard, over), daemon=True
    )
    watching = threading.Thread(target=_watch, args=(heard, over), daemon=True)
    for thread in (counting, watching):
        thread.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
        counting.join(_BEAT_SECONDS)  # it may wait for a lost host: the process ends without it


class Heard:
    """The other hosts' counts, and when each last changed."""

    def __init__(self, hosts: Sequence[str], patience_seconds: float, say: Callable[[str], None]):
        self._counts = dict.fromkeys(hosts, 0)
        self._changed = dict.fromkeys(hosts, time.monotonic())
        self._silent: set[str] = set()
        self._patience_seconds = patience_seconds
        self._say = say

    @property
    def hosts(self) -> Sequence[str]:
        return tuple(self._counts)

    def count(self, host: str, count: int) -> None:
        if count != self._counts[host]:
            self._counts[host], self._changed[host] = count, time.monotonic()

    def tell(self) -> None:
        """Says what has changed since the last call."""
        for host, changed in self._changed.items():
            seconds = time.monotonic() - changed
            if seconds > SILENT_SECONDS and host not in self._silent:
                self._silent.add(host)
                self._say(fell_silent(host, seconds, self._patience_seconds))
            elif seconds <= SILENT_SECONDS and host in self._silent:
                self._silent.remove(host)
                self._say(answers_again(host))


def _count(connect: Callable[[], TCPStore], own_host: str, heard: Heard, over: threading.Event) -> None:
    try:
        store = connect()
        while not over.wait(_BEAT_SECONDS):
            store.add(_key(own_host), 1)
            for host in heard.hosts:
                heard.count(host, store.add(_key(host), 0))
    except RuntimeError:  # torch's errors of a store are of this class
        return  # the store's host is gone: its silence is told, and the collectives end the run


def _watch(heard: Heard, over: threading.Event) -> None:
    while not over.wait(1.0):
        heard.tell()


def _key(host: str) -> str:
    return f"dragoman/alive/{host}"
