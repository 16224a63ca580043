"""Training on GPUs and NCCL, or on stand-ins for both, through the launcher."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from dragoman import config
from dragoman.config import Training
from dragoman.measure import database
from dragoman.rundir import RunFolder
from tests import ranks
from tests.cards import nccl, pretend
from tests.facts import only
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

STEPS = 16
TWO_GPUS = [sys.executable, "-m", "dragoman.launch.ranks", "2", "-m", "tests.cards.rank", "a=0+1,a=0+1"]
SETTINGS = (f"train.steps={STEPS}", "train.precision=fp32", "sync.timeout_seconds=30")


def on_two_gpus(module: str, task: Task, run: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    words = [*TWO_GPUS, module, *runs.arguments(task, run, *SETTINGS, *settings)]
    return subprocess.run(words, capture_output=True, text=True, timeout=runs.WAIT_SECONDS)


def test_two_gpus_follow_the_loss_curve_of_two_cpu_ranks(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    done = on_two_gpus("dragoman", task, tmp_path)
    assert done.returncode == 0, done.stderr
    expected = dict(list(runs.losses(unbroken(2)).items())[:STEPS])
    assert runs.losses(tmp_path) == pytest.approx(expected, abs=2e-3)
    records = database.read(RunFolder(tmp_path).records)
    assert records.facts.device == pretend.NAME
    assert (records.phase("optimizer") > 0).all(), "by the card's clock"


def test_two_gpus_settle_on_bf16_say_why_and_keep_it(task: Task, tmp_path: Path) -> None:
    done = on_two_gpus("dragoman", task, tmp_path, "train.precision=auto", "train.stop_at=2")
    assert done.returncode == 0, done.stderr
    only(done.stdout.splitlines(), "parameters", "bf16")
    facts = database.read(RunFolder(tmp_path).records).facts
    assert facts.precision == facts.settings["train.precision"] == "bf16"
    assert facts.precision_why
    saved = config.load(Training, RunFolder(tmp_path).config)
    assert saved.train.precision == "bf16"


def test_gpus_that_torch_has_no_kernels_for_end_the_run_with_one_message(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRETENDED_ARCHITECTURES", "sm_90 sm_100")
    done = on_two_gpus("dragoman", task, tmp_path / "run")
    assert done.returncode == 1
    only(done.stderr.splitlines(), "error: not started", pretend.NAME, "sm_80", "sm_90")
    only(done.stderr.splitlines(), "try:", "pip install")
    assert not (tmp_path / "run").exists()


def test_a_rank_that_fails_is_heard_and_ends_the_run(task: Task, tmp_path: Path) -> None:
    """Also without the launcher's patience: no rank waits for another on its way out."""
    done = on_two_gpus("tests.train.failing_rank", task, tmp_path)
    assert done.returncode == 1 != nccl.WATCHDOG
    assert "error: rank 1 found something\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_diverges_leaves_no_rank_waiting_for_the_one_that_says_so(
    task: Task, tmp_path: Path
) -> None:
    absurd = ("train.rate=1e38", "train.most_bad_steps=3", "checkpoint.every=1", "train.warmup_steps=0")
    words = ["a=0+1,a=0+1", "dragoman", *runs.arguments(task, tmp_path, *SETTINGS, *absurd)]
    first, second = ranks.each("tests.cards.rank", words, 2)  # no launcher, which would end the second
    assert (first.returncode, second.returncode) == (1, 1)
    assert "train.rate" in first.stderr
    assert not second.stderr


def test_srun_may_show_each_task_only_its_own_gpu(task: Task, tmp_path: Path) -> None:
    """--gpus-per-task: each task sees one GPU, and calls it number 0."""
    words = [sys.executable, "-m", "tests.cards.rank", "a=0,a=1", "dragoman"]
    words += runs.arguments(task, tmp_path, *SETTINGS, "train.steps=2")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    step = {
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_TASKS_PER_NODE": "2",
        "SLURM_STEP_NODELIST": "a",
        "SLURM_NODEID": "0",
        "SLURM_JOB_ID": "4711",
        "SLURM_STEP_ID": "0",
        "MASTER_PORT": port,  # the job's own may be taken
    }
    with ExitStack() as stack:
        tasks = [
            stack.enter_context(
                runs.started(
                    words, env=runs.environment(**step, SLURM_PROCID=str(task), SLURM_LOCALID=str(task))
                )
            )
            for task in range(2)
        ]
        errors = [task.communicate(timeout=runs.WAIT_SECONDS)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], errors
    assert runs.steps_in_log(tmp_path) == [1, 2]
