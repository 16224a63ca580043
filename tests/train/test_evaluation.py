"""Evaluation during training: honest losses, real translations."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.checkpoint import saved_model
from dragoman.checkpoint.saved_state import SavedState
from dragoman.data.batches import load
from dragoman.data.store import DataSet
from dragoman.rundir import RunFolder
from dragoman.train.step import tensors
from tests.train import runs
from tests.train.conftest import Here

CPU = torch.device("cpu")


def last_state(run: Path) -> SavedState:
    folder = RunFolder(run)
    path = folder.checkpoint(folder.checkpoint_steps()[-1]) / "state.json"
    return SavedState.model_validate_json(path.read_text())


def test_an_untrained_model_scores_next_to_nothing(here: Here, tmp_path: Path) -> None:
    """Real translations: a decoder that is fed the reference would do far better."""
    here.train(tmp_path, "train.steps=1", "train.rate=1e-9")
    assert last_state(tmp_path).history[-1].bleu.value < 1


def test_losses_are_those_of_a_direct_computation(here: Here, tmp_path: Path) -> None:
    """Sentence by sentence, without dropout, with the smoothing of training."""
    here.train(tmp_path, "train.steps=3", "evaluate.train_sample_pairs=50")
    evaluation = last_state(tmp_path).history[-1]
    model = saved_model.load([tmp_path], CPU).model
    data = DataSet(here.task.data)
    sample = np.arange(50) * len(data.train) // 50
    for part, rows, found in (
        (data.parts["dev"], np.arange(60), evaluation.eval_loss),
        (data.train, sample, evaluation.train_sample_loss),
    ):
        total, tokens = 0.0, 0
        for row in rows:
            pair = load(part, np.array([row]))
            with torch.no_grad():
                total += float(model(*tensors(pair, CPU), 0.1))
            tokens += pair.target_tokens
        assert found == pytest.approx(total / tokens, rel=1e-5)


def test_evaluating_leaves_no_trace_in_training(here: Here, tmp_path: Path) -> None:
    """Not in the weights, not in dropout."""
    for every in (1, 100):
        here.train(tmp_path / str(every), "train.steps=4", f"evaluate.every={every}")
    assert runs.trained(tmp_path / "1", 4) == runs.trained(tmp_path / "100", 4)


def test_scores_carry_their_signatures_and_samples_are_shown(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path, "train.steps=2", "evaluate.samples=2")
    evaluation = last_state(tmp_path).history[-1]
    assert "smooth:exp" in evaluation.bleu.signature
    assert "nc:6" in evaluation.chrf.signature
    lines = runs.log(tmp_path).splitlines()
    source = DataSet(here.task.data).parts["dev"].text("source")
    assert [line[15:] for line in lines if line.startswith("  source")] == [source[0], source[30]]
