"""explain/exchange_quality.py: a way that changes the mathematics is held against the training before it."""

import numpy as np
import pytest

from dragoman.explain.convergence import explain
from dragoman.measure.records import Event, Records
from tests.explain import build

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
    assert "Gradients went" not in explain(build.evaluated(eval_loss=falling)).answer


def test_without_plain_training_before_it_says_so() -> None:
    answer = explain(run(falling, (0, DILOCO), (9000, DILOCO))).answer
    assert f"Gradients went by {DILOCO}; there is no stretch of plain training" in answer


def test_a_loss_that_goes_on_as_before_is_no_harm() -> None:
    answer = explain(run(falling, (0, PLAIN), (9000, PLAIN), (12_000, DILOCO), (15_000, DILOCO))).answer
    assert f"Gradients went by {DILOCO} since step 12,000 ({PLAIN} before)" in answer
    assert answer.endswith("no harm to see.")


@pytest.mark.parametrize("lost", [0.1, 0.5])
def test_a_loss_that_stays_behind_its_curve_is_named(lost: float) -> None:
    def hindered(step: np.ndarray) -> np.ndarray:
        return falling(step) + lost * (step > 12_000)

    assert "it learns less by this way." in explain(run(hindered, (0, PLAIN), (12_000, DILOCO))).answer
