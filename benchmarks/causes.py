"""Causes that slow a training down, here or on hosts of the test bed, and how to remove them again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

from dragoman import orphans
from dragoman.rundir import RunFolder
from testbed import Cluster

COMPETITOR = [sys.executable, "-c", "while True: pass"]


@dataclass(frozen=True)
class Setting:
    """Where a training runs, and what slows it down."""

    workers: int = 1  # on each host, or on this machine if `hosts` is 0
    hosts: int = 0  # of the test bed, each with one core
    rate: str | None = None  # of the hosts' links
    delay_seconds: float = 0.0  # of the hosts' links, one way
    slow_host: float | None = None  # the last host gets this share of a core
    busy_neighbour: bool = False  # another program computes on the last host's core
    traffic: str | None = None  # another program sends from the first host to the second
    competitors: int = 0  # programs that compute on this machine, one on each of the training's cores
    hindrances: tuple[str, ...] = ()  # of hindered.py: name=value
    from_step: int = 0  # the causes start after this step
    # Causes that are removed one at a time, in turns, after the reported part of the run. Before and after
    # each turn without a cause there is a turn with all of them.
    reliefs: tuple[str, ...] = ()
    period: int = 1  # steps after which a run repeats itself: a checkpoint interval or a DiLoCo round
    reported_from: int = 0  # the report covers the steps after this one

    def without(self, cause: str) -> Setting:
        """The same setting without a cause: a field or a hindrance by name, or several joined by +."""
        first, _, others = cause.partition("+")
        return self._without(first).without(others) if others else self._without(first)

    def _without(self, cause: str) -> Setting:
        if cause in {field.name for field in fields(self)}:
            return replace(self, **{cause: getattr(Setting(), cause)})
        remaining = tuple(hindrance for hindrance in self.hindrances if name_of(hindrance) != cause)
        assert remaining != self.hindrances, f"{cause} is not in this setting"
        return replace(self, hindrances=remaining)


def name_of(hindrance: str) -> str:
    return hindrance.partition("=")[0]


def switch(run: RunFolder, hindrance: str) -> Path:
    """The file that switches a hindrance on while it exists."""
    return run.path / f"{name_of(hindrance)}.on"


def cores(count: int) -> list[int]:
    """The first cores that this process may use; each host of the test bed uses the core of its number."""
    usable = sorted(os.sched_getaffinity(0))
    return [usable[number % len(usable)] for number in range(count)]


def pinned(*cores: int) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, cores))]


@contextmanager
def in_the_way(where: Setting, run: RunFolder, cluster: Cluster | None) -> Iterator[None]:
    """Apply every cause in the setting during the block."""
    with ExitStack() as causes:
        for hindrance in where.hindrances:
            switch(run, hindrance).touch()
            causes.callback(switch(run, hindrance).unlink)
        for core in cores(where.competitors):
            _until_the_end(causes, _competitor(core))
        if cluster:
            _on_hosts(causes, cluster, where)
        yield


def _on_hosts(causes: ExitStack, cluster: Cluster, where: Setting) -> None:
    last = where.hosts - 1
    if where.rate:
        cluster.rate(where.rate)
        causes.callback(cluster.rate, None)
    if where.delay_seconds:
        cluster.delay(where.delay_seconds)
        causes.callback(cluster.delay, 0.0)
    if where.slow_host:
        cluster.slow(last, where.slow_host)
        causes.callback(cluster.slow, last, None)
    if where.busy_neighbour:
        core = cores(where.hosts)[last]
        _until_the_end(causes, cluster.popen(last, [*pinned(core), *COMPETITOR]))
    if where.traffic:
        causes.enter_context(cluster.traffic(0, 1, where.traffic))


def _competitor(core: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*pinned(core), *COMPETITOR], preexec_fn=orphans.end_with_parent)


def _until_the_end(causes: ExitStack, process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    causes.callback(process.wait)
    causes.callback(process.kill)  # callbacks run in reverse
