"""Whether to stop, and why."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from dragoman.config import Training
from dragoman.measure.quality import Evaluation, Score
from dragoman.rundir import RunFolder
from dragoman.train import stopping
from dragoman.train.state import State, StepOutcome
from dragoman.train.stopping import StopReason
from tests.facts import only
from tests.train import runs
from tests.train.conftest import Here

FINE = StepOutcome(1.0, 10, 1.0, 0.1, is_bad=False, stop_wanted=False)
NOTHING = cast(Any, None)  # stopping looks at neither model nor optimizer


def state(bleus: Sequence[float] = (), **settings: dict[str, Any]) -> State:
    history = [
        Evaluation(
            step=number,
            eval_loss=-bleu,
            train_sample_loss=0,
            bleu=Score(value=bleu, signature=""),
            chrf=Score(value=0, signature=""),
            seconds=0,
        )
        for number, bleu in enumerate(bleus)
    ]
    return State(Training.model_validate(settings), NOTHING, NOTHING, history=history)


@pytest.mark.parametrize(
    ("bleus", "patience", "stops"),
    [
        ([], 1, False),
        ([5], 1, False),
        ([5, 6], 1, False),
        ([5, 5], 1, True),  # as good is no better
        ([5, 4], 1, True),
        ([5, 4, 6], 2, False),
        ([5, 4, 5], 2, True),
        ([5, 4, 5], 0, False),  # endless
        ([1, 2, 3, 3, 3], 3, False),
        ([1, 2, 3, 3, 3, 3], 3, True),
        ([float("nan"), float("nan")], 1, True),
        ([float("nan"), 1], 1, False),
    ],
)
def test_patience_ends_when_nothing_got_better(bleus: list[float], patience: int, stops: bool) -> None:
    for metric in ("bleu", "loss"):
        found = stopping.after_evaluation(state(bleus, evaluate={"patience": patience, "metric": metric}))
        assert found == (StopReason.PATIENCE if stops else None)


def test_evaluations_made_because_a_run_was_stopped_leave_patience_as_it_was() -> None:
    run = state([5, 4, 3], evaluate={"patience": 2})
    assert stopping.after_evaluation(run) == StopReason.PATIENCE
    run.history[1] = run.history[1].model_copy(update={"at_stop": True})
    assert stopping.after_evaluation(run) is None


def test_a_step_ends_the_run_for_the_gravest_reason() -> None:
    going = state(train={"steps": 10, "most_bad_steps": 3})
    going.step = 1
    assert stopping.after_step(going, FINE) is None
    assert stopping.after_step(going, FINE._replace(stop_wanted=True)) == StopReason.STOPPED
    going.step = 10
    assert stopping.after_step(going, FINE._replace(stop_wanted=True)) == StopReason.FINISHED
    going.bad_in_a_row = 3
    assert stopping.after_step(going, FINE) == StopReason.DIVERGED


def test_patience_is_restored_and_a_run_that_lost_it_does_not_train_on(here: Here, tmp_path: Path) -> None:
    hopeless = ("train.rate=1e-12", "evaluate.metric=bleu", "evaluate.every=2", "evaluate.patience=3")
    assert here.train(tmp_path, *hopeless, "train.steps=5") == StopReason.FINISHED  # evaluations 2, 4 and 5
    assert here.train(tmp_path, *hopeless, "train.steps=100") == StopReason.PATIENCE
    assert RunFolder(tmp_path).checkpoint_steps()[-1] == 6  # with the fourth evaluation
    only(runs.log(tmp_path).splitlines(), "3 evaluations", "evaluate.patience")
    assert here.train(tmp_path, *hopeless, "train.steps=100") == StopReason.PATIENCE
    assert RunFolder(tmp_path).checkpoint_steps()[-1] == 6
    assert here.train(tmp_path, *hopeless[:-1], "evaluate.patience=0", "train.steps=8") == StopReason.FINISHED


@pytest.mark.parametrize(("bleu", "kept"), [(9.0, True), (7.0, True), (4.0, False)])
def test_a_checkpoint_is_kept_if_few_evaluations_were_better(bleu: float, kept: bool) -> None:
    run = state([3.0, 8.0, 5.0, bleu], checkpoint={"keep_best": 2})
    assert run.is_among_the_best(run.history[-1]) is kept
