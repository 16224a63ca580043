"""Fitting a run to a time."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import config
from dragoman.config import Training
from dragoman.measure import clock, database
from dragoman.rundir import RunFolder
from dragoman.schedule import learning_rate
from dragoman.train import fitting
from dragoman.train.fitting import TIMED_STEPS, Costs
from dragoman.train.stopping import StopReason
from tests.facts import only
from tests.train import runs
from tests.train.conftest import Here


def settings(minutes: float = 15.0, **train: object) -> Training:
    given = {"minutes": minutes, "steps": 8_000, "warmup_steps": 2_000, **train}
    return Training.model_validate({"train": given})


@given(
    st.floats(1, 10_000),
    st.floats(0.001, 10),
    st.floats(0.01, 300),
    st.floats(0, 30),
    st.integers(TIMED_STEPS, 50_000),
)
def test_what_is_chosen_ends_in_time_and_uses_it(
    minutes: float, step: float, evaluation: float, elapsed: float, at: int
) -> None:
    chosen = fitting.fit(settings(minutes), at, elapsed, Costs(step, evaluation))
    steps, every = chosen.train.steps, chosen.evaluate.every
    seconds = elapsed + (steps - at) * step + -(-steps // every) * evaluation
    enough = minutes * 60 > elapsed + 3 + 2 * step + evaluation + 0.1 * minutes * 60
    assert seconds < minutes * 60 or not enough
    assert seconds > 0.8 * minutes * 60 or not enough or step * 20 > minutes * 60 or minutes < 2
    assert steps > at and chosen.train.warmup_steps <= steps // 2
    assert chosen.checkpoint.every == every <= steps


def test_evaluations_take_a_small_share_but_there_is_one() -> None:
    quick, slow = (fitting.fit(settings(), 10, 20.0, Costs(0.5, each)) for each in (2.0, 400.0))
    assert -(-quick.train.steps // quick.evaluate.every) == 10
    assert slow.evaluate.every == slow.train.steps
    assert slow.train.steps < quick.train.steps


@pytest.mark.parametrize("schedule", ["transformer", "inverse_sqrt", "linear", "cosine", "constant"])
def test_the_peak_of_the_learning_rate_stays(schedule: str) -> None:
    given = settings(schedule=schedule)
    chosen = fitting.fit(given, 10, 20.0, Costs(0.5, 5.0))
    before, after = (
        max(learning_rate(step, each.train, 512) for step in range(each.train.steps))
        for each in (given, chosen)
    )
    assert chosen.train.steps < 2_000
    assert chosen.train.warmup_steps == pytest.approx(chosen.train.steps / 4, abs=1)
    assert after == pytest.approx(before, rel=0.01)


def test_a_fit_is_kept_for_the_same_time_only() -> None:
    chosen = fitting.fit(settings(), 10, 20.0, Costs(0.5, 5.0))
    assert fitting.kept(settings(), chosen) == chosen
    assert fitting.kept(settings(30.0), chosen) == settings(30.0)
    assert fitting.kept(settings(0.0), chosen) == settings(0.0)
    assert fitting.kept(settings(), settings()) == settings()


def test_a_run_chooses_its_steps_once_and_keeps_them(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "process_began", clock.seconds)  # not that of the tests
    asked = ("train.minutes=0.12", "train.steps=100000", "train.warmup_steps=1000", "checkpoint.every=1000")
    folder = RunFolder(tmp_path)
    began = clock.seconds()
    assert here.train(tmp_path, *asked, "train.stop_at=12") == StopReason.STOPPED
    chosen = config.load(Training, folder.config)
    assert chosen.train.fitted_at == TIMED_STEPS < chosen.train.steps < 100_000
    assert chosen.train.warmup_steps <= chosen.train.steps // 2
    assert here.train(tmp_path, *asked) == StopReason.FINISHED
    assert clock.seconds() - began < 60
    assert config.load(Training, folder.config).train.steps == chosen.train.steps
    assert folder.checkpoint_steps()[-1] == chosen.train.steps
    only(runs.log(tmp_path).splitlines(), "0.12 min")
    assert f"step {chosen.train.steps:,}/{chosen.train.steps:,} " in runs.log(tmp_path)
    assert database.read(folder.records).facts.settings["train.steps"] == chosen.train.steps
    assert here.train(tmp_path, *asked) == StopReason.FINISHED, "there is nothing left to do"


def test_ranks_agree_on_what_is_chosen(task: runs.Task, tmp_path: Path) -> None:
    """Their clocks differ; one that went on with other steps would leave the others waiting."""
    ended = runs.train(task, tmp_path, "train.minutes=0.01", "train.steps=100000", workers=2)
    assert ended.returncode == 0, ended.stderr
    chosen = config.load(Training, RunFolder(tmp_path).config)
    assert RunFolder(tmp_path).checkpoint_steps()[-1] == chosen.train.steps
