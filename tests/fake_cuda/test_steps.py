"""The real step on the pretended GPU: what it leaves, waits for and launches, in every precision."""

from itertools import product
from typing import Any

import pytest

from tests.fake_cuda.conftest import Answer
from tests.fake_cuda.steps import CLIPS, OPTIMIZERS, OTHER_CARDS, PRECISIONS

# Operators launched for transformer-base, and those among them that only change a number format. A microbatch
# has 64 pairs of 10 to 39 tokens per side; gradients are clipped. On a fast card the host may take longer to
# launch kernels than the card to run them. These numbers may only fall.
_BUDGET = {
    "fp32": {"microbatch": (746, 0), "rest of a step": (14, 0)},
    "bf16": {"microbatch": (891, 81), "rest of a step": (14, 0)},
    "fp16": {"microbatch": (910, 80), "rest of a step": (23, 2)},
    "bf16 muon": {"microbatch": (891, 81), "rest of a step": (116, 6)},
}
_ALL = [f"{precision} {name} clip {clip}" for precision, name, clip in product(PRECISIONS, OPTIMIZERS, CLIPS)]
_ALL += [f"{precision} recompute" for precision in PRECISIONS]
_ALL += OTHER_CARDS


@pytest.fixture(scope="module")
def made(answer: Answer) -> Any:
    return answer("tests.fake_cuda.steps")


@pytest.mark.parametrize("way", _ALL)
def test_a_step_leaves_weights_gradients_and_moments_in_fp32_on_the_gpu(made: Any, way: str) -> None:
    left = made["left"][way]
    for what in ("weights", "gradients", "state"):
        assert left[what] == ["cuda:0 float32"], what
    assert not left["without_state"] and not left["is_bad"]


@pytest.mark.parametrize("way", _ALL)
def test_the_host_waits_once_in_a_step_and_never_in_a_microbatch(made: Any, way: str) -> None:
    waits = made["left"][way]["waits"]  # of a step of two microbatches
    assert list(waits.values()) == [1], waits
    assert "copy to the host at train/step.py" in next(iter(waits))


def test_a_step_that_is_skipped_waits_once_too_and_updates_nothing(made: Any) -> None:
    searching, bad = made["skipped"]
    assert searching == {"is_rescaled": True, "is_bad": False, "waits": 1, "updates": 0}
    assert bad == {"is_rescaled": False, "is_bad": True, "waits": 1, "updates": 0}


@pytest.mark.parametrize("way", _BUDGET)
@pytest.mark.parametrize("part", ["microbatch", "rest of a step"])
def test_launches_and_casts_stay_within_their_budget(made: Any, way: str, part: str) -> None:
    counted = made["cost"][way][part]
    for name, budget in zip(("launches", "casts"), _BUDGET[way][part], strict=True):
        assert counted[name] <= budget, f"{name}: more than before"
        assert counted[name] == budget, f"{name}: fewer than before; lower the budget to {counted[name]}"
