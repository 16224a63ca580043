"""Checkpoints: whole, verified, kept and removed by rule."""

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dragoman import atomic
from dragoman.checkpoint import saved_state
from dragoman.checkpoint.saved_state import ReplicaState, SavedState
from dragoman.errors import DataError
from dragoman.rundir import RunFolder
from tests.facts import only, raising
from tests.train import runs
from tests.train.conftest import Here, Unbroken

SHORT = ("train.steps=6", "checkpoint.every=2", "evaluate.every=3")


def flip_a_byte(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def lose_a_file(folder: Path) -> None:
    (folder / "optimizer.safetensors").unlink()


def cut_the_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text()[:100])


def empty_the_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"step": 6, "files": {}}')


DAMAGES = [flip_a_byte, lose_a_file, cut_the_manifest, empty_the_manifest]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_reported_and_the_one_before_is_taken(
    here: Here, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    here.train(tmp_path, *SHORT)
    expected = runs.trained(tmp_path, 6)
    folder = RunFolder(tmp_path)
    damage(folder.checkpoint(6))
    here.train(tmp_path, *SHORT)
    only(runs.log(tmp_path).splitlines(), "step-00000006.damaged")
    assert runs.resumed_at(tmp_path) == [4]
    assert runs.trained(tmp_path, 6) == expected
    assert folder.checkpoints.joinpath("step-00000006.damaged").is_dir()


def test_if_all_are_damaged_nothing_is_begun_anew(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path, *SHORT)
    folder = RunFolder(tmp_path)
    for step in folder.checkpoint_steps():
        flip_a_byte(folder.checkpoint(step))
    before = runs.snapshot(tmp_path)
    for _ in range(2):  # also not at the second attempt
        with raising(DataError, f"{folder.checkpoints}:", "step 0"):
            here.train(tmp_path, *SHORT)
    assert runs.snapshot(tmp_path) == before


def test_what_a_killed_writer_left_is_removed(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path, "train.steps=1")
    folder = RunFolder(tmp_path)
    unfinished = folder.checkpoints / f"step-00000002{atomic.UNFINISHED}"
    shutil.copytree(folder.checkpoint(1), unfinished)
    here.train(tmp_path, "train.steps=1")
    assert not unfinished.exists()
    assert folder.checkpoint_steps() == [1]


def test_the_manifest_lists_every_file_with_size_checksum_and_purpose(unbroken: Unbroken) -> None:
    folder = RunFolder(unbroken(1)).checkpoint(runs.LAST)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["step"] == runs.LAST
    assert manifest["files"].keys() == {path.name for path in folder.iterdir()} - {"manifest.json"}
    for name, facts in manifest["files"].items():
        content = (folder / name).read_bytes()
        assert facts["bytes"] == len(content)
        assert facts["sha256"] == sha256(content).hexdigest()
        assert len(facts["purpose"]) > 10


def test_no_checkpoint_file_is_a_pickle(unbroken: Unbroken) -> None:
    folder = RunFolder(unbroken(1)).checkpoint(runs.LAST)
    kinds = {path.suffix for path in folder.iterdir()}
    assert kinds == {".safetensors", ".json", ".toml", ".model"}
    for path in folder.glob("*.safetensors"):
        assert load_file(path)  # refuses anything that is not plain tensors


def test_the_state_tells_pairs_tokens_and_the_next_position(unbroken: Unbroken) -> None:
    folder = RunFolder(unbroken(1))
    first, last = (
        SavedState.model_validate_json((folder.checkpoint(step) / "state.json").read_text())
        for step in (8, runs.LAST)
    )
    assert (first.step, last.step) == (8, runs.LAST)
    assert last.pairs > first.pairs > 0
    assert last.target_tokens > first.target_tokens > 0
    assert last.position > first.position
    assert [evaluation.step for evaluation in last.history] == [16, 32, 48]


def test_the_newest_and_the_best_stay_and_best_points_to_the_best(here: Here, tmp_path: Path) -> None:
    rising = ("train.rate=0.000001", "evaluate.metric=loss")  # hardly learns ...
    here.train(
        tmp_path, *rising, "train.steps=4", "evaluate.every=2", "checkpoint.every=1", "checkpoint.keep_last=2"
    )
    folder = RunFolder(tmp_path)
    assert folder.checkpoint_steps() == [3, 4]
    assert folder.best.resolve() == folder.checkpoint(4).resolve()
    # ... and then forgets: every later evaluation is worse, so step 4 stays the best.
    worse = (
        "evaluate.metric=loss",
        "train.rate=0.5",
        "train.steps=12",
        "evaluate.every=2",
        "checkpoint.every=1",
    )
    here.train(tmp_path, *worse, "checkpoint.keep_last=2")
    assert folder.checkpoint_steps() == [4, 11, 12]
    assert folder.best.resolve() == folder.checkpoint(4).resolve()


def test_as_many_of_the_best_stay_as_asked_for(here: Here, tmp_path: Path) -> None:
    better_and_better = ("evaluate.metric=loss", "evaluate.every=1", "checkpoint.every=1", "train.steps=5")
    here.train(tmp_path, *better_and_better, "checkpoint.keep_last=1", "checkpoint.keep_best=3")
    assert RunFolder(tmp_path).checkpoint_steps() == [3, 4, 5]


def test_a_loss_that_is_not_finite_can_be_read_again(unbroken: Unbroken) -> None:
    path = RunFolder(unbroken(1)).checkpoint(runs.LAST) / "state.json"
    state = SavedState.model_validate_json(path.read_text())
    state.history[0].eval_loss = float("inf")
    state.history[1].train_sample_loss = float("nan")
    again = SavedState.model_validate_json(state.model_dump_json())
    assert again.history[0].eval_loss == float("inf")
    assert again.history[1].train_sample_loss != again.history[1].train_sample_loss


def test_verify_names_the_damaged_file(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path, "train.steps=1")
    folder = RunFolder(tmp_path).checkpoint(1)
    assert saved_state.verify(folder).step == 1
    flip_a_byte(folder)
    with raising(DataError, f"{folder / 'model.safetensors'}:"):
        saved_state.verify(folder)


def test_a_loss_scale_continues_from_a_checkpoint() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    sgd, before = torch.optim.SGD([parameter]), torch.amp.GradScaler("cpu")
    saved = ReplicaState(step=1, loss_scale=before.state_dict()).model_dump_json()
    after = torch.amp.GradScaler("cpu")
    after.load_state_dict(ReplicaState.model_validate_json(saved).loss_scale)
    after.scale(parameter.sum()).backward()
    after.step(sgd)
    after.update()  # torch wants an int for an int here
    assert after.state_dict()["scale"] == before.state_dict()["scale"]
