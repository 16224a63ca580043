"""The faults of the bench: how each is brought about, what must follow, and how it is taken back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psutil

from benchmarks.fault_site import Launched, Lost, Site, kill

_RETRY_SECONDS = 1.0
_MOST_RETRY_SECONDS = 60.0  # ranks without a launcher save and end, before the same command can continue
_UNFELT_SECONDS = 40.0  # after this long, a fault that did not keep the others from training is left alone
_PIECE_BYTES = 4096
_SAVE_SECONDS = 20.0  # to wait for a checkpoint to be written


@dataclass
class Fault:
    """One fault under way."""

    site: Site
    launched: Launched
    random: Random
    where: str = ""
    began: float = 0.0  # when it struck
    is_felt: bool = True  # a new world must follow
    out: set[int] = field(default_factory=set)  # hosts that shall not come back
    cut: set[int] = field(default_factory=set)

    def strikes(self, where: str) -> None:
        self.where, self.began = where, time.monotonic()
        self.launched.note(f"fault: {where}")

    def host(self) -> int:
        return self.random.choice(self.site.with_ranks() or list(self.site.hosts))

    def rank(self) -> psutil.Process:
        host = self.host()
        if not (ranks := self.site.ranks(host)):
            raise Lost(f"no ranks on h{host}")
        chosen: psutil.Process = self.random.choice(ranks)
        self.where = f"process {chosen.pid} on h{host}"
        return chosen

    def first_host(self) -> int:
        return next(iter(self.site.with_ranks()), 0)


Heal = Callable[[], None] | None


def _signal(fault: Fault, number: int) -> None:
    rank = fault.rank()
    fault.strikes(fault.where)
    kill([rank], number)


def rank_killed(fault: Fault) -> None:
    _signal(fault, signal.SIGKILL)


def rank_aborted(fault: Fault) -> None:
    _signal(fault, signal.SIGSEGV)


def rank_stopped(fault: Fault) -> None:
    _signal(fault, signal.SIGSTOP)


def rank_exception(fault: Fault) -> None:
    _signal(fault, signal.SIGUSR1)


def all_killed(fault: Fault) -> None:
    ranks = [rank for host in fault.site.hosts for rank in fault.site.ranks(host)]
    fault.strikes("all ranks")
    kill(ranks)


def agent_killed(fault: Fault) -> None:
    host = fault.host()
    agents = fault.site.agents(host)
    fault.strikes(f"the agent of h{host}")
    kill(agents)


def _crash(fault: Fault, host: int) -> None:
    processes = fault.site.processes(host)
    fault.strikes(f"h{host}")
    kill(processes)
    if fault.site.launch_host == host:
        _again(fault)


def host_crashed(fault: Fault) -> None:
    _crash(fault, fault.host())


def first_host_crashed(fault: Fault) -> None:
    _crash(fault, fault.first_host())


def host_cut(fault: Fault) -> None:
    host, until = fault.host(), time.monotonic() + fault.random.uniform(15, 25)
    since = len(fault.launched.lines)
    fault.strikes(f"the link of h{host}")
    fault.site.cluster.cut(host)
    try:
        # The launcher on that host sees all the others lost. Without any other ranks, the run waits.
        if {host} != set(fault.site.with_ranks()) or fault.site.launch_host == host:
            wait_until_continued(fault.launched, since)
        while time.monotonic() < until and fault.launched.code() is None:
            time.sleep(0.1)
    finally:
        fault.site.cluster.mend(host)
        fault.launched.note(f"h{host} is back")


def short_cut(fault: Fault) -> None:
    fault.is_felt = False
    host = fault.host()
    fault.strikes(f"the link of h{host}")
    fault.site.cluster.cut(host)
    time.sleep(5)
    fault.site.cluster.mend(host)


def notice(fault: Fault) -> None:
    host = fault.host()
    fault.out.add(host)
    rank = fault.random.choice(fault.site.ranks(host))
    fault.strikes(f"h{host}")
    kill([rank], signal.SIGTERM)


def slow_host(fault: Fault) -> None:
    fault.is_felt = False
    host = fault.host()
    fault.strikes(f"h{host}")
    fault.site.cluster.slow(host, 0.1)
    time.sleep(fault.random.uniform(3, 6))
    fault.site.cluster.slow(host, None)


def traffic(fault: Fault) -> None:
    fault.is_felt = False
    hosts = fault.random.sample(list(fault.site.hosts), 2)
    fault.strikes("h{} to h{}".format(*hosts))
    with fault.site.cluster.traffic(hosts[0], hosts[1]):
        time.sleep(fault.random.uniform(1.5, 3))


def launcher_killed(fault: Fault) -> None:
    fault.strikes("the launcher")
    fault.launched.kill()
    time.sleep(fault.random.choice([0, 0, fault.random.uniform(0, 5)]))
    _again(fault)


def disk_full(fault: Fault) -> None:
    host = fault.first_host()
    filler = fault.site.disk(host).path.parent / "filler"
    since = len(fault.launched.lines)
    fault.strikes(f"the disk of h{host}")
    _fill(filler)
    fault.launched.end()
    if fault.launched.code() == 0:
        raise Lost("a full disk did not end the run")
    if not fault.launched.said("could not be written", since):
        raise Lost("a run that ended for a full disk did not say so")
    filler.unlink()
    _again(fault)


def _fill(path: Path) -> None:
    """To the last byte; the run writes meanwhile."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(_PIECE_BYTES))


def killed_at_save(fault: Fault) -> None:
    deadline = time.monotonic() + _SAVE_SECONDS
    host = fault.first_host()
    folder, ranks = fault.site.disk(host).checkpoints, fault.site.ranks(host)
    while time.monotonic() < deadline:
        if folder.is_dir() and any(name.endswith(".unfinished") for name in os.listdir(folder)):
            break
    fault.strikes(f"the ranks of h{host}")
    kill(ranks)


def _again(fault: Fault) -> None:
    """The same command, until it is let in: ranks that have lost their launcher save first."""
    fault.launched.end()
    deadline = time.monotonic() + _MOST_RETRY_SECONDS
    while True:
        since = len(fault.launched.lines)
        fault.launched.start()
        fault.launched.wait(
            lambda since=since: fault.launched.code() is not None or has_continued(fault.launched, since),
            "the same command continues",
            may_end=True,
        )
        if fault.launched.code() in (None, 0):
            return
        fault.launched.end()
        if not fault.launched.said("another process is training", since) or time.monotonic() > deadline:
            raise Lost(f"the same command ended with {fault.launched.code()}")
        time.sleep(_RETRY_SECONDS)


def has_continued(launched: Launched, since: int) -> bool:
    return any(line.continued for line in launched.lines[since:])


def wait_until_continued(launched: Launched, since: int) -> None:
    """Until a new world has made a step, or the run has ended well.

    A rank that was only starting may not be missed: training continues without it for a while.
    """
    until = time.monotonic() + _UNFELT_SECONDS

    def is_so() -> bool:
        lines = launched.lines
        place = next((place for place in range(since, len(lines)) if lines[place].continued), None)
        if place is None and time.monotonic() > until:
            return bool(launched.steps(since)) and time.monotonic() - launched.steps()[-1][0] < 1.0
        return launched.code() == 0 or place is not None and bool(launched.steps(place))

    launched.wait(is_so, "a new world makes a step")


FELT: dict[str, Callable[[Fault], None]] = {
    "rank_killed": rank_killed,
    "rank_aborted": rank_aborted,
    "rank_stopped": rank_stopped,
    "rank_exception": rank_exception,
    "all_killed": all_killed,
    "agent_killed": agent_killed,
    "host_crashed": host_crashed,
    "first_host_crashed": first_host_crashed,
    "host_cut": host_cut,
    "notice": notice,
    "launcher_killed": launcher_killed,
    "disk_full": disk_full,
    "killed_at_save": killed_at_save,
}
UNFELT = {"short_cut": short_cut, "slow_host": slow_host, "traffic": traffic}
KINDS = FELT | UNFELT
