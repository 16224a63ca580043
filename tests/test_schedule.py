"""The learning rate, against the formulas and the shapes they promise."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import Train
from dragoman.schedule import learning_rate

WITH_PEAK = ["inverse_sqrt", "linear", "cosine", "constant"]


def rates(config: Train, updates: int, width: int = 512) -> list[float]:
    return [learning_rate(step, config, width) for step in range(updates)]


def test_the_transformer_schedule_peaks_where_the_public_runs_do() -> None:
    config = Train(schedule="transformer", rate=2.0, warmup_steps=8_000)
    curve = rates(config, 20_000)
    assert curve.index(max(curve)) == 7_999  # the 8,000th update
    assert max(curve) == pytest.approx(2.0 * 512**-0.5 * 8_000**-0.5)
    assert max(curve) == pytest.approx(9.88e-4, abs=5e-7)


@given(st.integers(0, 300_000), st.integers(1, 20_000), st.integers(8, 2_048), st.floats(0.01, 10))
def test_the_transformer_schedule_is_its_formula(step: int, warmup: int, width: int, factor: float) -> None:
    config = Train(schedule="transformer", rate=factor, warmup_steps=warmup)
    formula = factor * width**-0.5 * min((step + 1) * warmup**-1.5, (step + 1) ** -0.5)
    assert learning_rate(step, config, width) == pytest.approx(formula)


@pytest.mark.parametrize("schedule", WITH_PEAK)
def test_the_rate_rises_in_a_straight_line_to_its_peak(schedule: str) -> None:
    config = Train(schedule=schedule, rate=0.5, warmup_steps=10, steps=50)  # type: ignore[arg-type]
    assert rates(config, 10) == pytest.approx([0.05 * update for update in range(1, 11)])
    assert max(rates(config, 50)) == pytest.approx(0.5)


@pytest.mark.parametrize("schedule", WITH_PEAK)
def test_without_warm_up_the_first_update_is_near_the_peak(schedule: str) -> None:
    config = Train(schedule=schedule, rate=0.5, warmup_steps=0, steps=1_000)  # type: ignore[arg-type]
    assert learning_rate(0, config, 512) == pytest.approx(0.5, rel=2e-3)


@pytest.mark.parametrize("schedule", ["transformer", "inverse_sqrt"])
def test_without_warm_up_the_rate_falls_with_the_root_of_the_update(schedule: str) -> None:
    config = Train(schedule=schedule, rate=0.5, warmup_steps=0)  # type: ignore[arg-type]
    assert [rate / 0.5 for rate in rates(config, 9, width=1)[::4]] == pytest.approx([1, 5**-0.5, 1 / 3])


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_warm_up_of_all_steps_but_one_still_ends_at_nothing(schedule: str) -> None:
    config = Train(schedule=schedule, rate=0.5, warmup_steps=10, steps=11)  # type: ignore[arg-type]
    assert rates(config, 11)[-2:] == pytest.approx([0.5, 0.0])


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_linear_and_cosine_end_at_nothing(schedule: str) -> None:
    config = Train(schedule=schedule, rate=0.5, warmup_steps=10, steps=110)  # type: ignore[arg-type]
    assert learning_rate(109, config, 512) == pytest.approx(0, abs=1e-12)
    assert learning_rate(59, config, 512) == pytest.approx(0.25)  # half way
    assert learning_rate(500, config, 512) == pytest.approx(0, abs=1e-12)


def test_the_others_have_their_shapes() -> None:
    constant, root, cosine = (
        Train(schedule=name, rate=0.5, warmup_steps=10, steps=110)  # type: ignore[arg-type]
        for name in ("constant", "inverse_sqrt", "cosine")
    )
    assert learning_rate(99, constant, 512) == 0.5
    assert learning_rate(39, root, 512) == pytest.approx(0.25)  # four times the warm-up: half
    assert learning_rate(34, cosine, 512) == pytest.approx(0.25 * (1 + math.cos(math.pi / 4)))


@given(st.sampled_from(["transformer", *WITH_PEAK]), st.integers(0, 50), st.integers(51, 500))
def test_no_schedule_jumps_or_goes_below_nothing(schedule: str, warmup: int, steps: int) -> None:
    config = Train(schedule=schedule, rate=1.0, warmup_steps=warmup, steps=steps)  # type: ignore[arg-type]
    curve = rates(config, steps, width=1)
    assert min(curve) >= -1e-12
    steepest = max(1 / max(1, warmup), math.pi / (steps - warmup), 0.3) + 1e-9
    assert all(abs(after - before) <= steepest for before, after in zip(curve, curve[1:], strict=False))
