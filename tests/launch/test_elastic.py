"""Runs that lose ranks, processes' time or hosts, and continue with the others."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from dragoman.measure import database
from dragoman.rundir import RunFolder
from testbed import Cluster, ssh, why_not
from tests.facts import only
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import LAST, Task

AT = 12  # the step at which something happens: between two checkpoints
CLOSE = 0.02  # of a held-out loss: which rank computes which part of a gradient shows in its last bits


def ranks_in_order(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The ranks of a launcher on this machine, which starts them in the order of their ranks."""
    return sorted(psutil.Process(process.pid).children(), key=lambda rank: (rank.create_time(), rank.pid))


def held_out(run: Path) -> list[float]:
    return [evaluation.eval_loss for evaluation in database.read(RunFolder(run).records).evaluations]


def assert_whole(run: Path, unbroken: Path) -> None:
    """Each step is there once, and the model has learnt what that of the unbroken run has."""
    everything = list(range(1, LAST + 1))
    records = database.read(RunFolder(run).records)
    assert records.steps["step"].tolist() == everything
    assert runs.steps_in_log(run) == everything
    assert [evaluation.step for evaluation in records.evaluations] == [16, 32, 48]
    assert held_out(run) == pytest.approx(held_out(unbroken), rel=CLOSE)
    assert RunFolder(run).checkpoint_steps()[-1] == LAST


def disturbed(
    task: Task, run: Path, disturb: Callable[[list[psutil.Process]], None], workers: int = 2
) -> tuple[str, str]:
    """A run whose ranks something happens to after a step; what it said."""
    with runs.started_training(task, run, workers=workers) as process:
        runs.wait_for_step(process, run, AT)
        disturb(ranks_in_order(process))
        stdout, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr
    return stdout, stderr


@pytest.mark.parametrize("lost", [0, 1])
def test_a_run_that_loses_a_rank_continues_with_the_other_and_every_step_is_made_once(
    task: Task, unbroken: Unbroken, tmp_path: Path, lost: int
) -> None:
    stdout, stderr = disturbed(task, tmp_path, lambda ranks: ranks[lost].kill())
    only(stderr.splitlines(), "lost:", "SIGKILL")
    assert_whole(tmp_path, unbroken(2))
    assert re.search(r"continuing after step \d+", stdout)


def test_a_run_that_loses_all_ranks_continues_from_a_checkpoint_bit_for_bit(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    def kill_all(ranks: Sequence[psutil.Process]) -> None:
        for rank in ranks:
            rank.suspend()  # so that none notices the end of another
        for rank in ranks:
            rank.kill()

    disturbed(task, tmp_path, kill_all)
    assert runs.trained(tmp_path) == runs.trained(unbroken(2))
    records = database.read(RunFolder(tmp_path).records)
    assert records.steps["step"].tolist() == list(range(1, LAST + 1))
    assert len(records.attempts) == 2


def test_a_rank_that_is_stopped_is_told_of_replaced_and_its_stacks_are_kept(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    stopped: list[int] = []

    def stop(ranks: Sequence[psutil.Process]) -> None:
        ranks[1].suspend()
        stopped.append(ranks[1].pid)

    _, stderr = disturbed(task, tmp_path, stop)
    only(stderr.splitlines(), "lost:", "stopped")
    assert_whole(tmp_path, unbroken(2))
    stacks = RunFolder(tmp_path).stacks_of(stopped[0])
    assert "Thread" in stacks.read_text()
    assert not psutil.pid_exists(stopped[0])


# --- two hosts --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    for reason in (why_not(), ssh.why_not()):
        if reason:
            pytest.skip(reason)
    with Cluster(hosts=2, with_ssh=True, cores_per_host=1) as cluster:
        yield cluster


def disk_of(disk: Path, host: int) -> Path:
    """Where this machine has what is this host's disk."""
    return disk.with_name(f"disk of h{host}")


class Hosts:
    """A training under way on two hosts, each with a disk of its own at the same path."""

    def __init__(self, cluster: Cluster, process: subprocess.Popen[str], servers: list[set[int]], disk: Path):
        self._cluster, self.process, self._servers, self._disk = cluster, process, servers, disk

    def run(self, host: int) -> Path:
        """The run folder of a host, as this machine sees it."""
        return disk_of(self._disk, host) / "run"

    def processes(self, host: int) -> list[psutil.Process]:
        """What runs on a host, without its ssh server and the launcher."""
        pids = set(self._cluster.processes(host)) - self._servers[host] - {self.process.pid}
        return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]

    def rank(self, host: int) -> psutil.Process:
        (rank,) = (each for each in self.processes(host) if "DRAGOMAN_RUN" in _environment(each))
        return rank

    def kill_all(self, host: int) -> None:
        for process in self.processes(host):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def reach(self, step: int, host: int = 0) -> None:
        runs.wait_until(f"step {step}", lambda: runs.reached(self.run(host), step), self.process)

    def ends(self) -> str:
        """What it said in all."""
        said, _ = self.process.communicate(timeout=runs.WAIT_SECONDS)
        assert self.process.returncode == 0, said
        assert "Traceback" not in said
        return said


def _environment(process: psutil.Process) -> dict[str, str]:
    with suppress(psutil.Error):
        return process.environ()
    return {}


@contextmanager
def training(cluster: Cluster, task: Task, folder: Path, launcher: int = 0) -> Iterator[Hosts]:
    """Past step AT on both hosts."""
    disk = folder / "disk"
    disk.mkdir()
    servers = [set(cluster.processes(host)) for host in (0, 1)]
    for host in (0, 1):
        disk_of(disk, host).mkdir()
        cluster.run(host, ["mount", "--bind", disk_of(disk, host), disk])
    words = [*runs.DRAGOMAN, *runs.arguments(task, disk / "run"), "--hosts", "h0:1,h1:1"]
    try:
        with cluster.popen(launcher, words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            hosts = Hosts(cluster, process, servers, disk)
            try:
                hosts.reach(AT)
                yield hosts
            finally:
                process.kill()
                for host in (0, 1):
                    hosts.kill_all(host)
    finally:
        for host in (0, 1):
            cluster.run(host, ["umount", "--lazy", disk])


def test_a_host_whose_processes_are_all_killed_comes_back(
    cluster: Cluster, task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    with training(cluster, task, tmp_path) as hosts:
        hosts.kill_all(1)
        said = hosts.ends()
        assert_whole(hosts.run(0), unbroken(2))
    only(said.splitlines(), "lost: h1")


def test_a_host_that_is_told_to_leave_does_and_the_other_finishes(
    cluster: Cluster, task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    with training(cluster, task, tmp_path) as hosts:
        rank = hosts.rank(1)
        rank.send_signal(signal.SIGTERM)
        said = hosts.ends()
        assert_whole(hosts.run(0), unbroken(2))
    only(said.splitlines(), "lost:", "h1", "SIGTERM")
    assert not rank.is_running()


def test_a_run_that_loses_its_first_host_for_good_continues_on_the_second_with_all_its_records(
    cluster: Cluster, task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    with training(cluster, task, tmp_path, launcher=1) as hosts:
        cluster.cut(0)
        try:
            said = hosts.ends()
            assert_whole(hosts.run(1), unbroken(2))
        finally:
            cluster.mend(0)
            hosts.kill_all(0)
    only(said.splitlines(), "lost: h0")
