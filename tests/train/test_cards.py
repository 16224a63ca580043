"""Training on GPUs and NCCL, or on stand-ins for both, through the launcher."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.measure import database
from dragoman.rundir import RunFolder
from tests import ranks
from tests.cards import nccl, pretend
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
