from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dragoman.explain import step_time
from dragoman.explain.finding import Finding
from dragoman.explain.questions import QUESTIONS
from dragoman.foreign.answers import Diagnosis, diagnose
from dragoman.foreign.facts import Given
from tests.explain.sentences import wording
from tests.facts import failed, lacking
from tests.foreign import logs


def of(folder: Path, text: str | bytes, **given: object) -> Diagnosis:
    return diagnose([logs.written(folder, text)], Given.model_validate(given))


def finding(made: Diagnosis, id: str) -> Finding:
    return next(finding for finding in made.findings if finding.id == id)


def test_steps_times_and_losses_are_those_of_the_log(tmp_path: Path) -> None:
    made = of(tmp_path, logs.openseq2seq(2000))
    time, duration = finding(made, "step_time").numbers, finding(made, "duration").numbers
    assert time["median_seconds"] == pytest.approx(1.7)
    assert time["mean_seconds"] == pytest.approx((20 * 1.7 + 4 * 0.2) / 20, rel=1e-3)
    assert duration["steps"] == 2000
    assert duration["startup_seconds"] == pytest.approx(88.1)
    assert duration["evaluation_seconds"] == pytest.approx(4 * 20)
    assert duration["training_seconds"] == pytest.approx(2000 * 1.7)
    assert duration["wall_seconds"] == pytest.approx(2000 * 1.7 + 80 + 88.1)
    assert made.records.steps["loss"][made.records.steps["step"] == 1000] == [8.0]
    assert finding(made, "convergence").numbers["last_eval_loss"] == 2.5
    assert [row.step for row in made.records.evaluations] == [0, 401, 802, 1203, 1604]


def test_the_machines_are_read_off_nccl_lines(tmp_path: Path) -> None:
    facts = of(tmp_path, logs.openseq2seq()).records.facts
    assert (facts.ranks, facts.hosts, facts.rank_hosts) == (4, ["a1", "b2"], [0, 0, 1, 1])
    assert facts.gradient_interfaces == ["eth0", "eth0"]
    assert facts.device == "Tesla V100-PCIE-16GB"
    assert facts.parameters == 60_880_896


def test_gradients_cross_in_fp32_also_in_mixed_precision(tmp_path: Path) -> None:
    numbers = finding(of(tmp_path, logs.openseq2seq()), "network").numbers
    assert numbers["expected_bytes_per_step_per_host"] == pytest.approx(365.3e6, rel=1e-3)
    assert numbers["implied_bits_per_second"] == pytest.approx(8 * 365.3e6 / 1.74, rel=1e-3)


def test_the_printed_config_is_the_learning_rate(tmp_path: Path) -> None:
    numbers = finding(of(tmp_path, logs.openseq2seq()), "learning_rate").numbers
    assert (numbers["warmup_steps"], numbers["peak_step"]) == (8000, 5000)  # the run ends before its peak


def test_teacher_forced_bleu_is_not_taken_for_bleu(tmp_path: Path) -> None:
    answer = finding(of(tmp_path, logs.openseq2seq()), "convergence")
    assert not lacking(answer.answer, "0.3")
    assert "best_bleu" not in answer.numbers
    assert answer.numbers["teacher_forced_bleu"] == 0.3


def test_a_log_that_just_ends_was_stopped_and_one_that_says_so_finished(tmp_path: Path) -> None:
    stopped = finding(of(tmp_path, logs.openseq2seq()), "duration")
    assert stopped.numbers["finished"] is False
    assert not lacking(stopped.answer, "2,000", "5,000")
    end = "*** Finished training\n*** Avg time per step: 1.700s\n"
    assert finding(of(tmp_path, logs.openseq2seq(end=end)), "duration").numbers["finished"] is True


def beside(made: Diagnosis) -> str:
    """What is said of a step beside what its records give."""
    return wording(finding(made, "step_time").answer.removeprefix(step_time.explain(made.records).answer))


def test_a_change_of_pace_is_reported_with_its_place(tmp_path: Path) -> None:
    text = logs.openseq2seq(8000, seconds=lambda step: 1.2 if step <= 3000 else 1.9)
    made = of(tmp_path, text)
    found = finding(made, "step_time")
    (change,) = found.numbers["changes"]
    assert change["step"] == pytest.approx(3000, abs=10)
    assert not lacking(found.answer, f"step {change['step']:,}", "1.2 s", "1.9 s")
    steady = of(tmp_path, logs.openseq2seq(8000, seconds=lambda step: 1.2))
    assert beside(made) != beside(steady), "what such a change may be"


def test_a_restart_supersedes_the_steps_that_it_makes_again(tmp_path: Path) -> None:
    text = logs.openseq2seq(1000) + logs.openseq2seq(600, seconds=lambda step: 2.5)
    made = of(tmp_path, text)
    assert finding(made, "duration").numbers["steps"] == 600
    assert finding(made, "duration").numbers["attempts"] == 2
    assert finding(made, "step_time").numbers["median_seconds"] == 2.5


def test_the_first_line_after_a_restore_is_no_steps_time(tmp_path: Path) -> None:
    """It holds the start of the session, spread over steps of which most were made before."""
    first = logs.openseq2seq(1000)
    restored = logs.HEAD.replace("Starting training from scratch", "Restored checkpoint from model.ckpt-950")
    second = restored + logs.NCCL + logs.pace(1000, 0.9) + "".join(logs.pace(s, 1.7) for s in (1100, 1200))
    made = of(tmp_path, first + second)
    assert finding(made, "duration").numbers["steps"] == 1200
    assert finding(made, "step_time").numbers["p95_seconds"] < 2
    assert np.nanmin(made.records.steps["seconds"]) == pytest.approx(1.7)


def test_a_tail_alone_is_read(tmp_path: Path) -> None:
    text = logs.openseq2seq(2000)
    made = of(tmp_path, text[text.index("*** Global step 1500") - 40 :])
    assert finding(made, "step_time").numbers["median_seconds"] == pytest.approx(1.7)
    assert finding(made, "duration").numbers["steps"] == 2000
    assert finding(made, "network").verdict == "unknown"


def test_tags_of_mpirun_and_lines_of_others_do_no_harm(tmp_path: Path) -> None:
    lines = [f"[1,{n % 4}]<stdout>:{line}" for n, line in enumerate(logs.openseq2seq().splitlines())]
    noisy = [part for line in lines for part in (line, "\x00\xff tqdm 40%|####", "Epoch 3: 17it/s")]
    assert finding(of(tmp_path, "\n".join(noisy)), "duration").numbers["steps"] == 2000


@pytest.mark.parametrize("place", range(0, 100, 7))
def test_a_log_cut_anywhere_is_read_up_to_there(tmp_path: Path, place: int) -> None:
    data = logs.openseq2seq(1000).encode()
    made = of(tmp_path, data[: 1 + len(data) * place // 100] + b"\n*** Using horovod\n")
    assert len(made.findings) == len(QUESTIONS)
    assert not failed(made.findings)


def test_a_tail_of_another_interval_counts_its_own_steps(tmp_path: Path) -> None:
    made = of(tmp_path, "".join(logs.pace(step, 2.0) for step in range(1550, 2001, 50)))
    found = finding(made, "duration")
    assert found.numbers["training_seconds"] == pytest.approx(500 * 2.0)
    assert not lacking(found.answer, "1,501", "500 steps")


def test_what_a_log_does_not_time_is_not_zero(tmp_path: Path) -> None:
    """Only the evaluation before the first step, which is part of the start; and no checkpoint."""
    made = of(tmp_path, logs.openseq2seq(400, seconds=lambda step: 1.9 if step == 100 else 1.7))
    numbers = finding(made, "duration").numbers
    assert "evaluation_seconds" not in numbers and "checkpoint_seconds" not in numbers
    convergence = finding(made, "convergence")
    assert (convergence.verdict, convergence.numbers["evaluations_of_training"]) == ("unknown", 0)


def test_the_second_of_two_runs_in_one_log_is_reported_and_the_first_is_named(tmp_path: Path) -> None:
    """nohup appends to nohup.out."""
    first = logs.openseq2seq(3000, end="*** Finished training\n")
    made = of(tmp_path, first + logs.openseq2seq(1000, seconds=lambda step: 2.5))
    duration = finding(made, "duration")
    assert duration.numbers["attempts"] == 1
    assert duration.numbers["steps"] == 1000
    assert duration.numbers["wall_seconds"] == pytest.approx(1000 * 2.5 + 2 * 20 + 88.1)
    assert not lacking(duration.answer, "3,000 steps")
    assert [row.step for row in made.records.evaluations] == [0, 401, 802]


def test_a_finished_run_that_continues_is_one_run(tmp_path: Path) -> None:
    restored = logs.HEAD.replace("Starting training from scratch", "Restored checkpoint from model.ckpt-1000")
    more = restored + logs.pace(1000, 0.9) + "".join(logs.pace(step, 1.7) for step in (1100, 1200))
    made = of(tmp_path, logs.openseq2seq(1000, end="*** Finished training\n") + more)
    assert finding(made, "duration").numbers["attempts"] == 2
    assert finding(made, "duration").numbers["steps"] == 1200


def test_an_evaluation_right_after_a_restore_is_of_the_step_that_was_restored(tmp_path: Path) -> None:
    restored = logs.HEAD.replace("Starting training from scratch", "Restored checkpoint from model.ckpt-2000")
    more = restored + logs.evaluation(2.4, 0.3) + logs.pace(2000, 0.9) + logs.pace(2100, 1.8)
    made = of(tmp_path, logs.openseq2seq(2000) + "Killed\n" + more + logs.pace(2200, 1.7))
    assert [row.step for row in made.records.evaluations] == [0, 401, 802, 1203, 1604, 2000]
    assert finding(made, "convergence").numbers["last_eval_loss"] == 2.4
    assert finding(made, "duration").numbers["evaluation_seconds"] == pytest.approx(4 * 20)
