"""The lines follow the format strings in the source of fairseq 0.12.2; they are not of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dragoman.foreign.answers import Diagnosis, diagnose
from dragoman.foreign.facts import Given
from tests.facts import lacking
from tests.foreign import logs

CONFIG = (
    "{'_name': None, 'common': {'_name': None, 'fp16': True, 'bf16': False, 'log_interval': 100}, "
    "'distributed_training': {'distributed_world_size': 4}, 'dataset': {'max_tokens': 4096}, "
    "'optimization': {'max_update': 1000, 'update_freq': [2], 'lr': [0.0005]}, "
    "'model': {'encoder_embed_dim': 512, 'encoder_layers': 6, 'decoder_layers': 6}, "
    "'lr_scheduler': {'_name': 'inverse_sqrt', 'warmup_updates': 400}}"
)


def stamp(second: int) -> str:
    return f"2021-03-04 {10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def values(step: int, as_json: bool) -> str:
    named = {"loss": 9 - step / 200, "ppl": 200.5, "wps": 21000, "ups": 0.5, "wpb": 12000.5, "bsz": 480}
    named |= {
        "num_updates": step,
        "lr": 0.0005 * step / 400,
        "gnorm": 1.5,
        "train_wall": 198,
        "wall": 2 * step,
    }
    if as_json:
        return json.dumps({"epoch": 1} | {name: str(value) for name, value in named.items()})
    return f"epoch 001: {step:6} / 5000 " + ", ".join(f"{name}={value}" for name, value in named.items())


def log(as_json: bool = False, end: str = "done training in 2010.5 seconds") -> str:
    lines = [f"{stamp(0)} | INFO | fairseq_cli.train | {CONFIG}"]
    lines.append(
        f"{stamp(1)} | INFO | fairseq_cli.train | num. shared model params: 60,880,896 (num. trained: 1)"
    )
    lines.append(
        f"{stamp(1)} | INFO | fairseq.data.data_utils | loaded 4,500,966 examples from: bin/train.en-de.en"
    )
    lines.append(f"{stamp(2)} | INFO | fairseq_cli.train | training on 4 devices (GPUs/TPUs)")
    for step in range(100, 1001, 100):
        lines.append(f"{stamp(10 + 2 * step)} | INFO | train_inner | {values(step, as_json)}")
        if step % 200 == 0:
            valid = f"epoch 001 | valid on 'valid' subset | nll_loss {3 + 100 / step} | ppl 9 | bleu 20.5"
            lines.append(f"{stamp(15 + 2 * step)} | INFO | valid | {valid} | num_updates {step}")
    lines.append(f"{stamp(2020)} | INFO | fairseq_cli.train | {end}")
    return "\n".join(lines) + "\n"


def numbers(made: Diagnosis) -> dict[str, dict[str, float]]:
    return {finding.id: finding.numbers for finding in made.findings}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_fairseq_log_gives_its_figures(tmp_path: Path, as_json: bool) -> None:
    made = diagnose([logs.written(tmp_path, log(as_json))], Given(machines=2, link="1gbit"))
    found = numbers(made)
    assert found["step_time"]["mean_seconds"] == pytest.approx(2.0)
    assert found["step_time"]["tokens_per_step"] == 12000.5
    assert found["duration"]["steps"] == 1000
    assert found["duration"]["finished"] is True
    assert found["duration"]["wall_seconds"] == 2020
    assert found["convergence"]["last_eval_loss"] == pytest.approx(3.1)
    assert found["convergence"]["best_bleu"] == 20.5
    assert found["learning_rate"]["peak"] == pytest.approx(0.00125)
    assert found["training_set"]["lines"] == 4_500_966


def test_gradients_of_an_fp16_model_are_exchanged_in_two_bytes(tmp_path: Path) -> None:
    made = diagnose([logs.written(tmp_path, log())], Given(machines=2))
    assert numbers(made)["network"]["expected_bytes_per_step_per_host"] == pytest.approx(
        365.3e6 / 2, rel=1e-3
    )


def test_a_log_without_its_last_line_was_not_finished(tmp_path: Path) -> None:
    made = diagnose([logs.written(tmp_path, log(end="begin save checkpoint"))], Given())
    assert numbers(made)["duration"]["finished"] is False


def test_hydra_writes_its_own_times(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^(\S+ \S+) \| INFO \| (\S+) \| ", r"[\1,123][\2][INFO] - ", log())
    found = numbers(diagnose([logs.written(tmp_path, text)], Given()))
    assert found["step_time"]["mean_seconds"] == pytest.approx(2.0)
    assert found["duration"]["finished"] is True


OLD = """\
Namespace(arch='transformer', fp16=True, max_update=5000, update_freq=[1], warmup_updates=4000)
| num. model params: 60880896 (num. trained: 60880896)
| training on 4 GPUs
"""


def old(step: int) -> str:
    """Up to 0.9: no times, updates per second in whole numbers."""
    line = f"| epoch 001:    {step} / 5000 loss=9.1, nll_loss=8.5, wps=3500, ups=2, wpb=3600, bsz=120"
    return f"{line}, num_updates={step}, lr=0.0001, wall={step * 6 // 10}, train_wall={step // 2}\n"


def test_an_old_log_is_timed_by_its_wall_clock(tmp_path: Path) -> None:
    valid = "| epoch 001 | valid on 'valid' subset | loss 8.1 | nll_loss 7.2 | ppl 150.1 | num_updates 2000\n"
    text = OLD + "".join(map(old, range(100, 2001, 100))) + valid + "| done training in 1205.0 seconds\n"
    made = diagnose([logs.written(tmp_path, text)], Given(machines=2))
    found = numbers(made)
    assert found["step_time"]["mean_seconds"] == pytest.approx(0.6)
    assert found["convergence"]["last_eval_loss"] == 7.2
    assert found["duration"]["finished"] is True
    assert made.records.facts.ranks == 4
    assert made.records.facts.gradient_bytes == 2 * 60_880_896  # fp16=True, in a Namespace


def test_a_tail_counts_its_own_steps(tmp_path: Path) -> None:
    lines = [line for line in log().splitlines(keepends=True) if "train_inner" in line]
    made = diagnose([logs.written(tmp_path, "".join(lines[5:]))], Given())
    assert numbers(made)["duration"]["training_seconds"] == pytest.approx(500 * 2.0)
    answer = next(finding for finding in made.findings if finding.id == "duration").answer
    assert not lacking(answer, 501, "500 steps")


def test_schedule_batch_and_lines_are_in_the_log(tmp_path: Path) -> None:
    made = diagnose([logs.written(tmp_path, log())], Given(machines=2, link="1gbit", gpu="V100"))
    found = {finding.id: finding for finding in made.findings}
    assert found["learning_rate"].numbers["warmup_steps"] == 400
    assert made.records.facts.settings["train.schedule"] == "inverse_sqrt"
    assert not lacking(found["learning_rate"].answer, "400")
    assert made.records.facts.origins["pairs_per_rank"] == "estimated"
    assert not lacking(found["step_time"].answer, "8 microbatches", 2, "60 pairs")
    assert not any("prepare" in line for line in found["training_set"].evidence)
    text = OLD + "| bin train 4500966 examples\n" + old(100)
    assert numbers(diagnose([logs.written(tmp_path, text)], Given()))["training_set"]["lines"] == 4_500_966


def test_of_several_validation_sets_the_first_is_the_curve(tmp_path: Path) -> None:
    text = log()
    second = re.findall(r"(?m)^.*valid on 'valid' subset.*$", text)
    for line in second:
        text = text.replace(
            line, line + "\n" + re.sub(r"nll_loss \S+", "nll_loss 7.5", line).replace("'valid'", "'valid1'")
        )
    found = numbers(diagnose([logs.written(tmp_path, text)], Given()))["convergence"]
    assert (found["evaluations"], found["last_eval_loss"]) == (5, pytest.approx(3.1))
