"""kill -9 of everything, at any moment: the same command again ends with the bytes of a run never stopped."""

import random
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from dragoman.rundir import RunFolder
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task


def points(run: Path, tag: str) -> list[int]:
    """The steps of a curve as TensorBoard shows it."""
    accumulator = EventAccumulator(str(RunFolder(run).tensorboard), size_guidance={"scalars": 0})
    accumulator.Reload()
    return [event.step for event in accumulator.Scalars(tag)]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_killed_run_continues_bit_for_bit(
    task: Task, unbroken: Unbroken, tmp_path: Path, ranks: int
) -> None:
    moment = random.randint(9, 40)
    print(f"killed after step {moment}")
    runs.killed_after(task, tmp_path, moment, workers=ranks)
    result = runs.train(task, tmp_path, workers=ranks)
    assert result.returncode == 0, result.stderr
    assert len(runs.resumed_at(tmp_path)) == 1
    assert runs.trained(tmp_path) == runs.trained(unbroken(ranks))
    everything = list(range(1, runs.LAST + 1))
    for tag in ("train_loss", "learning_rate", "global_gradient_norm"):
        assert points(tmp_path, tag) == everything  # none twice, none missing
    for tag in ("eval_loss", "train_sample_loss", "Eval_BLEU_Score"):
        assert points(tmp_path, tag) == [16, 32, 48]
