"""Training over two hosts from one command."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from dragoman.rundir import RunFolder
from testbed import Cluster
from tests.facts import lacking, only
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

STEPS = 16
FOR_EVER = "train.steps=1000000"
TWO_MACHINES = Path(__file__).parents[2] / "docs" / "two-machines.md"


def command(task: Task, run: Path, *settings: str) -> list[str]:
    return [*runs.DRAGOMAN, *runs.arguments(task, run, *settings), "--hosts", "h0:1,h1:1"]


@contextmanager
def training(cluster: Cluster, task: Task, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Under way in `run` of the folder, past the first checkpoint; `out` and `err` get what it says."""
    run = RunFolder(folder / "run")
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        words = [*command(task, run.path, FOR_EVER), *options]
        with cluster.popen(0, words, stdout=out, stderr=err) as process:
            try:
                runs.wait_until("a checkpoint", run.checkpoint_steps, process)
                yield process
            finally:
                process.kill()


def form(line: str) -> str:
    """A line without its numbers and addresses; hosts are called what they are in docs/two-machines.md."""
    for ours, theirs in (("h0", "a"), ("h1", "b")):
        line = re.sub(rf"\b{ours}\b", theirs, line)
    return re.sub(r" +", " ", re.sub(r"\d[\d.,:]*", "0", line))


def wait_until_only_ssh_is_left(cluster: Cluster) -> None:
    for host in (0, 1):
        runs.wait_until(f"only sshd runs on h{host}", lambda host=host: len(cluster.processes(host)) == 1)


@pytest.mark.usefixtures("idle")
def test_two_hosts_end_with_the_bytes_of_two_local_workers(
    cluster: Cluster, task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    words = command(task, tmp_path, f"train.steps={STEPS}")
    done = cluster.run(0, words, timeout_seconds=runs.WAIT_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert runs.trained(tmp_path, STEPS) == runs.trained(unbroken(2), STEPS)
    lines = done.stdout.splitlines()
    assert not lacking(lines[0], "h0 (1 rank, eth0)", "h1 (1 rank, eth0)", "10.77.0.1")
    assert any(line.startswith(f"h0 | step {STEPS}/{STEPS} ") for line in lines)
    assert not done.stderr
    printed = [form(line) for line in lines]
    quoted = re.findall(r"^ +((?:Training on|a \|) .*)$", TWO_MACHINES.read_text(), re.MULTILINE)
    assert len(quoted) == 3
    for line in quoted:
        assert any(each.startswith(form(line.removesuffix("..."))) for each in printed), line
    wait_until_only_ssh_is_left(cluster)


@pytest.mark.usefixtures("idle")
def test_ctrl_c_saves_and_leaves_no_process(cluster: Cluster, task: Task, tmp_path: Path) -> None:
    with training(cluster, task, tmp_path) as process:
        process.send_signal(signal.SIGINT)
        process.wait(runs.WAIT_SECONDS)
    stdout, run = (tmp_path / "out").read_text(), tmp_path / "run"
    assert process.returncode == 0, (tmp_path / "err").read_text()
    last = max(runs.steps_in_log(run))
    only(stdout.splitlines(), "h0 |", f"step {last}", f"dragoman train {task.config}", "--hosts h0:1,h1:1")
    only(stdout.splitlines(), "h0 |", f"step {last}", "chrF")
    assert RunFolder(run).checkpoint_steps()[-1] == last
    wait_until_only_ssh_is_left(cluster)


@pytest.mark.usefixtures("idle")
def test_without_restarts_a_host_that_dies_ends_the_other_and_is_named(
    cluster: Cluster, task: Task, tmp_path: Path
) -> None:
    server = min(cluster.processes(1))
    with training(cluster, task, tmp_path, "--max-restarts", "0") as process:
        for pid in set(cluster.processes(1)) - {server}:
            with suppress(psutil.NoSuchProcess):  # it ended with another of them
                psutil.Process(pid).kill()
        process.wait(runs.WAIT_SECONDS)
    stderr = (tmp_path / "err").read_text()
    assert process.returncode == 1
    only(stderr.splitlines(), "lost:", "h1")
    only(stderr.splitlines(), "error:", "--max-restarts", 0)
    assert "h0 |" not in stderr
    assert "Traceback" not in stderr
    wait_until_only_ssh_is_left(cluster)


@pytest.mark.usefixtures("idle")
def test_a_killed_launcher_leaves_no_process(cluster: Cluster, task: Task, tmp_path: Path) -> None:
    with training(cluster, task, tmp_path) as process:
        process.kill()
    wait_until_only_ssh_is_left(cluster)
    # They were asked, not killed: the state at the end was saved.
    run = tmp_path / "run"
    assert RunFolder(run).checkpoint_steps()[-1] == max(runs.steps_in_log(run))


def test_wrong_use_is_reported_before_any_host_is_asked(task: Task, tmp_path: Path) -> None:
    words = runs.arguments(task, tmp_path / "run", workers=2)
    for extra, said in (
        (["--hosts", "a:0"], "--hosts a:0"),
        (["--hosts", "a,b"], "--workers"),
    ):
        use = words if extra[1] == "a,b" else runs.arguments(task, tmp_path / "run")
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *use, *extra], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert not lacking(done.stderr, said)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("idle")
def test_a_host_behind_a_cut_cable_is_given_up_within_15_seconds_and_joins_once_it_is_mended(
    cluster: Cluster, task: Task, tmp_path: Path
) -> None:
    with training(cluster, task, tmp_path) as process:
        run = tmp_path / "run"
        cluster.cut(1)
        began = time.monotonic()
        try:
            runs.wait_until("h1 is given up", lambda: "lost: h1" in (tmp_path / "err").read_text(), process)
            assert time.monotonic() - began < 15
            step = max(runs.steps_in_log(run))
            runs.wait_for_step(process, run, step + 2)
        finally:
            cluster.mend(1)
        runs.wait_until("h1 is back", lambda: runs.log(run).count("continuing after step") == 2, process)
    wait_until_only_ssh_is_left(cluster)
