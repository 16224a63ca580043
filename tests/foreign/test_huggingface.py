"""trainer_state.json beside this file is a real one: the Trainer, 60 steps of a toy model on a CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.errors import LogError
from dragoman.explain.questions import QUESTIONS
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from tests.facts import lacking, only
from tests.foreign import logs

STATE = Path(__file__).with_name("trainer_state.json")


def test_a_trainer_state_is_read_to_the_last_digit() -> None:
    made = diagnose([STATE], Given(ranks=1))
    numbers = {finding.id: finding.numbers for finding in made.findings}
    evaluated = numbers["duration"]["evaluation_seconds"]
    assert numbers["duration"]["steps"] == 60
    assert numbers["duration"]["finished"] is True
    assert numbers["duration"]["wall_seconds"] == pytest.approx(8.6721)
    assert numbers["step_time"]["mean_seconds"] == pytest.approx((8.6721 - evaluated) / 60)
    assert numbers["convergence"]["last_eval_loss"] == 5.28776741027832
    assert numbers["learning_rate"]["last"] == 2e-05
    assert numbers["learning_rate"]["peak_step"] == 10
    assert next(finding for finding in made.findings if finding.id == "network").verdict == "single_machine"


def test_of_several_checkpoints_the_longest_history_is_read(tmp_path: Path) -> None:
    for name in ("checkpoint-60", "checkpoint-600"):
        (tmp_path / name).mkdir()
    logs.written(tmp_path / "checkpoint-60", STATE.read_bytes(), STATE.name)
    short = STATE.read_text().replace('"global_step": 60', '"global_step": 10').replace(" ", "")
    logs.written(tmp_path / "checkpoint-600", short, STATE.name)
    made = diagnose([tmp_path], Given())
    assert list(made.file_kinds) == [str(tmp_path / "checkpoint-60" / STATE.name)]


def test_a_state_that_was_cut_short_is_reported(tmp_path: Path) -> None:
    path = logs.written(tmp_path, STATE.read_bytes()[:900], "trainer_state.json")
    with pytest.raises(LogError) as caught:
        diagnose([path], Given())
    assert caught.value.path == str(path)
    assert not lacking(caught.value.what, "JSONDecodeError")


def test_the_state_of_the_last_checkpoint_is_of_a_finished_run(tmp_path: Path) -> None:
    """It is written before the summary with the times."""
    state = json.loads(STATE.read_text())
    state["log_history"] = [row for row in state["log_history"] if "train_runtime" not in row]
    made = diagnose([logs.written(tmp_path, json.dumps(state), STATE.name)], Given())
    assert next(finding for finding in made.findings if finding.id == "duration").numbers["finished"] is True


def test_a_clock_that_was_started_anew_times_no_steps(tmp_path: Path) -> None:
    state = json.loads(STATE.read_text())
    state["log_history"][-1]["train_runtime"] = 0.01
    made = diagnose([logs.written(tmp_path, json.dumps(state), STATE.name)], Given())
    numbers = {finding.id: finding.numbers for finding in made.findings}
    assert "mean_seconds" not in numbers["step_time"]
    assert "wall_seconds" not in numbers["duration"]


@pytest.mark.parametrize("history", [None, 3, [1, None]])
def test_a_state_without_history_is_no_traceback(tmp_path: Path, history: object) -> None:
    text = json.dumps({"best_metric": None, "log_history": history, "global_step": "x"})
    made = diagnose([logs.written(tmp_path, text, STATE.name)], Given())
    assert len(made.findings) == len(QUESTIONS)


@pytest.mark.parametrize(
    ("scores", "best"), [((0.16, 0.22, 0.25, 0.27, 0.28), 28.0), ((0.4, 3.0, 12.0), 12.0)]
)
def test_bleu_as_a_fraction_is_not_taken_for_percent(
    tmp_path: Path, scores: tuple[float, ...], best: float
) -> None:
    state = json.loads(STATE.read_text())
    state["log_history"] = [
        {"step": 10 * number, "eval_loss": 3.0 - number / 10, "eval_bleu": score}
        for number, score in enumerate(scores, start=1)
    ]
    made = diagnose([logs.written(tmp_path, json.dumps(state), STATE.name)], Given())
    found = next(finding for finding in made.findings if finding.id == "convergence")
    assert found.numbers["best_bleu"] == pytest.approx(best)


def test_one_mean_of_all_steps_is_no_median(tmp_path: Path) -> None:
    """The Trainer writes a run time, and no time of any step."""
    found = next(finding for finding in diagnose([STATE], Given()).findings if finding.id == "step_time")
    assert "median_seconds" not in found.numbers and "p95_seconds" not in found.numbers
    assert found.confidence == "estimated"
    state = json.loads(STATE.read_text())
    evaluations = sum(row.get("eval_runtime", 0.0) for row in state["log_history"])
    training = state["log_history"][-1]["train_runtime"] - evaluations
    assert found.numbers["mean_seconds"] == pytest.approx(training / state["global_step"])


def test_a_given_step_time_fills_in_where_the_state_has_none(tmp_path: Path) -> None:
    state = json.loads(STATE.read_text())
    state["log_history"] = [row for row in state["log_history"] if "train_runtime" not in row]
    path = logs.written(tmp_path, json.dumps(state), STATE.name)
    made = diagnose([path], Given(step_seconds=2.0))
    found = next(finding for finding in made.findings if finding.id == "step_time")
    assert found.numbers["mean_seconds"] == 2.0
    only(found.evidence, "mean_seconds")
    assert made.records.facts.one_mean, "how single steps differed is not known"
    assert not made.notes
