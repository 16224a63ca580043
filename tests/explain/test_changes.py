"""explain/changes.py: when the pace of a run changed for good, and what changed it."""

import numpy as np
import pytest

from dragoman.explain.changes import PARTS, Change, exchange_slowed, lasting_changes
from dragoman.measure.records import Records
from tests.explain import build


def slowed(records: Records, steps: slice, phase: str, seconds: float, *statistics: str) -> Records:
    """The same, with a phase that takes so much longer in some steps."""
    for statistic in statistics or ("mean", "least", "most"):
        records.steps[f"{phase}_{statistic}"][steps] += seconds
    records.steps["seconds"][steps] += seconds
    longer = np.zeros(len(records.steps["step"]))
    longer[steps] = seconds
    records.steps["ended"] += np.cumsum(longer)
    return records


def halves(seconds: np.ndarray) -> np.ndarray:
    """Medians before and after step 250."""
    return np.array([np.median(seconds[:250]), np.median(seconds[250:])])


def only_change(records: Records) -> Change:
    (change,) = lasting_changes(records)
    return change


@pytest.mark.parametrize(
    ("phase", "statistics"),
    [("exchange", ()), ("exchange", ("mean", "most")), ("data", ()), ("backward", ())],
)
def test_the_step_and_the_part_that_changed_are_named(phase: str, statistics: tuple[str, ...]) -> None:
    records = slowed(build.records(), slice(250, None), phase, 0.5, *statistics)
    change = only_change(records)
    assert abs(change.step - 251) <= 2
    (part,) = [name for name, seconds in PARTS.items() if np.diff(halves(seconds(records))) > 0.4]
    assert change.part == part
    assert part in str(change)
    assert change.part_after - change.part_before == pytest.approx(0.5, rel=0.05)
    assert change.after - change.before == pytest.approx(0.5, rel=0.05)
    assert change.into_run == pytest.approx(records.steps["ended"][249] - build.BEGAN - 10, rel=0.03)


def test_a_run_at_one_pace_has_no_change() -> None:
    for seed in range(20):
        assert not lasting_changes(build.records(seed=seed, jitter=0.3, exchange_jitter=0.5))


def test_a_hiccup_is_no_change() -> None:
    assert not lasting_changes(slowed(build.records(), slice(200, 208), "exchange", 5.0))


def test_a_link_that_recovers_changed_twice() -> None:
    changes = lasting_changes(slowed(build.records(), slice(120, 240), "exchange", 1.0))
    assert [round(change.step, -1) for change in changes] == [120, 240]
    assert changes[0].after == pytest.approx(changes[1].before)


def test_a_short_run_is_long_enough() -> None:
    assert abs(only_change(slowed(build.records(steps=60), slice(40, None), "exchange", 0.5)).step - 41) <= 1


def test_rounds_that_grow_are_no_change_but_a_slower_link_is() -> None:
    """DiLoCo exchanges once a round, and rounds are shorter at the beginning of a run."""

    def records(slower_from: int) -> Records:
        made = build.records(exchange=0.0, changes={"exchange_every": 4, "mode": "diloco"})
        step = made.steps["step"]
        ends = (step % 4 == 0) | (step < 16) | ((step < 32) & (step % 2 == 0))
        made.steps["seconds"] = made.steps["seconds"] + np.where(ends, 2.0, 0.0)
        made.steps["seconds"] += np.where(ends & (step >= slower_from), 4.0, 0.0)
        return made

    assert not lasting_changes(records(10**9))
    change = only_change(records(201))
    assert change.step == 201
    assert change.after - change.before == pytest.approx(1.0, rel=0.05)


def test_step_times_alone_tell_the_step_but_no_part() -> None:
    records = build.foreign()
    records.steps["seconds"][100:] *= 2
    change = only_change(records)
    assert (change.step, change.part) == (101, None)
    assert not lasting_changes(build.NOTHING)


def test_an_exchange_that_recovers_has_not_slowed_down() -> None:
    assert exchange_slowed(slowed(build.records(), slice(250, None), "exchange", 1.0))
    assert not exchange_slowed(slowed(build.records(), slice(120, 240), "exchange", 1.0))
    assert not exchange_slowed(build.records())
