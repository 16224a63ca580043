import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from dragoman.measure.quality import Evaluation, Sample, Score
from dragoman.measure.tensorboard import TensorBoardCurves


def read(folder: Path) -> EventAccumulator:
    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def evaluation(step: int) -> Evaluation:
    score = Score(value=12.5, signature="")
    return Evaluation(step=step, eval_loss=2.5, train_sample_loss=2.0, bleu=score, chrf=score, seconds=0)


def test_the_tags_are_those_that_users_know(tmp_path: Path) -> None:
    curves = TensorBoardCurves(tmp_path, 1)
    curves.step(1, loss=3.5, rate=0.25, norm=1.5, tokens_per_second=100)
    curves.evaluation(evaluation(1), [Sample(source="Hund", reference="dog", translation="cat")])
    curves.close()
    found = read(tmp_path)
    values = {tag: found.Scalars(tag)[0].value for tag in found.Tags()["scalars"]}
    assert (
        values.items()
        >= {
            "train_loss": 3.5,
            "learning_rate": 0.25,
            "global_gradient_norm": 1.5,
            "eval_loss": 2.5,
            "train_sample_loss": 2.0,
            "Eval_BLEU_Score": 12.5,
        }.items()
    )
    text = found.Tensors("translation/0/text_summary")[0].tensor_proto.string_val[0].decode()
    assert text == "Hund\n\n**cat**\n\ndog"


@pytest.mark.parametrize("clock_set_by", [-3600, 0, 3600])
def test_points_of_a_lost_attempt_are_replaced(
    clock_set_by: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorBoard reads files in the order of the seconds in their names."""
    true_time = time.time
    for first, last, loss in ((1, 5, 1.0), (3, 6, 2.0)):
        monkeypatch.setattr(time, "time", lambda first=first: true_time() + clock_set_by * (first > 1))
        curves = TensorBoardCurves(tmp_path, first)
        for step in range(first, last + 1):
            curves.step(step, loss=loss, rate=0, norm=0, tokens_per_second=0)
        curves.close()
    points = [(event.step, event.value) for event in read(tmp_path).Scalars("train_loss")]
    assert points == [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (6, 2)]


def test_a_point_is_on_disk_at_once(tmp_path: Path) -> None:
    curves = TensorBoardCurves(tmp_path, 1)
    for step in (1, 2, 3):
        curves.step(step, loss=3.5, rate=0.25, norm=1.5, tokens_per_second=100)
    assert [event.step for event in read(tmp_path).Scalars("train_loss")] == [1, 2, 3]
    curves.close()


def test_a_run_without_a_point_leaves_no_file(tmp_path: Path) -> None:
    TensorBoardCurves(tmp_path / "tensorboard", 1).close()
    assert not list((tmp_path / "tensorboard").iterdir())
