"""The expectations in gpu.md are what the roofline says of today's code."""

from pathlib import Path

import pytest

from benchmarks import roofline
from benchmarks.roofline import CARDS, Operator, StepCost
from tests import fake_cuda

PAGE = Path(__file__).parents[2] / "benchmarks" / "gpu.md"
A100 = CARDS[2]


@pytest.fixture(scope="module")
def costs() -> dict[str, StepCost]:
    return roofline.read(fake_cuda.run("benchmarks.roofline", "--inside"))


def test_the_page_has_the_table_that_the_script_prints(costs: dict[str, StepCost]) -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    header, *rows = roofline.table(costs)
    start = lines.index(header)
    assert lines[start + 1 : start + 1 + len(rows)] == rows, "run python -m benchmarks.roofline"


def test_the_bound_lies_between_bare_products_and_a_dozen_times_their_time(
    costs: dict[str, StepCost],
) -> None:
    cost = costs[A100.name]
    flops = sum(operator.flops for operator in cost.operators)
    # 0.37 GFLOP per token (cost/flops.py), and attention in whole tiles.
    assert 0.36e9 < flops / cost.target_tokens < 0.5e9
    assert cost.rate(A100) * flops / cost.target_tokens < A100.flops
    assert cost.launches < len(cost.operators)


def test_an_operator_takes_the_longest_of_arithmetic_memory_and_launch() -> None:
    assert Operator("mm", A100.flops, 0, False).seconds(A100) == pytest.approx(1)
    assert Operator("add", 0, 2 * A100.bytes, False).seconds(A100) == pytest.approx(2)
    assert Operator("add", 0, 8, False).seconds(A100) == roofline.LEAST_SECONDS
