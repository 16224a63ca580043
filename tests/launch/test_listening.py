"""The ports that a run opens: where they listen, and that nothing sent to them is executed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from testbed import Cluster
from tests.launch.listening import listening
from tests.train import runs
from tests.train.runs import Task

FOR_EVER = "train.steps=1000000"
HEARD_SECONDS = 1.0  # torch's launcher looked at what the store held every 0.1 s
ATTACK = [sys.executable, "-m", "tests.launch.attack"]


def pythons(pids: Iterable[int]) -> list[int]:
    """Our own processes: mpirun and sshd have ports of their own, see SECURITY.md."""
    return [pid for pid in pids if "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))]


def places(found: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{address}:{port}" for address, port in sorted(found)]


def assert_closed_to_strangers(process: subprocess.Popen[str], folder: Path) -> None:
    """A run on this machine, from its first step on."""
    runs.wait_for_step(process, folder / "run", 2)
    tree = pythons([process.pid, *(child.pid for child in runs.ranks_of(process.pid))])
    found = listening(tree)
    assert found, "ranks that meet listen somewhere"
    assert {address for address, _ in found} == {"127.0.0.1"}
    tried = subprocess.run(
        [*ATTACK, str(folder / "marker"), *places(found)], capture_output=True, text=True, timeout=60
    )
    assert f"{len(found)} ports tried" in tried.stdout, tried.stderr
    time.sleep(HEARD_SECONDS)
    assert not (folder / "marker").exists()


def test_a_run_on_one_machine_listens_at_loopback_and_executes_nothing(task: Task, tmp_path: Path) -> None:
    with runs.started_training(task, tmp_path / "run", FOR_EVER, workers=2) as process:
        assert_closed_to_strangers(process, tmp_path)


@pytest.mark.usefixtures("mpirun")
def test_ranks_of_mpirun_on_one_machine_listen_at_loopback_and_execute_nothing(
    task: Task, tmp_path: Path
) -> None:
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
    with runs.started([*words, *runs.DRAGOMAN, *runs.arguments(task, tmp_path / "run", FOR_EVER)]) as process:
        assert_closed_to_strangers(process, tmp_path)


def on_two_hosts(way: str, task: Task, run: Path) -> Sequence[str]:
    words = [*runs.DRAGOMAN, *runs.arguments(task, run, FOR_EVER)]
    if way == "ssh":
        return [*words, "--hosts", "h0:1,h1:1"]
    return ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-H", "10.77.0.1:1,10.77.0.2:1", *words]


@pytest.mark.usefixtures("mpirun")
@pytest.mark.parametrize("way", ["ssh", "mpirun"])
def test_ranks_on_two_hosts_listen_at_the_address_of_their_host_and_execute_nothing(
    cluster: Cluster, task: Task, tmp_path: Path, way: str
) -> None:
    servers = {host: set(cluster.processes(host)) for host in (0, 1)}
    run = tmp_path / "run"
    with cluster.popen(0, on_two_hosts(way, task, run), stdout=subprocess.DEVNULL) as process:
        try:
            runs.wait_for_step(process, run, 2)
            found = [listening(pythons(set(cluster.processes(host)) - servers[host])) for host in (0, 1)]
            for host, sockets in enumerate(found):
                assert {address for address, _ in sockets} == {cluster.addresses[host]}
            words = [*ATTACK, str(tmp_path / "marker"), *places(set.union(*found))]
            tried = cluster.run(1, words, timeout_seconds=60)
            assert f"{len(set.union(*found))} ports tried" in tried.stdout, tried.stderr
            time.sleep(HEARD_SECONDS)
            assert not (tmp_path / "marker").exists()
        finally:
            process.kill()
            for host in (0, 1):
                for pid in set(cluster.processes(host)) - servers[host]:
                    with suppress(psutil.NoSuchProcess):  # it ended with another of them
                        psutil.Process(pid).kill()
