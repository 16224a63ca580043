from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.event_file_writer import EventFileWriter  # type: ignore[import-untyped]

from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from tests.foreign import logs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """2 s per step, written once in ten."""
    writer = EventFileWriter(str(tmp_path))
    for step in range(0, 1001, 10):
        values = {"train_loss": 5 - step / 500, "learning_rate": 1e-3}
        if step % 100 == 0 and step:
            values |= {"eval_loss": 2 + 100 / step, "Eval_BLEU_Score": 0.3}
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=v) for tag, v in values.items()])
        writer.add_event(Event(step=step, wall_time=1.6e9 + 2 * step, summary=summary))
    writer.close()
    return tmp_path


def test_an_event_folder_gives_steps_times_and_losses(folder: Path) -> None:
    made = diagnose([folder], Given())
    numbers = {finding.id: finding.numbers for finding in made.findings}
    assert numbers["step_time"]["median_seconds"] == pytest.approx(2.0)
    assert numbers["duration"]["wall_seconds"] == pytest.approx(2000)
    assert numbers["convergence"]["last_eval_loss"] == pytest.approx(2.1)
    assert "best_bleu" not in numbers["convergence"]  # OpenSeq2Seq's tag: teacher-forced
    assert numbers["learning_rate"]["peak"] == pytest.approx(1e-3)


def test_a_log_goes_before_the_curves_of_the_same_run(folder: Path) -> None:
    logs.written(folder, logs.openseq2seq(2000))
    numbers = {finding.id: finding.numbers for finding in diagnose([folder], Given()).findings}
    assert numbers["duration"]["attempts"] == 1
    assert numbers["step_time"]["median_seconds"] == pytest.approx(1.7)
    assert numbers["convergence"]["evaluations"] == 5


def test_events_still_being_written_are_read_up_to_there(folder: Path) -> None:
    path = next(folder.iterdir())
    path.write_bytes(path.read_bytes()[:-7])
    numbers = next(f for f in diagnose([path], Given()).findings if f.id == "duration").numbers
    assert numbers["steps"] in (990, 1000)


def test_a_loss_in_the_folder_of_held_out_data_is_held_out(tmp_path: Path) -> None:
    """As fairseq writes them: one folder for each part of the data, and the same names in all."""
    for part, every in (("train", 500), ("train_inner", 100), ("valid", 500)):
        (tmp_path / part).mkdir()
        writer = EventFileWriter(str(tmp_path / part))
        for step in range(every, 2001, every):
            summary = Summary(value=[Summary.Value(tag="loss", simple_value=9 - step / 1000)])
            writer.add_event(Event(step=step, wall_time=1.6e9 + 1.5 * step, summary=summary))
        writer.close()
    numbers = {finding.id: finding.numbers for finding in diagnose([tmp_path], Given()).findings}
    assert numbers["duration"]["attempts"] == 1
    assert numbers["convergence"]["evaluations"] == 4
    assert numbers["step_time"]["median_seconds"] == pytest.approx(1.5)


def written(folder: Path, points: list[tuple[int, dict[str, float]]]) -> Path:
    """2 s per step."""
    writer = EventFileWriter(str(folder))
    for step, values in points:
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=v) for tag, v in values.items()])
        writer.add_event(Event(step=step, wall_time=1.6e9 + 2 * step, summary=summary))
    writer.close()
    return folder


@pytest.mark.parametrize(
    ("training", "held_out", "score"),
    [
        ("train/loss", "eval/loss", "eval/bleu"),  # Hugging Face
        ("training/loss", "validation/loss", "validation/bleu"),
        ("train_loss_step", "val_loss", "val_bleu"),  # Lightning
        ("Loss/train", "Loss/valid", "BLEU/valid"),  # PyTorch's tutorials
        ("model/train_loss", "model/valid_loss", "bleu"),
    ],
)
def test_a_held_out_loss_is_one_by_whatever_name(
    tmp_path: Path, training: str, held_out: str, score: str
) -> None:
    points: list[tuple[int, dict[str, float]]] = []
    for step in range(100, 2001, 100):
        points.append((step, {training: 9 - step / 1000, "train/learning_rate": 1e-4 * (1 - step / 2000)}))
        if step % 400 == 0:
            points.append((step, {held_out: 2 + 400 / step, score: 20 + step / 400, "val/perplexity": 8.0}))
    points.append((2000, {"train/train_loss": 8.0, "train/train_runtime": 4000.0}))  # the Trainer's summary
    numbers = {f.id: f.numbers for f in diagnose([written(tmp_path, points)], Given()).findings}
    assert numbers["duration"]["attempts"] == 1
    assert numbers["duration"]["steps"] == 2000
    assert numbers["step_time"]["median_seconds"] == pytest.approx(2.0)
    assert numbers["learning_rate"]["peak_step"] == 100
    assert numbers["convergence"]["evaluations"] == 5
    assert numbers["convergence"]["last_eval_loss"] == pytest.approx(2.2)
    assert numbers["convergence"]["best_bleu"] == pytest.approx(25)


def test_bleu_is_scaled_as_a_series_not_point_by_point(tmp_path: Path) -> None:
    """In percent an early evaluation may well be below 1."""
    writer = EventFileWriter(str(tmp_path))
    for number, bleu in enumerate((0.8, 6.2, 14.0, 21.5, 26.2), 1):
        values = {"eval/loss": 6 - number / 2, "eval/bleu": bleu}
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=v) for tag, v in values.items()])
        writer.add_event(Event(step=100 * number, wall_time=1.6e9 + 200 * number, summary=summary))
    writer.close()
    numbers = {finding.id: finding.numbers for finding in diagnose([tmp_path], Given()).findings}
    assert numbers["convergence"]["best_bleu"] == pytest.approx(26.2, abs=0.01)


def test_curves_do_not_tell_how_a_run_ended(folder: Path) -> None:
    made = diagnose([folder], Given())
    found = next(finding for finding in made.findings if finding.id == "duration")
    assert "finished" not in found.numbers
    assert not made.records.facts.end_is_known
