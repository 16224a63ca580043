"""The counts themselves, on code whose cost is known."""

from typing import Any

import pytest

from tests.fake_cuda.conftest import Answer
from tests.fake_cuda.known import FREE, WAITING


@pytest.fixture(scope="module")
def found(answer: Answer) -> Any:
    return answer("tests.fake_cuda.known")


@pytest.mark.parametrize("case", WAITING)
def test_a_wait_is_seen(found: Any, case: str) -> None:
    waits, _ = found["waits"][case]
    assert waits == 1


@pytest.mark.parametrize("case", FREE)
def test_what_costs_nothing_is_not_counted(found: Any, case: str) -> None:
    assert found["free"][case] == [0, 0]


def test_launches_and_casts_are_counted_once_each(found: Any) -> None:
    assert found["operators"] == {"_to_copy": 2, "add_": 1, "mm": 1, "_foreach_mul_": 1}
    assert found["casts"] == 2


def test_a_backward_pass_runs_on_the_pretended_gpu(found: Any) -> None:
    assert found["backward"] == 2  # forward, and the gradient of one factor
    assert found["gradient"] == "cuda:0"
