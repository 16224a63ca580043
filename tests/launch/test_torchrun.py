"""Ranks started by plain torchrun, on each host by hand."""

import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from dragoman.doctor.at_start import _TORCHRUN_TRUSTS
from dragoman.measure import database
from dragoman.rundir import RunFolder
from testbed import Cluster
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

STEPS = 16


def test_torchrun_on_two_hosts_ends_with_the_bytes_of_two_local_workers(
    cluster: Cluster, task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
    words += ["--master-addr=h0", "--master-port=29500"]
    # "--": torchrun would take --run for a short form of its own --run-path
    program = ["-m", "--", "dragoman", *runs.arguments(task, tmp_path, f"train.steps={STEPS}")]
    _, sent_before = cluster.transferred_bytes(1)
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(
                cluster.popen(
                    host,
                    [*words, f"--node-rank={host}", *program],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
            for host in (0, 1)
        ]
        for node in nodes:
            stack.callback(node.kill)
        said = ""
        for node in nodes:
            stdout, stderr = node.communicate(timeout=runs.WAIT_SECONDS)
            assert node.returncode == 0, stderr
            said += stdout
    _, sent = cluster.transferred_bytes(1)
    assert sent - sent_before > STEPS * 100_000, "the gradients went over the link"
    assert said.count(_TORCHRUN_TRUSTS) == 1
    assert runs.trained(tmp_path, STEPS) == runs.trained(unbroken(2), STEPS)


def torchrun(*options: str) -> list[str]:
    """The beginning of a command that starts two ranks on this machine, and starts them again."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", *options]
    return [*words, "--master-addr=127.0.0.1", f"--master-port={port}"]


def test_ranks_that_torchrun_starts_again_do_not_meet_those_of_the_first_attempt() -> None:
    words = [*torchrun("--max-restarts=1"), "-m", "tests.launch.restarted"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=runs.WAIT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["attempt 1: [3.0]"] * 2


def rank(number: int, torchrun: int) -> psutil.Process:
    """A rank among torchrun's processes."""
    (found,) = (each for each in runs.ranks_of(torchrun) if each.environ().get("RANK") == str(number))
    return found


@pytest.mark.parametrize(("number", "fault"), [(0, signal.SIGKILL), (1, signal.SIGSTOP)], ids=str)
def test_a_run_whose_ranks_torchrun_starts_again_ends_with_the_bytes_of_an_unbroken_one(
    task: Task, unbroken: Unbroken, tmp_path: Path, number: int, fault: signal.Signals
) -> None:
    # a rank that stops answers neither the others nor torchrun's SIGTERM
    words = [*torchrun("--max-restarts=3", "--shutdown-timeout=2"), "-m", "--", "dragoman"]
    words += runs.arguments(task, tmp_path, "sync.timeout_seconds=5")
    with runs.started(words) as process:
        runs.wait_for_step(process, tmp_path, 20)
        rank(number, process.pid).send_signal(fault)
        _, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
    assert process.returncode == 0, stderr
    (resumed_at,) = runs.resumed_at(tmp_path)
    assert 16 <= resumed_at < runs.LAST
    steps = database.read(RunFolder(tmp_path).records).steps
    steps = database.read(RunFolder(tmp_path).records).steps["step"]
    assert list(steps) == list(range(1, runs.LAST + 1))  # none twice, none missing
    assert runs.trained(tmp_path) == runs.trained(unbroken(2))
