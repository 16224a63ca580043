"""Gradients that are not finite: skipped, counted, and in the end a reason to stop."""

from collections.abc import Callable, Collection
from pathlib import Path

import pytest
import torch
from torch import Tensor

from dragoman.checkpoint import saved_state
from dragoman.checkpoint.saved_state import SavedState
from dragoman.errors import DragomanError
from dragoman.measure import database
from dragoman.model import Transformer
from dragoman.rundir import RunFolder
from dragoman.sync import world as worlds
from dragoman.train import optimizer
from tests.facts import lacking, raising
from tests.train import runs
from tests.train.conftest import Here
from tests.train.runs import Task
from tests.train.steps import Bench, Forward

Spoil = Callable[[Collection[int]], None]


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Spoil:
    """Makes the loss of these forwards of training, counted from 1, not a number."""
    forward, calls = Transformer.forward, 0

    def of(numbers: Collection[int]) -> None:
        def spoilt(self: Transformer, *arguments) -> Tensor:  # noqa: ANN002
            nonlocal calls
            calls += self.training
            loss = forward(self, *arguments)
            return loss * torch.nan if self.training and calls in numbers else loss

        monkeypatch.setattr(Transformer, "forward", spoilt)

    return of


def saved(run: Path, step: int) -> SavedState:
    return SavedState.model_validate_json((RunFolder(run).checkpoint(step) / "state.json").read_text())


def test_a_bad_step_changes_nothing_and_is_counted(task: Task, world_of_one: None) -> None:
    with worlds.join(60) as world:
        bench = Bench(task.data, task.config, world)
        bench.step()
        before = {name: tensor.clone() for name, tensor in bench.model.state_dict().items()}
        moments = {name: t.clone() for name, t in optimizer.state(bench.state.optimizer, bench.model).items()}

        def infinite(forward: Forward) -> Forward:
            return lambda *arguments: forward(*arguments) * torch.inf

        good = bench.model.forward
        bench.replace_forward(infinite)
        assert bench.step().is_bad
        assert (bench.state.step, bench.state.bad_steps, bench.state.bad_in_a_row) == (2, 1, 1)
        for name, tensor in bench.model.state_dict().items():
            assert torch.equal(tensor, before[name])
        for name, tensor in optimizer.state(bench.state.optimizer, bench.model).items():
            assert torch.equal(tensor, moments[name])
        bench.model.forward = good  # type: ignore[method-assign]
        assert not bench.step().is_bad
        assert (bench.state.step, bench.state.bad_steps, bench.state.bad_in_a_row) == (3, 1, 0)


def test_one_bad_step_is_reported_and_the_run_continues(here: Here, spoil: Spoil, tmp_path: Path) -> None:
    spoil({10})  # four to a step: the third step
    here.train(tmp_path, "train.steps=5", "train.most_bad_steps=2")
    assert len([line for line in runs.log(tmp_path).splitlines() if line.startswith("step 3: ")]) == 1
    state = saved(tmp_path, 5)
    assert (state.bad_steps, state.bad_in_a_row) == (1, 0)


def test_bad_steps_in_a_row_stop_the_run_and_the_good_checkpoint_stays(
    here: Here, spoil: Spoil, tmp_path: Path
) -> None:
    spoil(range(17, 10_000))  # from the fifth step on
    few = ("checkpoint.every=2", "checkpoint.keep_last=1", "evaluate.every=100", "train.most_bad_steps=6")
    with raising(DragomanError, "6 steps", "step 4", "train.rate"):
        here.train(tmp_path, *few)
    folder = RunFolder(tmp_path)
    assert folder.checkpoint_steps() == [4]
    assert saved_state.verify(folder.checkpoint(4)).step == 4
    assert database.read(folder.records).attempts[-1].reason == "diverged"


def test_a_run_that_was_stopped_before_its_first_update_continues(
    here: Here, spoil: Spoil, tmp_path: Path
) -> None:
    spoil(range(1, 9))  # both steps of the first attempt
    here.train(tmp_path, "train.steps=2")
    assert saved(tmp_path, 2).bad_in_a_row == 2
    here.train(tmp_path, "train.steps=4")
    assert saved(tmp_path, 4).bad_in_a_row == 0


def test_an_absurd_rate_ends_two_ranks_with_exit_code_1(task: Task, tmp_path: Path) -> None:
    absurd = ("train.rate=1e38", "train.most_bad_steps=3", "checkpoint.every=1", "train.warmup_steps=0")
    result = runs.train(task, tmp_path, *absurd, workers=2)
    assert result.returncode == 1
    assert not lacking(result.stderr, "3 steps", "train.rate")
    assert result.stderr.count("error:") == 1
    assert "Traceback" not in result.stderr
    folder = RunFolder(tmp_path)
    for step in folder.checkpoint_steps():  # whole, whatever became of the weights
        saved_state.verify_only(folder.checkpoint(step), saved_state.REQUIRED)
