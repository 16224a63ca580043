"""Either side of each limit at which an explainer says something else."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.explain import burst_samples, checkpoint, device, learning_rate, mismatches, time_outside_steps
from dragoman.explain.counterfactual import faster_rate, without_exchange
from dragoman.explain.gpus import gpu_use
from dragoman.explain.history import divergence, rise
from dragoman.explain.step_breakdown import step_parts
from dragoman.explain.step_network import correlation
from dragoman.explain.straggler import straggler
from tests.explain import build, test_checkpoint
from tests.facts import lacking


@pytest.mark.parametrize(("slow_by", "is_slow"), [(1.04, False), (1.07, True)])
def test_a_rank_5_percent_busier_is_slow(slow_by: float, is_slow: bool) -> None:
    found = straggler(build.records(slow_rank=1, slow_by=slow_by, jitter=0.0, data=0.0))
    assert (found is not None and found.rank == 1) == is_slow


@pytest.mark.parametrize(("share", "is_told"), [(0.7, False), (0.8, True)])
def test_without_windows_a_rank_is_slow_if_it_is_the_slowest_in_three_steps_of_four(
    share: float, is_told: bool
) -> None:
    records = build.records(steps=100)
    records.windows["forward"] = np.full(len(records.windows["forward"]), np.nan)
    records.steps["backward_slowest"] = np.where(np.arange(100) < 100 * share, 2.0, np.arange(100) % 2)
    assert (straggler(records) is not None) == is_told


@pytest.mark.parametrize(("data", "is_data"), [(0.4, False), (0.6, True)])
def test_a_rank_waits_for_data_if_most_of_its_lateness_is_that(data: float, is_data: bool) -> None:
    """It is a second late: so much of it by its data, the rest by computing."""
    slow_by = 1 + (1 - data) / 0.9
    found = straggler(build.records(slow_rank=1, slow_by=slow_by, slow_data=data, jitter=0.0))
    assert found is not None and found.waits_for_data == is_data


@pytest.mark.parametrize(("factor", "told"), [(0.83, True), (0.87, False), (1.13, False), (1.17, True)])
def test_15_percent_more_or_less_is_a_mismatch(factor: float, told: bool) -> None:
    records = build.records(counted_bytes=factor * build.Run().wire_bytes)
    assert bool(mismatches.byte_mismatches(records)) == told
    for row in mismatches.mismatch_numbers(records):
        assert row["expected_share"] == pytest.approx(factor)
        assert row["bytes_per_step"] == pytest.approx(factor * build.Run().wire_bytes)


@pytest.mark.parametrize(("share", "count"), [(0.09, 0), (0.11, 1)])
def test_a_tenth_of_the_time_outside_steps_is_worth_advice(share: float, count: int) -> None:
    records = build.records(steps=100, checkpoint_seconds=0.0, evaluation_seconds=0.0, evaluate_every=10)
    training = records.steps["seconds"].sum()
    for event in records.events:
        if event.kind == "evaluation":
            event.seconds = share / (1 - share) * training / 10
    advice = time_outside_steps.outside_advice(records)
    assert len(advice) == count
    assert all("6%" in text or "5%" in text for text in advice)  # half of it


@pytest.mark.parametrize(
    ("utilisation", "watts", "is_waiting"),
    [(0.92, 120, True), (0.88, 120, False), (0.92, 130, False)],
)
def test_a_busy_gpu_under_half_its_power_is_waiting(
    utilisation: float, watts: float, is_waiting: bool
) -> None:
    records = build.records(steps=60, gpu_watts=watts)
    records.gpus["utilisation"][:] = utilisation
    use = gpu_use(records)
    assert use is not None
    assert use.is_busy_waiting == is_waiting
    assert use.is_working == (watts >= 125)
    assert (not lacking(device.explain(records).answer, f"{watts} W", "250 W")) == is_waiting


@pytest.mark.parametrize(("last", "risen"), [(2.018, 0.0), (2.022, 0.022)])
def test_a_rise_of_one_percent_counts(last: float, risen: float) -> None:
    values = np.array([2.06, 2.03, 2.01, 2.0, 2.0, 2.005, 2.01, last, last])
    assert rise(values) == pytest.approx(risen, abs=1e-9)


def test_a_rise_within_three_times_the_noise_is_none() -> None:
    noisy = np.array([3.0, 2.0, 2.3, 2.0, 2.3, 1.9, 2.3, 2.0, 2.2, 2.1])
    assert rise(noisy) == 0.0
    assert rise(np.array([3.0, 2.0, 1.0, 2.0, 3.0, 4.0])) == 2.0  # the lower of the last two


@pytest.mark.parametrize(
    ("held", "has"),
    [
        ([2.0, 1.0, 1.0, 1.19, 1.19], False),
        ([2.0, 1.0, 1.0, 1.21, 1.21], True),
        ([1.0, 1.05, 1.06, 1.09, 1.09], False),
        ([1.0, 1.05, 1.06, 1.11, 1.11], True),
        ([2.0, 1.0, 1.0, 1.0, 1.5], False),  # once is an accident
    ],
)
def test_a_loss_a_fifth_above_its_best_has_diverged(held: list[float], has: bool) -> None:
    def at(steps: np.ndarray) -> np.ndarray:
        return np.interp(steps, 1000 * np.arange(1, 6), held)

    records = build.evaluated(count=5, loss_noise=0.0, eval_loss=at, train_sample_loss=at)
    assert (divergence(records) is not None) == has


@pytest.mark.parametrize(("factor", "has"), [(1.04, False), (1.07, True)])
def test_a_loss_5_percent_above_the_first_steps_is_worse_than_nothing(factor: float, has: bool) -> None:
    records = build.records(steps=200, loss=lambda step: np.where(step == 1, 9.0, 9.0 * factor))
    assert (divergence(records) is not None) == has


@pytest.mark.parametrize(("bad", "has"), [(9, False), (10, True)])
def test_ten_bad_steps_of_the_last_twenty_are_a_divergence(bad: int, has: bool) -> None:
    records = build.records(steps=60)
    records.steps["is_bad"][-20 : -20 + bad] = 1
    assert (divergence(records) is not None) == has
    records.steps["is_bad"][:] = 0
    records.steps["is_bad"][:40] = 1
    assert divergence(records) is None, "long ago"


@pytest.mark.parametrize(("share", "is_believed"), [(0.90, True), (0.85, False)])
def test_a_probe_a_tenth_of_the_step_off_is_not_believed(share: float, is_believed: bool) -> None:
    records = build.records(jitter=0.0)
    for probe in records.probes_of("exchange"):
        probe.numbers.update(step_seconds=1.0, step_seconds_without_exchange=share)
    parts = step_parts(records)
    assert parts is not None
    found = without_exchange(records, parts)
    assert found is not None
    assert found.is_measured == is_believed
    beside = parts.data + parts.optimizer
    wanted = beside + (parts.seconds - beside) * share if is_believed else parts.seconds - parts.link
    assert found.seconds == pytest.approx(wanted)


@pytest.mark.parametrize(("off", "is_planned"), [(0.0005, True), (0.002, False)])
def test_a_rate_a_thousandth_of_the_peak_off_is_reported(off: float, is_planned: bool) -> None:
    records = build.records(steps=60)
    rates = records.steps["learning_rate"]
    peak = rates.max()
    rates[30] -= off * peak
    finding = learning_rate.explain(records)
    assert finding.numbers["planned_difference_share"] == pytest.approx(off, rel=1e-6)
    assert bool(lacking(finding.answer, f"{100 * off:.2g}%")) == is_planned


@pytest.mark.parametrize(("factor", "agrees"), [(0.94, False), (0.96, True), (1.04, True), (1.06, False)])
def test_a_checkpoint_5_percent_off_is_not_what_arithmetic_says(factor: float, agrees: bool) -> None:
    files = [{"name": "all", "bytes": int(12 * factor * build.PARAMETERS)}]
    records = build.records(steps=5, changes={"checkpoint_files": files})
    finding = checkpoint.explain_size(records)
    assert test_checkpoint.agrees(records) == agrees
    assert finding.numbers["bytes_per_parameter"] == pytest.approx(12 * factor)


def test_links_are_those_on_sale_at_least_twice_as_fast() -> None:
    assert [faster_rate(rate) for rate in (4e8, 6e8, 6e9, 2e10, 9e10)] == [1e9, 10e9, 25e9, 100e9, 180e9]


def test_a_correlation_needs_ten_points_that_vary() -> None:
    a, b = np.arange(10.0), np.array([0, 2, 1, 3, 5, 4, 6, 8, 7, 9.0])
    assert correlation(a[:9], b[:9]) is None
    assert correlation(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert correlation(a, -b) == pytest.approx(-np.corrcoef(a, b)[0, 1])
    assert correlation(a, np.ones(10)) is None


def test_the_busiest_quarter_is_found_wherever_it_lies() -> None:
    time = np.linspace(5.0, 6.0, 41)
    late = 1000.0 + np.clip((time - 5.6) / 0.2, 0, 1) * 80 + (time - 5.0) * 20
    assert burst_samples._busiest_quarter(time, late) == pytest.approx(0.85, abs=0.01)
    assert burst_samples._busiest_quarter(time, time) == pytest.approx(0.25, abs=0.001)
    assert burst_samples._busiest_quarter(time[:7], late[:7]) is None, "too few samples"
    assert burst_samples._busiest_quarter(time[:8], time[:8]) == pytest.approx(0.25, abs=0.001)
    assert burst_samples._busiest_quarter(time, -late) is None, "a counter that runs back"
