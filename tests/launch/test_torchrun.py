"""Ranks started by plain torchrun, on each host by hand."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from dragoman.doctor.at_start import _TORCHRUN_TRUSTS
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


def test_ranks_that_torchrun_starts_again_do_not_meet_those_of_the_first_attempt() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1"]
    words += ["--master-addr=127.0.0.1", f"--master-port={port}", "-m", "tests.launch.restarted"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=runs.WAIT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["attempt 1: [3.0]"] * 2
