"""A MODEL as users name it, and starting from one."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dragoman import engines
from dragoman.checkpoint import saved_model
from dragoman.checkpoint.saved_state import SavedState
from dragoman.errors import DataError, UsageError
from dragoman.explain.finding import unknown
from dragoman.measure import database
from dragoman.report.charts import quality
from dragoman.rundir import RunFolder
from tests.facts import lacking, only, raising
from tests.train import runs
from tests.train.conftest import Here, Made, Unbroken
from tests.train.runs import Task

CPU = torch.device("cpu")


def test_a_run_its_best_and_its_checkpoints_are_models(unbroken: Unbroken) -> None:
    folder = RunFolder(unbroken(1))
    assert saved_model.find(folder.path) == saved_model.find(folder.best) == folder.best.resolve()
    assert saved_model.find(folder.checkpoint(8)) == folder.checkpoint(8)


def test_without_a_best_the_newest_is_the_model(unbroken: Unbroken, tmp_path: Path) -> None:
    run = runs.copy_stopped_at(unbroken(1), tmp_path / "run", 16)
    assert saved_model.find(run) == RunFolder(run).checkpoint(16)


def test_a_newer_checkpoint_that_was_not_scored_is_reported(
    here: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is stopped between two evaluations, with no time for one more."""
    stopped, tuned = tmp_path / "stopped", tmp_path / "tuned"
    here.train(stopped, "evaluate.every=2", "checkpoint.every=2", "train.stop_at=3")
    folder = RunFolder(stopped)
    (note,) = saved_model.note_on_newer(stopped)
    assert not lacking(note, "step-00000002", folder.checkpoint(3))
    only(runs.log(stopped).splitlines(), 3, f"dragoman translate {folder.checkpoint(3)}")
    capsys.readouterr()
    engines.load(stopped, "torch")
    assert note in capsys.readouterr().err
    here.train(tuned, "train.steps=1", start_from=stopped)
    assert all(line in runs.log(tuned) for line in note.splitlines())
    for named in (folder.best, folder.checkpoint(2), folder.checkpoint(3)):
        assert saved_model.note_on_newer(named) == []


def test_a_newest_checkpoint_that_is_used_or_was_scored_is_not_reported(
    unbroken: Unbroken, tmp_path: Path
) -> None:
    run = unbroken(1)
    folder = RunFolder(run)
    assert folder.checkpoint_steps()[-1] == runs.LAST
    assert saved_model.note_on_newer(run) == [], "it was scored, whichever is better"
    before = runs.copy_stopped_at(run, tmp_path / "run", 8)
    assert saved_model.note_on_newer(before) == [], "there is no other"


def test_what_is_no_model_is_reported_with_what_would_be(tmp_path: Path) -> None:
    with raising(UsageError, f"{tmp_path}:") as error:
        saved_model.find(tmp_path)
    assert error.value.hint


def test_the_newest_checkpoints_are_averaged(unbroken: Unbroken) -> None:
    folder = RunFolder(unbroken(1))
    paths = saved_model.find_several(folder.path, 2, "last")
    assert paths == [folder.checkpoint(40), folder.checkpoint(48)]
    first, second = (load_file(path / "model.safetensors") for path in paths)
    for name, tensor in saved_model.load(paths, CPU).model.state_dict().items():
        torch.testing.assert_close(tensor, (first[name] + second[name]) / 2)
        assert not torch.equal(tensor, second[name])


def test_what_only_training_needs_may_be_gone_from_a_checkpoint(unbroken: Unbroken, tmp_path: Path) -> None:
    slim = shutil.copytree(RunFolder(unbroken(1)).checkpoint(8), tmp_path / "slim")
    for name in ("optimizer.safetensors", "state.json"):
        (slim / name).unlink()
    assert saved_model.load([slim], torch.device("cpu")).model
    whole = (slim / "model.safetensors").read_bytes()
    (slim / "model.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with raising(DataError, f"{slim / 'model.safetensors'}:"):
        saved_model.load([slim], torch.device("cpu"))


def test_a_best_that_names_another_checkpoint_meanwhile_does_no_harm(
    unbroken: Unbroken, tmp_path: Path
) -> None:
    run = RunFolder(shutil.copytree(unbroken(1), tmp_path / "run", symlinks=True))
    before = saved_model.find(run.path)
    run.best.unlink()
    run.best.symlink_to(run.checkpoint(8).relative_to(run.path))
    assert saved_model.find(run.path) == run.checkpoint(8) != before
    assert before.is_dir() and not before.is_symlink()


def test_too_few_checkpoints_to_average_is_wrong_use(unbroken: Unbroken) -> None:
    with raising(UsageError, f"{unbroken(1)}:", "6", "7", "--average"):
        saved_model.find_several(unbroken(1), 7, "last")


def test_the_best_checkpoints_are_averaged(unbroken: Unbroken) -> None:
    folder = RunFolder(unbroken(1))
    newest = folder.checkpoint(folder.checkpoint_steps()[-1])
    history = SavedState.model_validate_json((newest / "state.json").read_text()).history
    kept = [evaluation for evaluation in history if evaluation.step in folder.checkpoint_steps()]
    best_two = sorted(kept, key=lambda evaluation: evaluation.bleu.value)[-2:]
    paths = saved_model.find_several(folder.path, 2, "best")
    assert paths == [folder.checkpoint(evaluation.step) for evaluation in best_two]


def test_a_damaged_model_is_not_used(unbroken: Unbroken, tmp_path: Path) -> None:
    run = runs.copy_stopped_at(unbroken(1), tmp_path / "run", 8)
    (RunFolder(run).checkpoint(8) / "model.safetensors").write_bytes(b"")
    with raising(DataError, f"{RunFolder(run).checkpoint(8) / 'model.safetensors'}:"):
        saved_model.load([run], CPU)


def test_evaluate_averages_and_answers_as_json(task: Task, unbroken: Unbroken) -> None:
    words = [*runs.DRAGOMAN, "evaluate", str(unbroken(1)), "--data", str(task.data), "--part", "dev"]
    result = subprocess.run([*words, "--average", "2", "--json"], capture_output=True, text=True, check=True)
    (system,) = json.loads(result.stdout)["systems"]
    assert len(system["translations"]) == 60
    assert not lacking(system["made"], "2 checkpoints")
    assert "tok:13a" in system["scores"]["bleu"]["signature"]
    assert "nc:6" in system["scores"]["chrf"]["signature"]


def test_a_run_from_a_model_has_its_weights_but_not_its_past(
    here: Here, unbroken: Unbroken, tmp_path: Path
) -> None:
    # A rate of nearly nothing: what the run ends with is what it began with.
    here.train(tmp_path, "train.steps=1", "train.rate=1e-30", start_from=unbroken(1))
    folder = RunFolder(tmp_path).checkpoint(1)
    expected = load_file(RunFolder(unbroken(1)).best / "model.safetensors")
    for name, tensor in load_file(folder / "model.safetensors").items():
        torch.testing.assert_close(tensor, expected[name])
    assert int(load_file(folder / "optimizer.safetensors")["updates"]) == 1
    state = SavedState.model_validate_json((folder / "state.json").read_text())
    assert (state.step, [each.step for each in state.history], state.position.step) == (1, [0, 1], 1)
    only(runs.log(tmp_path).splitlines(), unbroken(1))


def test_fine_tuning_that_harms_leaves_the_beginning_as_the_best(
    here: Here, learnt: Path, tmp_path: Path
) -> None:
    harmful = (*runs.LEARNING, "train.steps=8", "train.rate=0.1", "train.warmup_steps=0", "evaluate.every=4")
    here.train(tmp_path, *harmful, "checkpoint.keep_last=1", start_from=learnt)
    folder = RunFolder(tmp_path)
    assert folder.checkpoint_steps() == [0, 8]
    assert saved_model.find(tmp_path) == folder.checkpoint(0)
    expected = load_file(RunFolder(learnt).best / "model.safetensors")
    for name, tensor in load_file(folder.best / "model.safetensors").items():
        torch.testing.assert_close(tensor, expected[name])
    records = database.read(folder.records)
    assert [row.step for row in records.evaluations] == [0, 4, 8]
    (best,) = [row.bleu for row in records.evaluations if row.step == 0]
    assert best is not None
    only(runs.log(tmp_path).splitlines(), "BLEU", f"{best:.2f}", "step 0", "nrefs:1")
    assert quality.bleu(records, unknown("convergence", "")).traces[0]["x"][0] == 0


def test_a_run_that_is_not_fine_tuning_begins_without_a_score(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path, "train.steps=2", "evaluate.every=1")
    assert [row.step for row in database.read(RunFolder(tmp_path).records).evaluations] == [1, 2]


def test_going_on_does_not_take_the_model_again(here: Here, unbroken: Unbroken, tmp_path: Path) -> None:
    here.train(tmp_path / "whole", "train.steps=4", start_from=unbroken(1))
    for steps in (2, 4):
        here.train(tmp_path / "pieces", f"train.steps={steps}", start_from=unbroken(1))
    assert runs.trained(tmp_path / "pieces", 4) == runs.trained(tmp_path / "whole", 4)
    only(runs.log(tmp_path / "pieces").splitlines(), unbroken(1))


def test_going_on_does_not_ask_for_the_model_again(task: Task, unbroken: Unbroken, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(RunFolder(unbroken(1)).best, model)
    for steps in (1, 2):
        result = runs.train(task, tmp_path / "run", f"train.steps={steps}", extra=["--from", str(model)])
        assert result.returncode == 0, result.stderr
        shutil.rmtree(model, ignore_errors=True)
    result = runs.train(task, tmp_path / "other", "train.steps=1", extra=["--from", str(model)])
    assert result.returncode == 2
    assert f"error: {model}: " in result.stderr


def test_a_model_of_another_shape_is_refused(here: Here, unbroken: Unbroken, tmp_path: Path) -> None:
    with raising(DataError, "model.feedforward", 64, 128, "[model]"):
        here.train(tmp_path / "run", "model.feedforward=128", start_from=unbroken(1))
    assert not (tmp_path / "run").exists()


def test_a_model_of_another_vocabulary_is_refused_before_anything_is_written(
    task: Task, unbroken: Unbroken, made_once: Made, tmp_path: Path
) -> None:
    def make(folder: Path) -> None:
        runs.make_task(folder, vocabulary_size=48)

    other = Task(made_once("reverse-with-48-pieces", make) / "data", task.config)
    result = runs.train(other, tmp_path / "run", extra=["--from", str(unbroken(1))])
    assert result.returncode == 1
    assert not lacking(result.stderr, "--vocab", RunFolder(unbroken(1)).best.resolve() / "vocabulary.model")
    assert not (tmp_path / "run").exists()
