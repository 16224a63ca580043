"""`train.deterministic`: torch's switches for the same bits each time. On a CPU, bits do not depend on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from dragoman.train.step import Stepper
from dragoman.train.stopping import StopReason
from tests.train import runs
from tests.train.conftest import Here

SHORT = ("train.steps=4", "checkpoint.every=2", "evaluate.every=4")
CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


@pytest.fixture
def cublas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variable, and without what the run sets afterwards."""
    monkeypatch.setenv(CUBLAS, "")
    monkeypatch.delenv(CUBLAS)


@pytest.mark.usefixtures("cublas")
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_on_a_cpu_the_result_is_the_same_to_the_bit_also_in_pieces(
    here: Here, tmp_path: Path, optimizer: str
) -> None:
    settings = (*SHORT, f"train.optimizer={optimizer}")
    here.train(tmp_path / "usual", *settings)
    here.train(tmp_path / "pieces", *settings, "train.deterministic=true", "train.stop_at=2")
    here.train(tmp_path / "pieces", *settings, "train.deterministic=true")
    assert runs.trained(tmp_path / "pieces", 4) == runs.trained(tmp_path / "usual", 4)


@pytest.mark.usefixtures("cublas")
@pytest.mark.parametrize("wanted", [True, False])
def test_every_step_is_made_with_deterministic_kernels_if_wanted(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    found: list[tuple[bool, str | None]] = []
    update = Stepper.update

    def noted(*arguments, **options):  # noqa: ANN002, ANN003, ANN202
        found.append((torch.are_deterministic_algorithms_enabled(), os.environ.get(CUBLAS)))
        return update(*arguments, **options)

    monkeypatch.setattr(Stepper, "update", noted)
    words = f"train.deterministic={str(wanted).lower()}"
    assert here.train(tmp_path, "train.steps=2", words) == StopReason.FINISHED
    assert found == [(wanted, ":4096:8" if wanted else None)] * 2
    assert not torch.are_deterministic_algorithms_enabled(), "other code of this process is left alone"


def test_a_workspace_that_the_user_has_chosen_stays(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CUBLAS, ":16:8")
    here.train(tmp_path, "train.steps=1", "train.deterministic=true")
    assert os.environ[CUBLAS] == ":16:8"
