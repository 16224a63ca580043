"""What a stranger who reaches the ports of a run can do, also after a rank was killed and replaced."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from dragoman.measure import database
from dragoman.rundir import RunFolder
from testbed import Cluster
from tests.launch.listening import listening
from tests.launch.stranger import STATE
from tests.launch.test_listening import ATTACK, FOR_EVER, HEARD_SECONDS, on_two_hosts, places, pythons
from tests.train import runs
from tests.train.runs import Task

STRANGER = [sys.executable, "-m", "tests.launch.stranger"]
STORE_BYTES = 10_000  # more than the addresses of two ranks take, less than the smallest model
PLAIN_NAMES = {"0//cpu//0/0", "0//cpu//0/1", "dragoman/device/0", "dragoman/device/1"}


def asked(what: str, found: Iterable[str]) -> str:
    return subprocess.run([*STRANGER, what, *found], capture_output=True, text=True, timeout=60).stdout


def stores(found: Iterable[tuple[str, int]]) -> dict[str, dict[str, str]]:
    """The stores among these listening sockets, each with the names and values that a stranger sees."""
    seen: dict[str, dict[str, str]] = json.loads(asked("look", places(found)))
    assert seen, "one of the sockets is that of a store"
    return seen


def is_whole_again(run: Path) -> bool:
    """Did the run lose a rank, and has a world of two ranks made steps since?"""
    attempts = database.read(RunFolder(run).records).attempts
    return len(attempts) > 1 and attempts[-1].ranks == 2 and runs.reached(run, attempts[-1].first_step + 1)


@contextmanager
def local_run(
    task: Task, run: Path, *, loses_a_rank: bool
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A run of two ranks on this machine, and the processes of it that may listen."""
    with runs.started_training(task, run, FOR_EVER, workers=2) as process:
        runs.wait_for_step(process, run, 2)
        if loses_a_rank:
            max(runs.ranks_of(process.pid), key=lambda rank: rank.create_time()).kill()
            runs.wait_until("two ranks again", lambda: is_whole_again(run), process)
        yield process, pythons([process.pid, *(child.pid for child in runs.ranks_of(process.pid))])


def assert_executes_nothing(
    found: Iterable[tuple[str, int]], marker: Path, cluster: Cluster | None = None
) -> None:
    words = [*ATTACK, str(marker), *places(found)]
    if cluster:
        cluster.run(1, words)
    else:
        subprocess.run(words, check=True, capture_output=True, timeout=60)
    time.sleep(HEARD_SECONDS)
    assert not marker.exists()


@pytest.mark.parametrize("loses_a_rank", [False, True], ids=["first world", "after a killed rank"])
def test_a_store_holds_no_weights_and_nothing_under_a_plain_name(
    task: Task, tmp_path: Path, loses_a_rank: bool
) -> None:
    with local_run(task, tmp_path / "run", loses_a_rank=loses_a_rank) as (_, pids):
        found = listening(pids)
        assert {address for address, _ in found} == {"127.0.0.1"}
        for values in stores(found).values():
            assert not PLAIN_NAMES & {name.removeprefix("/") for name in values}
            assert sum(map(len, values.values())) < STORE_BYTES
        assert_executes_nothing(found, tmp_path / "marker")
        local = [each for pid in pids for each in psutil.Process(pid).net_connections("unix")]
        assert local and not any(each.laddr for each in local), "channels without a name"


def test_a_stranger_is_not_let_into_a_world_that_has_formed(task: Task, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with local_run(task, run, loses_a_rank=False) as (process, pids):
        step = max(runs.steps_in_log(run))
        assert [asked("join", [place]) for place in stores(listening(pids))] == [""]
        runs.wait_for_step(process, run, step + 20)
        assert len(database.read(RunFolder(run).records).attempts) == 1


def test_a_stranger_cannot_take_the_place_of_a_rank_that_has_yet_to_come() -> None:
    with runs.started([*STRANGER, "await", "127.0.0.1"]) as victim:
        assert victim.stdout
        assert STATE.decode() not in asked("join", [victim.stdout.readline().strip()])


def test_on_two_hosts_a_second_world_listens_at_the_hosts_own_address(
    cluster: Cluster, task: Task, tmp_path: Path
) -> None:
    servers = {host: set(cluster.processes(host)) for host in (0, 1)}
    run = tmp_path / "run"
    with cluster.popen(0, on_two_hosts("ssh", task, run), stdout=subprocess.DEVNULL) as process:
        try:
            runs.wait_for_step(process, run, 2)
            mine = pythons(set(cluster.processes(1)) - servers[1])
            rank = max(map(psutil.Process, mine), key=lambda each: each.create_time())
            rank.kill()
            runs.wait_until("two ranks again", lambda: is_whole_again(run), process)
            found = [listening(pythons(set(cluster.processes(host)) - servers[host])) for host in (0, 1)]
            for host, sockets in enumerate(found):
                assert {address for address, _ in sockets} == {cluster.addresses[host]}
            assert_executes_nothing(set.union(*found), tmp_path / "marker", cluster)
        finally:
            process.kill()
            for host in (0, 1):
                for pid in set(cluster.processes(host)) - servers[host]:
                    with suppress(psutil.NoSuchProcess):  # it ended with another of them
                        psutil.Process(pid).kill()
