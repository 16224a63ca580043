"""Who keeps the others waiting, by where the ranks are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dragoman.launch import stragglers
from dragoman.launch.stragglers import PHASE_ORDER, RankBeat, RankState
from dragoman.measure.phases import Phases
from tests.facts import lacking

WAITING = [RankBeat(rank, "ab"[rank // 2], 120, "exchange") for rank in range(4)]


def moved(
    *, step: int = 120, phase: str = "exchange", state: RankState = "running", silent: float = 0.0
) -> list[RankBeat]:
    """The four ranks, with rank 3 somewhere else."""
    rank_3 = replace(WAITING[3], step=step, phase=phase, state=state, silent_seconds=silent)
    return [*WAITING[:3], rank_3]


def test_nobody_is_missing_where_all_are_at_the_same_place() -> None:
    assert stragglers.missing(WAITING) == []
    assert not lacking(stragglers.sentence([], WAITING), 4, 120, "exchange", "network")
    assert not lacking(stragglers.sentence([], WAITING[:1]), 120, "exchange")
    assert stragglers.missing([]) == []


@pytest.mark.parametrize("phase", ["data", "forward", "backward"])
def test_the_rank_in_an_earlier_phase_is_missing(phase: str) -> None:
    ranks = moved(phase=phase)
    assert stragglers.missing(ranks) == [ranks[3]]
    said = stragglers.sentence([ranks[3]], ranks)
    assert not lacking(said, "rank 3", "on b", "step 120's", phase, "other 3 ranks", "exchange")


def test_the_step_counts_before_the_phase() -> None:
    ranks = moved(step=119, phase="optimizer")
    assert stragglers.missing(ranks) == [ranks[3]]
    assert not lacking(stragglers.sentence([ranks[3]], ranks), "119's optimizer", "120's exchange")


def test_all_that_are_furthest_behind_are_missing() -> None:
    ranks = [replace(beat, phase="forward") if beat.rank else beat for beat in moved(phase="backward")]
    ranks[3] = replace(ranks[3], phase="backward")
    assert stragglers.missing(ranks) == ranks[1:3]
    said = stragglers.sentence(ranks[1:3], ranks)
    assert not lacking(said, "rank 1 on a", "rank 2 on b", "forward", "backward", "exchange", "2 ranks")


@pytest.mark.parametrize("state", ["stopped", "gone", "silent"])
def test_a_rank_that_does_not_beat_is_missing_wherever_it_was(state: RankState) -> None:
    for ranks in (moved(state=state, silent=12), moved(step=121, phase="data", state=state, silent=12)):
        ranks[0] = replace(ranks[0], phase="backward")  # it may still arrive
        assert stragglers.missing(ranks) == [ranks[3]]
        said = stragglers.sentence([ranks[3]], ranks)
        assert not lacking(said, "rank 3", "on b", state, ranks[3].step, ranks[3].phase, "backward")


def test_if_no_rank_beats_none_is_said_to_wait() -> None:
    ranks = [replace(beat, state="silent", silent_seconds=10.0 + beat.rank) for beat in WAITING]
    assert stragglers.missing(ranks) == ranks
    assert not lacking(stragglers.sentence(ranks, ranks), "ranks 0 and 1 on a", "ranks 2 and 3 on b", "10 s")


def test_ranks_in_several_states_are_told_of_each() -> None:
    ranks = moved(state="gone")
    ranks[1] = replace(ranks[1], state="stopped")
    said = stragglers.sentence(stragglers.missing(ranks), ranks)
    assert not lacking(said, "rank 1 on a", "stopped", "rank 3 on b", "gone", "2 ranks")


def test_a_rank_between_steps_is_behind_those_that_began_the_step_of_that_number() -> None:
    """As the clock of phases numbers them: what follows step 119 there carries the number 120."""
    clock, places = Phases(), []
    for phase in PHASE_ORDER[1:]:
        clock.begin(phase)
        places.append(clock.position())
    clock.end_step()
    places.append(clock.position())
    beats = [RankBeat(n, "a", step, PHASE_ORDER[number + 1]) for n, (step, number) in enumerate(places)]
    assert [beat.place for beat in beats] == sorted(beat.place for beat in beats)
    ranks = moved(phase=PHASE_ORDER[0])
    assert stragglers.missing(ranks) == [ranks[3]]
