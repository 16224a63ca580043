"""Checkpoints that are not what they should be, opened to translate, to begin with or to go on from."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import torch
from safetensors.torch import load_file, save_file

from dragoman.checkpoint import manifest, saved_model, saved_state
from dragoman.checkpoint.saved_state import MODEL_FILE, OPTIMIZER_FILE, STATE_FILE
from dragoman.data.store import VOCABULARY_FILE
from dragoman.errors import CheckpointError, DataError
from dragoman.rundir import RunFolder
from tests import damage
from tests.decode.models import make_run, vocabulary
from tests.facts import only, raising
from tests.train import runs
from tests.train.conftest import Here

CPU = torch.device("cpu")
CONFIG_FILE = "config.toml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return RunFolder(make_run(tmp_path / "run")).checkpoint(1)


def sign(folder: Path) -> None:
    """A manifest to suit whatever is there: what a checksum cannot tell."""
    there = {path.name for path in folder.iterdir()}
    purposes = {name: purpose for name, purpose in saved_state.PURPOSES.items() if name in there}
    manifest.write(folder, purposes, step=1)


def set_in_config(folder: Path, key: str, value: str) -> None:
    path = folder / CONFIG_FILE
    rows = path.read_text().splitlines()
    path.write_text("\n".join(f"{key} = {value}" if row.startswith(f"{key} =") else row for row in rows))


def change_a_weight(folder: Path, value: float) -> str:
    """In the middle of the largest; its name."""
    weights = load_file(folder / MODEL_FILE)
    name = max(weights, key=lambda name: weights[name].numel())
    weights[name].view(-1)[weights[name].numel() // 2] = value
    save_file(weights, folder / MODEL_FILE)
    sign(folder)
    return name


ABSURD = [
    ("encoder_layers", "3000"),
    ("decoder_layers", "99999999999999999999"),
    ("width", "99999999996"),
    ("width", "1" + "0" * 40),
    ("feedforward", "99999999999"),
    ("feedforward", "9" * 30),
    ("feedforward", "49"),
    ("heads", "3"),
    ("dropout", "nan"),
    ("dropout", '"much"'),
    ("encoder_layers", "[[["),
]


@pytest.mark.parametrize(("key", "value"), ABSURD)
@pytest.mark.parametrize("is_signed", [False, True])
def test_a_config_that_does_not_fit_the_weights_is_refused_at_once(
    folder: Path, key: str, value: str, is_signed: bool
) -> None:
    set_in_config(folder, key, value)
    if is_signed:
        sign(folder)
    began = time.monotonic()
    with pytest.raises(CheckpointError) as error:
        saved_model.load([folder], CPU)
    assert time.monotonic() - began < 2
    assert error.value.path in [str(folder / name) for name in (CONFIG_FILE, MODEL_FILE)[: 1 + is_signed]]


def test_a_vocabulary_that_does_not_fit_the_weights_is_refused(folder: Path) -> None:
    (folder / VOCABULARY_FILE).write_bytes(vocabulary(size=100).model)
    sign(folder)
    with raising(CheckpointError, "embedding.weight", "(120, 32)"):
        saved_model.load([folder], CPU)


@pytest.mark.parametrize(
    "change",
    [
        {"more": torch.zeros(2)},
        {"embedding.weight": torch.zeros(120, 32, dtype=torch.float64)},
        {"encoder.norm.bias": torch.zeros(1)},
    ],
    ids=str,
)
def test_weights_of_another_kind_are_refused(folder: Path, change: dict[str, torch.Tensor]) -> None:
    save_file(load_file(folder / MODEL_FILE) | change, folder / MODEL_FILE)
    sign(folder)
    with pytest.raises(CheckpointError, match=min(change)) as error:
        saved_model.load([folder], CPU)
    assert error.value.path == str(folder / MODEL_FILE)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_weight_that_is_no_number_is_noticed(folder: Path, value: float) -> None:
    name = change_a_weight(folder, value)
    with pytest.raises(CheckpointError, match=f"{name} holds") as error:
        saved_model.load([folder], CPU)
    assert error.value.path == str(folder / MODEL_FILE)


def test_weights_whose_sum_is_no_number_are_still_numbers(folder: Path) -> None:
    weights = load_file(folder / MODEL_FILE)
    weights["embedding.weight"].fill_(3e38)
    save_file(weights, folder / MODEL_FILE)
    assert saved_state.finite_weights(folder).keys() == weights.keys()


@pytest.mark.parametrize("name", [MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE, manifest.MANIFEST_FILE])
def test_no_damage_passes_for_a_model(tmp_path: Path, name: str) -> None:
    whole = make_run(tmp_path / "whole")
    for number, harm in enumerate(damage.ALL * 2):
        folder = RunFolder(runs.copy_stopped_at(whole, tmp_path / str(number), 1)).checkpoint(1)
        harm(folder / name, Random(number))
        with pytest.raises(DataError, match=name) as error:
            saved_state.verify_only(folder, saved_state.REQUIRED_TO_TRANSLATE)
        assert isinstance(error.value, CheckpointError)
        if number % 2 and name != manifest.MANIFEST_FILE and (folder / name).is_file():
            sign(folder)  # then it is for those who read the file to say so, or it is harmless
            try:
                saved_model.load([folder], CPU)
            except DataError as refused:
                assert refused.path in [str(folder / name), str(folder / MODEL_FILE)]


# --- going on ---------------------------------------------------------------------------------------------

SHORT = ("train.steps=6", "checkpoint.every=2", "evaluate.every=3")


def spoil_a_weight(folder: Path) -> None:
    change_a_weight(folder, torch.nan)


def forget_the_state(folder: Path) -> None:
    (folder / STATE_FILE).write_text("{}")
    sign(folder)


def put_a_pipe(folder: Path) -> None:
    damage.put_a_pipe(folder / OPTIMIZER_FILE, Random(1))


def name_another_file(folder: Path) -> None:
    path = folder / manifest.MANIFEST_FILE
    path.write_text(path.read_text().replace(OPTIMIZER_FILE, f"../{OPTIMIZER_FILE}"))


def become_a_file(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.write_text("")


@pytest.mark.parametrize(
    "harm", [spoil_a_weight, forget_the_state, put_a_pipe, name_another_file, become_a_file]
)
def test_an_unusable_checkpoint_is_reported_and_the_previous_one_is_used(
    here: Here, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    here.train(tmp_path, *SHORT)
    expected = runs.trained(tmp_path, 6)
    harm(RunFolder(tmp_path).checkpoint(6))
    here.train(tmp_path, *SHORT)
    only(runs.log(tmp_path).splitlines(), "step-00000006.damaged")
    assert runs.resumed_at(tmp_path) == [4]
    assert runs.trained(tmp_path, 6) == expected


@pytest.mark.parametrize("name", [MODEL_FILE, OPTIMIZER_FILE])
def test_tensors_that_do_not_fit_the_run_are_an_error(here: Here, tmp_path: Path, name: str) -> None:
    here.train(tmp_path, "train.steps=1")
    folder = RunFolder(tmp_path).checkpoint(1)
    save_file({"other": torch.zeros(2)}, folder / name)
    sign(folder)
    with pytest.raises(CheckpointError) as error:
        here.train(tmp_path, "train.steps=2")
    assert error.value.path == str(folder / name)


def test_a_folder_of_more_digits_than_a_step_has_is_none(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path, "train.steps=1")
    odd = [RunFolder(tmp_path).checkpoints / f"step-{digits}" for digits in ("9" * 20, "0" * 19 + "7")]
    for path in odd:
        path.mkdir()
    here.train(tmp_path, "train.steps=2")
    assert RunFolder(tmp_path).checkpoint_steps() == [1, 2]
    assert all(path.is_dir() for path in odd)


def test_a_run_does_not_begin_with_weights_that_are_no_numbers(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path / "first", "train.steps=1")
    change_a_weight(RunFolder(tmp_path / "first").checkpoint(1), torch.nan)
    with pytest.raises(CheckpointError) as error:
        here.train(tmp_path / "second", "train.steps=1", start_from=tmp_path / "first")
    assert error.value.path and error.value.path.endswith(MODEL_FILE)
