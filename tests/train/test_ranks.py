"""The step is defined by the config: ranks change who computes what, not what is computed."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dragoman.checkpoint.saved_state import SavedState
from dragoman.measure import database
from dragoman.rundir import RunFolder
from tests.facts import only
from tests.train import runs
from tests.train.conftest import Here, Unbroken
from tests.train.runs import Task


def state(run: Path, step: int = runs.LAST) -> SavedState:
    return SavedState.model_validate_json((RunFolder(run).checkpoint(step) / "state.json").read_text())


def weights(run: Path, step: int = runs.LAST) -> torch.Tensor:
    tensors = load_file(RunFolder(run).checkpoint(step) / "model.safetensors")
    return torch.cat([tensors[name].flatten() for name in sorted(tensors)])


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_do_not_change_the_loss_curve_though_dropout_is_on(unbroken: Unbroken, ranks: int) -> None:
    one, many = runs.losses(unbroken(1)), runs.losses(unbroken(ranks))
    assert list(one) == list(many) == list(range(1, runs.LAST + 1))
    assert many == pytest.approx(one, abs=2e-3)
    # Far apart, compared with what another seed of dropout does to the weights, it is not.
    assert torch.allclose(weights(unbroken(ranks)), weights(unbroken(1)), atol=5e-3)


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_do_not_change_evaluations(unbroken: Unbroken, ranks: int) -> None:
    for one, many in zip(state(unbroken(1)).history, state(unbroken(ranks)).history, strict=True):
        assert many.step == one.step
        assert many.eval_loss == pytest.approx(one.eval_loss, abs=1e-3)
        assert many.train_sample_loss == pytest.approx(one.train_sample_loss, abs=1e-3)
        assert many.bleu.value == pytest.approx(one.bleu.value, abs=3)


def test_recomputing_layers_changes_no_bit(task: Task, unbroken: Unbroken, tmp_path: Path) -> None:
    result = runs.train(task, tmp_path, "train.steps=16", "train.recompute=true", workers=2)
    assert result.returncode == 0, result.stderr
    assert runs.trained(tmp_path, 16) == runs.trained(unbroken(2), 16)


def test_a_run_continues_with_other_numbers_of_ranks(task: Task, unbroken: Unbroken, tmp_path: Path) -> None:
    run = runs.copy_stopped_at(unbroken(4), tmp_path / "run", 16)
    for ranks, steps in ((2, 24), (3, 32)):
        result = runs.train(task, run, f"train.steps={steps}", workers=ranks)
        assert result.returncode == 0, result.stderr
    assert runs.resumed_at(run) == [16, 24]
    only(runs.log(run).splitlines(), "step 16", "4 ranks", 2)
    only(runs.log(run).splitlines(), "step 24", "2 ranks", 3)
    placements = [attempt.placement for attempt in database.read(RunFolder(run).records).attempts]
    assert [placed["ranks"] for placed in placements] == [4, 2, 3]
    assert [len(placed["rank_hosts"]) for placed in placements] == [4, 2, 3]
    assert all(placed["exchange"] == "allreduce" for placed in placements)
    ours, expected = state(run, 32), state(unbroken(4), 32)
    assert (ours.pairs, ours.target_tokens) == (expected.pairs, expected.target_tokens)
    assert ours.position == expected.position
    steps_made = slice(0, 32)
    assert list(runs.losses(run).values())[steps_made] == pytest.approx(
        list(runs.losses(unbroken(4)).values())[steps_made], abs=2e-3
    )


def test_ranks_without_a_microbatch_change_nothing(task: Task, here: Here, tmp_path: Path) -> None:
    """Also with steps counted in pairs."""
    settings = ("data.unit=pairs", "data.step=64", "data.microbatch=32", "train.steps=6")
    here.train(tmp_path / "1", *settings)
    result = runs.train(task, tmp_path / "3", *settings, workers=3)
    assert result.returncode == 0, result.stderr
    only(runs.log(tmp_path / "3").splitlines(), "64 pairs", "2 microbatches", "3 ranks", "1 rank")
    assert runs.losses(tmp_path / "3") == pytest.approx(runs.losses(tmp_path / "1"), abs=1e-3)
    one, three = state(tmp_path / "1", 6), state(tmp_path / "3", 6)
    assert one.pairs == three.pairs
    assert 6 * 60 <= one.pairs <= 6 * 64
