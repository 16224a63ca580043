"""benchmarks/turns.py: what a cause costs is found by taking it away and putting it back."""

import numpy as np
import pytest

from benchmarks.causes import Setting
from benchmarks.turns import Turn, saved
from dragoman.measure.records import Records, RunFacts

TURN_STEPS = 24


def trained(seconds: np.ndarray, between: np.ndarray | float = 0.0) -> Records:
    """Steps of these seconds, with more time after some of them."""
    ended = np.cumsum(seconds + between) - between
    return Records(
        RunFacts(), steps={"step": np.arange(1, len(seconds) + 1), "seconds": seconds, "ended": ended}
    )


def turns_of(records: Records, reliefs: list[str | None]) -> list[Turn]:
    ends = records.steps["ended"][TURN_STEPS - 1 :: TURN_STEPS]
    begins = np.concatenate(([0.0], ends[:-1]))
    return [Turn(*turn) for turn in zip(reliefs, begins, ends, strict=True)]


def costs(reliefs: list[str | None], **parts: float) -> np.ndarray:
    """A step's seconds: 0.2 of computing, and each cause's where it is not away."""
    turns = [0.2 + sum(cost for cause, cost in parts.items() if cause != away) for away in reliefs]
    return np.repeat(turns, TURN_STEPS)


def test_each_of_two_causes_has_its_own_share() -> None:
    reliefs = [None, "link", None, "host", None, "link", None, "host", None]
    records = trained(costs(reliefs, link=0.2, host=0.1))
    assert saved(records, turns_of(records, reliefs)) == pytest.approx({"link": 0.4, "host": 0.2})


def test_a_machine_that_slows_down_meanwhile_makes_no_difference() -> None:
    reliefs = [None, "link", None, "link", None, "link", None]
    seconds = costs(reliefs, link=0.2)
    records = trained(seconds * np.linspace(1.0, 1.3, len(seconds)))
    assert saved(records, turns_of(records, reliefs))["link"] == pytest.approx(0.5, abs=0.01)


def test_what_comes_between_steps_counts_over_whole_periods() -> None:
    """A checkpoint after every fourth step takes as long as the four."""
    reliefs = [None, "disk", None]
    seconds = costs(reliefs)
    is_last = np.arange(1, len(seconds) + 1) % 4 == 0
    is_hindered = np.repeat([away is None for away in reliefs], TURN_STEPS)
    records = trained(seconds, np.where(is_last & is_hindered, 0.8, 0.0))
    assert saved(records, turns_of(records, reliefs), period=4)["disk"] == pytest.approx(0.5)


def test_a_cause_is_taken_away_by_its_name() -> None:
    where = Setting(hosts=2, rate="1mbit", hindrances=("slow-reader=0.1", "slow-disk=5"))
    assert where.without("rate").rate is None
    assert where.without("rate+slow-reader") == Setting(hosts=2, hindrances=("slow-disk=5",))
    assert where.without("slow-disk").hindrances == ("slow-reader=0.1",)
    with pytest.raises(AssertionError, match="growing-memory"):
        where.without("growing-memory")
