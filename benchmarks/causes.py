"""What can be in the way of a training, on this machine or on hosts of the test bed, and taken away again."""

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
    """Where a training runs, and what is in its way."""

    workers: int = 1  # on each host; on this machine, if `hosts` is 0
    hosts: int = 0  # of the test bed, with one core each
    rate: str | None = None  # of their links
    delay_seconds: float = 0.0  # of their links, one way
    slow_host: float | None = None  # the last host gets this share of a core
    busy_neighbour: bool = False  # another program computes on the last host's core
    traffic: str | None = None  # another program sends from the first host to the second
    competitors: int = 0  # programs that compute on this machine's cores, one on each of the training's
    hindrances: tuple[str, ...] = ()  # of hindered.py: name=value
    from_step: int = 0  # all this comes after that step
    # Causes that are taken away by turns after the part of the run that is reported on. Before and after each
    # turn without one of them comes a turn with all.
    reliefs: tuple[str, ...] = ()
    period: int = 1  # steps after which a run repeats itself: from checkpoint to checkpoint, DiLoCo's round
    reported_from: int = 0  # the report is on the steps after this one

    def without(self, cause: str) -> Setting:
        """The same without a cause: the name of a field or of a hindrance, or several with + between them."""
        first, _, others = cause.partition("+")
        return self._without(first).without(others) if others else self._without(first)

    def _without(self, cause: str) -> Setting:
        if cause in {field.name for field in fields(self)}:
            return replace(self, **{cause: getattr(Setting(), cause)})
        left = tuple(hindrance for hindrance in self.hindrances if name_of(hindrance) != cause)
        assert left != self.hindrances, f"{cause} is not in the way"
        return replace(self, hindrances=left)


def name_of(hindrance: str) -> str:
    return hindrance.partition("=")[0]


def switch(run: RunFolder, hindrance: str) -> Path:
    """While this file is there, the training is hindered."""
    return run.path / f"{name_of(hindrance)}.on"


def cores(count: int) -> list[int]:
    """The first ones that this process may use; a host of the test bed has the one of its number."""
    mine = sorted(os.sched_getaffinity(0))
    return [mine[number % len(mine)] for number in range(count)]


def pinned(*cores: int) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, cores))]


@contextmanager
def in_the_way(where: Setting, run: RunFolder, cluster: Cluster | None) -> Iterator[None]:
    """Everything that the setting names, until the block ends."""
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
