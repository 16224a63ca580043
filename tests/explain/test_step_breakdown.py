"""explain/step_breakdown.py: phases are parts of their steps, whatever the clocks said."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.explain.step_breakdown import phases_within, settled, step_parts
from dragoman.measure.records import PHASES, Records, RunFacts
from tests.explain import build


def of(**columns: list[float]) -> Records:
    table = {name: np.array(values, dtype=float) for name, values in columns.items()}
    return Records(RunFacts(ranks=2), steps=table)


def test_waiting_for_another_ranks_checkpoint_is_taken_off_the_exchange_alone() -> None:
    """The others waited 5 s in a step that took rank 0 three seconds; 1 s of it was the link's."""
    records = of(seconds=[3, 3], forward_mean=[2, 2], exchange_mean=[1, 3.5], exchange_least=[1, 1])
    within = phases_within(records)
    assert within["forward"] == pytest.approx([2, 2])
    assert within["exchange"] == pytest.approx([1, 1])


def test_phases_that_are_longer_than_their_step_give_way_alike() -> None:
    records = of(seconds=[3, 3], forward_mean=[4, 1], backward_mean=[2, 1], exchange_mean=[0, 0])
    within = phases_within(records)
    assert (within["forward"], within["backward"]) == (pytest.approx([2, 1]), pytest.approx([1, 1]))


def test_phases_of_a_step_that_was_not_timed_stay_as_they_are() -> None:
    records = build.records(steps=40)
    records.steps["seconds"][:5] = np.nan
    for phase, values in phases_within(records).items():
        assert values[:5] == pytest.approx(records.phase(phase)[:5])
    assert set(phases_within(records)) == set(PHASES)


def test_the_first_three_steps_of_each_attempt_speak_only_where_few_others_do() -> None:
    records = build.records(steps=26)
    records.steps["attempt"] = np.array([1.0] * 13 + [2.0] * 13)
    assert np.flatnonzero(~settled(records)).tolist() == [0, 1, 2, 13, 14, 15]
    assert settled(build.records(steps=23)).sum() == 20
    assert settled(build.records(steps=22)).all()


def test_a_step_of_no_seconds_was_not_timed() -> None:
    assert settled(of(seconds=[0.0, 1.0, np.nan, -1.0, 2.0])).tolist() == [False, True, False, False, True]


def test_what_one_slow_rank_costs_is_more_than_what_the_ranks_wait_on_average() -> None:
    """Of four ranks three wait a second for the fourth: 0.75 s on average, and 1 s without it."""
    records = build.records(slow_rank=3, forward=1.0, slow_by=1.625, jitter=0.0, exchange_jitter=0.0)
    parts = step_parts(records)
    assert parts is not None and parts.straggler is not None
    assert parts.excess == pytest.approx(4 / 3 * parts.straggler, rel=1e-3)
    assert parts.excess == pytest.approx(1.0, rel=0.01)


def test_a_faster_rank_gains_no_more_than_link_and_computing_leave() -> None:
    """Twice the half second that two ranks wait on average; but only 0.8 s of 2 are neither."""
    phases = {"forward_mean": [1.2], "forward_least": [0.9], "exchange_mean": [0.8], "exchange_least": [0.3]}
    parts = step_parts(of(seconds=[2.0], **phases))
    assert parts is not None
    assert (parts.link, parts.straggler) == (pytest.approx(0.3), pytest.approx(0.5))
    assert parts.excess == pytest.approx(0.8)
    parts = step_parts(of(seconds=[3.0], **phases))
    assert parts is not None and parts.excess == pytest.approx(1.0)
