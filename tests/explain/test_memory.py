"""explain/memory.py: a host whose memory fills up is told before it is full."""

import numpy as np
import pytest

from dragoman.explain import duration
from dragoman.explain.memory import Growth, growth
from dragoman.measure.records import Records
from tests.explain import build
from tests.explain.altered import GB, RISING, SECONDS, with_memory


def found(records: Records) -> Growth:
    grown = growth(records)
    assert grown
    return grown


NOISE = 0.05 * GB * np.sin(SECONDS)
LEVEL = 10 * GB + NOISE


def test_a_steady_rise_is_reported_with_the_time_at_which_memory_is_full() -> None:
    records = with_memory(LEVEL, RISING)
    grown = found(records)
    assert (grown.host, grown.also) == ("host1", 0)
    assert grown.bytes_per_second == pytest.approx(0.02 * GB, rel=0.02)
    assert grown.seconds_left == pytest.approx((64 - 10 - 0.02 * 262) / 0.02, rel=0.02)
    steps = grown.numbers["full_after_steps"]
    assert steps == pytest.approx(
        grown.seconds_left * 400 / (records.steps["ended"][-1] - build.BEGAN - 10), rel=0.05
    )
    finding = duration.explain(records)
    assert str(grown) in finding.answer
    assert finding.numbers["memory_growth"]["host"] == "host1"
    assert any("host1" in advice for advice in finding.advice)


def test_a_rise_may_be_small_in_each_quarter_of_the_run() -> None:
    """3 GB of 64 in all: 4.7 %, of which no quarter has 2."""
    grown = found(with_memory(10 * GB + 0.01 * GB * SECONDS))
    assert grown.bytes_per_second == pytest.approx(0.01 * GB)


def test_two_rows_of_each_quarter_are_enough() -> None:
    """Beside the four of the first steps, which are still settling."""
    steep = 10 * GB + GB * SECONDS
    assert found(with_memory(steep[: 4 + 8])).bytes_per_second == pytest.approx(GB)
    assert growth(with_memory(steep[: 4 + 7])) is None


def test_the_host_that_is_full_first_is_named() -> None:
    grown = found(with_memory(RISING, 10 * GB + 0.05 * GB * SECONDS, LEVEL))
    assert (grown.host, grown.also) == ("host1", 1)


@pytest.mark.parametrize(
    "memory",
    [
        LEVEL,
        10 * GB + 8 * GB * (1 - np.exp(-SECONDS / 20)),  # what a program fills up at its beginning
        np.where(SECONDS < 150, 10 * GB, 20 * GB),  # another program starts
        10 * GB + 0.1 * GB * (SECONDS % 75),  # it comes and goes
        10 * GB + 0.002 * GB * SECONDS,  # less than a run's own history may take
        RISING[:6],
    ],
    ids=["level", "beginning", "other-program", "sawtooth", "little", "too-short"],
)
def test_what_is_no_lasting_rise_is_not_reported(memory: np.ndarray) -> None:
    assert growth(with_memory(memory)) is None
    assert "memory_growth" not in duration.explain(with_memory(memory)).numbers


def test_without_the_size_of_a_hosts_memory_nothing_is_reported() -> None:
    records = with_memory(RISING)
    records.facts.host_memory_bytes = []
    assert growth(records) is None
