"""Real searches on the pretended GPU: the host waits once per token, in every way of searching."""

from typing import Any

import pytest

from tests.fake_cuda.conftest import Answer
from tests.fake_cuda.searches import LENGTHS, WAYS

# Operators launched per token with two decoder layers. These numbers may only fall.
_BUDGET = {"greedy": 60, "beam": 66, "beam without repeats": 67, "sample": 65}


@pytest.fixture(scope="module")
def costs(answer: Answer) -> Any:
    return answer("tests.fake_cuda.searches")


@pytest.mark.parametrize("way", WAYS)
def test_the_host_waits_once_per_token(costs: Any, way: str) -> None:
    waits = costs[way]["waits"]
    assert list(waits.values()) == [1], waits
    assert costs[way]["waits in all"] == LENGTHS[1], "encoding the sources waits too"


@pytest.mark.parametrize("way", WAYS)
def test_launches_stay_within_their_budget(costs: Any, way: str) -> None:
    launches = costs[way]["launches"]
    assert launches <= _BUDGET[way], "more than before"
    assert launches == _BUDGET[way], f"fewer than before; lower the budget to {launches}"
