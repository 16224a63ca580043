"""Which number format a run computes in: the same on all ranks, said, and kept when it resumes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dragoman import config
from dragoman.config import Training
from dragoman.doctor import gpus
from dragoman.doctor.facts import GpuFacts, UsableGpu
from dragoman.errors import DragomanError
from dragoman.measure import database, probes
from dragoman.rundir import RunFolder
from dragoman.train import precision
from dragoman.train.precision import RankGpu
from tests import ranks
from tests.doctor.test_capacity import CUDA_13, usable, with_gpus
from tests.facts import lacking, only
from tests.train.conftest import Here

A100, V100 = usable("NVIDIA A100", (8, 0)), usable("Tesla V100", (7, 0))


@pytest.mark.parametrize(
    ("asked", "capabilities", "settled", "words", "facts"),
    [
        ("auto", ["8.0", "9.0"], "bf16", "bf16", []),
        ("auto", ["8.0", "7.0"], "fp16", "fp16 with loss scaling", ["GPU 7.0"]),
        ("bf16", ["8.0", "7.0"], "bf16", "bf16, emulated", []),
        ("fp32", ["8.0", "7.0"], "fp32", "fp32 with products in TF32 on some GPUs", []),
    ],
)
def test_ranks_with_different_gpus_settle_on_one_format(
    asked: str, capabilities: list[str], settled: str, words: str, facts: list[str]
) -> None:
    said = [
        json.loads(rank.said()) for rank in ranks.each("tests.train.mixed_cards", [asked, *capabilities], 2)
    ]
    assert said[0] == said[1]
    assert said[0][:2] == [settled, words]
    assert not lacking(said[0][2], *facts)


class Cards:
    """Pretends that the run's ranks have GPUs; they compute on the CPU all the same."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self._monkeypatch = monkeypatch

    def are(self, *cards: UsableGpu, architectures: list[str] | None = None) -> None:
        facts = with_gpus(usable=list(cards), architectures=architectures or ["compute_50"])
        found = [RankGpu(f"{card.name} on here", card.capability) for card in cards]
        self._monkeypatch.setattr(gpus, "inspect", lambda: facts if cards else GpuFacts())
        self._monkeypatch.setattr(precision, "_cards", lambda placement: found)
        self._monkeypatch.setattr("dragoman.model.kernels.use_tf32", lambda: None)


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Cards:
    return Cards(monkeypatch)


def saved(run: Path) -> str:
    return config.load(Training, RunFolder(run).config).train.precision


def recorded(run: Path) -> list[object]:
    """The format of each attempt."""
    attempts = database.read(RunFolder(run).records).attempts
    return [attempt.placement["precision"] for attempt in attempts]


def test_a_run_on_cpus_computes_in_fp32_and_says_so(
    here: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here.train(tmp_path, "train.stop_at=1")
    only(capsys.readouterr().out.splitlines(), "parameters", "fp32")
    assert (saved(tmp_path), recorded(tmp_path)) == ("fp32", ["fp32"])
    provenance = json.loads(RunFolder(tmp_path).provenance.read_text())
    assert provenance["precision"] == "fp32"


def test_a_run_begun_on_an_a100_keeps_bf16_on_a_v100_and_warns(
    here: Here, tmp_path: Path, cards: Cards, capsys: pytest.CaptureFixture[str]
) -> None:
    cards.are(A100)
    here.train(tmp_path, "train.stop_at=1")
    assert "warning: precision" not in capsys.readouterr().out
    cards.are(V100)
    here.train(tmp_path, "train.stop_at=2")
    said = capsys.readouterr().out.splitlines()
    only(said, "warning: precision", "Tesla V100")
    only(said, "parameters", "bf16, emulated", "--set train.precision")
    assert not [line for line in said if line.startswith("changed: train.precision")]
    assert (saved(tmp_path), recorded(tmp_path)) == ("bf16", ["bf16", "bf16, emulated"])
    here.train(tmp_path, "train.stop_at=3", "train.precision=fp16")
    only(capsys.readouterr().out.splitlines(), "changed: train.precision", "fp16", "bf16")
    assert saved(tmp_path) == "fp16"
    here.train(tmp_path, "train.stop_at=4")
    assert recorded(tmp_path)[2:] == ["fp16 with loss scaling"] * 2, "what was changed is kept, too"


def test_a_run_whose_config_names_a_format_keeps_it_without_a_word(
    here: Here, tmp_path: Path, cards: Cards, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the shipped configs did before `auto`."""
    cards.are(A100)
    here.train(tmp_path, "train.stop_at=1", "train.precision=fp16")
    capsys.readouterr()
    here.train(tmp_path, "train.stop_at=2")
    assert not [line for line in capsys.readouterr().out.splitlines() if "changed: train.precision" in line]
    assert saved(tmp_path) == "fp16"


def test_a_card_that_torch_has_no_kernels_for_stops_the_run_before_the_first_kernel(
    here: Here, tmp_path: Path, cards: Cards, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards.are(V100, architectures=CUDA_13)
    monkeypatch.setattr(probes, "peaks", lambda *_: pytest.fail("a kernel was started"))
    with pytest.raises(DragomanError) as error:
        here.train(tmp_path / "run")
    assert not lacking(error.value.what, "Tesla V100", "sm_70")
    assert not lacking(error.value.hint, "pip install", "cu126")
    assert not (tmp_path / "run").exists()


def test_a_peak_is_measured_in_what_the_card_computes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, which pretends to be the card that asks."""
    asked: list[torch.dtype] = []
    rand = torch.rand

    def noted(*size: int, dtype: torch.dtype, **_: object) -> torch.Tensor:
        asked.append(dtype)
        return rand(8, 8)

    monkeypatch.setattr(torch, "rand", noted)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    for own in ((8, 0), (7, 5)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, own=own: own)
        probes.own_peak(torch.device("cuda", 0))
    assert asked == [torch.bfloat16] * 2 + [torch.float16] * 2
