"""explain/exchange_quality.py: a way that changes the mathematics is held against the training before it."""

import re

import numpy as np
import pytest

from dragoman.explain.convergence import explain
from dragoman.measure.records import Event, Records
from tests.explain import build
from tests.explain.sentences import wording
from tests.facts import lacking

PLAIN, DILOCO = "flat all-reduce in fp32", "DiLoCo, flat all-reduce in bf16 every 16 steps"


def falling(step: np.ndarray) -> np.ndarray:
    return 1.2 + 4 * (step / 1000) ** -0.5


def run(eval_loss: object, *ways: tuple[int, str]) -> Records:
    """A run in DiLoCo at its end, begun anew by these ways after these steps."""
    records = build.evaluated(eval_loss=eval_loss)
    facts = {"mode": "diloco", "wire": "bf16", "exchange_every": 16}
    records.facts = records.facts.model_copy(update=facts)
    records.events = [
        Event(time=0.0, attempt=number, step=step, kind="exchange", detail=way)
        for number, (step, way) in enumerate(ways)
    ]
    return records


def test_plain_training_needs_no_word() -> None:
    assert lacking(explain(build.evaluated(eval_loss=falling)).answer, PLAIN)


def test_without_plain_training_before_it_says_so() -> None:
    answer = explain(run(falling, (0, DILOCO), (9000, DILOCO))).answer
    assert not lacking(answer, DILOCO, "sync.mode=allreduce")
    assert lacking(answer, PLAIN)


def held_against(eval_loss: object, *ways: tuple[int, str]) -> tuple[float, float, str]:
    """The loss, what the curve before leads to expect, and how that is put."""
    answer = explain(run(eval_loss, *ways)).answer
    note = answer[answer.rindex(DILOCO) :]
    assert not lacking(note, "step 12,000", PLAIN)
    loss, expected, _ = (float(figure) for figure in re.findall(r"\b\d\.\d{3}\b", note))
    return loss, expected, wording(note)


@pytest.mark.parametrize("lost", [0.2, 0.5])
def test_a_loss_is_held_against_the_curve_of_plain_training(lost: float) -> None:
    def hindered(step: np.ndarray) -> np.ndarray:
        return falling(step) + lost * (step > 12_000)

    as_before = held_against(falling, (0, PLAIN), (9000, PLAIN), (12_000, DILOCO), (15_000, DILOCO))
    behind = held_against(hindered, (0, PLAIN), (12_000, DILOCO))
    assert as_before[0] == pytest.approx(as_before[1], abs=0.02)
    assert behind[0] - behind[1] == pytest.approx(lost, abs=0.03)
    assert as_before[2] != behind[2]
