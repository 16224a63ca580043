"""Ranks started by Open MPI."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from dragoman.errors import UsageError
from dragoman.launch import mpirun
from testbed import Cluster
from tests.facts import lacking, raising
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

STEPS = 16
RANK_3 = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_MCA_ess_base_jobid": "372310017",
    "OMPI_MCA_orte_hnp_uri": "372310016.0;tcp://198.51.100.2,172.17.0.1:41399;tcp6://[fd00::2]:45681",
}


@pytest.mark.usefixtures("mpirun")
def test_mpirun_over_two_hosts_ends_with_the_bytes_of_two_local_workers(
    cluster: Cluster, task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    # --bind-to none: as many threads as a local worker has
    words = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", "2", "-H", "10.77.0.1:1,10.77.0.2:1"]
    words += [*runs.DRAGOMAN, *runs.arguments(task, tmp_path, f"train.steps={STEPS}")]
    done = cluster.run(0, words, timeout_seconds=runs.WAIT_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert runs.trained(tmp_path, STEPS) == runs.trained(unbroken(2), STEPS)


@pytest.mark.usefixtures("mpirun", "idle")
def test_a_cut_cable_is_reported_within_15_seconds_and_so_is_its_mending(
    cluster: Cluster, task: Task, tmp_path: Path
) -> None:
    words = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", "2", "-H", "10.77.0.1:1,10.77.0.2:1"]
    words += [*runs.DRAGOMAN, *runs.arguments(task, tmp_path, "train.steps=1000000", "measure.every=2")]
    with cluster.popen(0, words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as training:
        assert training.stdout
        try:
            next(line for line in training.stdout if line.startswith("step "))
            cluster.cut(1)
            began = time.monotonic()
            next(line for line in training.stdout if not lacking(line, "h1"))
            assert time.monotonic() - began < 15
            cluster.mend(1)
            assert not lacking(next(line for line in training.stdout if line.startswith("h1")), "h1")
            next(line for line in training.stdout if line.startswith("step "))
        finally:
            cluster.mend(1)
            training.kill()


@pytest.mark.usefixtures("mpirun")
def test_a_killed_rank_ends_all_within_seconds_and_the_same_command_continues(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
    words += [*runs.DRAGOMAN, *runs.arguments(task, tmp_path)]
    with runs.started(words) as process:
        runs.wait_for_step(process, tmp_path, 20)
        ranks = [
            each
            for each in runs.ranks_of(process.pid)
            if each.environ().get("OMPI_COMM_WORLD_RANK") is not None
        ]
        ranks[1].send_signal(signal.SIGKILL)
        began = time.monotonic()
        process.communicate(timeout=runs.WAIT_SECONDS)
        assert process.returncode
        assert not psutil.wait_procs(ranks, timeout=10)[1]
        assert time.monotonic() - began < 15
    done = subprocess.run(words, capture_output=True, text=True, timeout=runs.WAIT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert len(runs.resumed_at(tmp_path)) == 1
    assert runs.trained(tmp_path) == runs.trained(unbroken(2))


@pytest.mark.usefixtures("mpirun")
def test_the_whole_path_is_found_on_the_other_host_where_the_name_alone_is_not(cluster: Cluster) -> None:
    program = Path(sys.executable).with_name("dragoman")
    own_path = {"PATH": f"{program.parent}:{os.environ['PATH']}"}  # ssh does not take it along
    words = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", "2", "-H", "10.77.0.1:1,10.77.0.2:1"]
    done = cluster.run(0, [*words, "dragoman", "--version"], env=own_path, check=False)
    assert done.returncode
    assert "unable to find" in done.stderr and "10.77.0.2" in done.stderr
    done = cluster.run(0, [*words, program, "--version"], env=own_path)
    assert done.stdout.count("dragoman ") == 2


def test_variables_of_open_mpi_become_those_of_torch() -> None:
    assert mpirun.translate(RANK_3) == {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "198.51.100.2",
        "MASTER_PORT": mpirun.translate(RANK_3 | {"OMPI_COMM_WORLD_RANK": "2"})["MASTER_PORT"],
    }


def test_one_process_of_mpirun_is_no_rank() -> None:
    assert mpirun.translate({}) == mpirun.translate({"OMPI_COMM_WORLD_SIZE": "1"}) == {}


def test_ranks_of_one_machine_meet_on_it() -> None:
    alone = RANK_3 | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
    assert mpirun.translate(alone)["MASTER_ADDR"] == "127.0.0.1"


def test_rank_0_elsewhere_is_refused_unless_the_address_is_given() -> None:
    first = RANK_3 | {"OMPI_COMM_WORLD_RANK": "0"}
    with raising(UsageError, "198.51.100.2", "-x MASTER_ADDR=10.0.0.1"):
        mpirun.translate(first)
    assert mpirun.translate(first | {"MASTER_ADDR": "10.0.0.7"})["MASTER_ADDR"] == "10.0.0.7"


def test_an_mpirun_that_does_not_tell_its_address_is_refused() -> None:
    silent = {name: value for name, value in RANK_3.items() if name != "OMPI_MCA_orte_hnp_uri"}
    with pytest.raises(UsageError, match="-x MASTER_ADDR"):
        mpirun.translate(silent)
