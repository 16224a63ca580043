"""Which ranks the others wait for, by where each of them is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman import format_units
from dragoman.measure.records import PHASES

RankState = Literal["running", "stopped", "gone", "silent"]

BETWEEN_STEPS = "between steps"
# Between steps (evaluation, checkpoint) comes first: measure/phases.py counts a step as soon as it ends, so
# the step that a rank names there has yet to begin.
PHASE_ORDER = (BETWEEN_STEPS, *PHASES)


@dataclass(frozen=True)
class RankBeat:
    """What a rank last told of itself, or its host's agent of it."""

    rank: int
    host: str
    step: int
    phase: str  # one of PHASE_ORDER
    silent_seconds: float = 0.0  # since its last beat
    state: RankState = "running"

    @property
    def place(self) -> tuple[int, int]:
        """Sorts ranks by how far they have come."""
        return self.step, PHASE_ORDER.index(self.phase)


def missing(ranks: Sequence[RankBeat]) -> list[RankBeat]:
    """The ranks that the others wait for: those that no longer beat, or else those that are furthest behind.

    Empty if all beat and are at the same place: then it is the network between them that fails.
    """
    if not_beating := [beat for beat in ranks if beat.state != "running"]:
        return not_beating
    places = {beat.place for beat in ranks}
    return [beat for beat in ranks if len(places) > 1 and beat.place == min(places)]


def sentence(absent: Sequence[RankBeat], ranks: Sequence[RankBeat]) -> str:
    """Who did not arrive, and where the others wait. `absent` is what `missing` says of all these ranks."""
    if not absent and len(ranks) == 1:
        return f"the only rank is {_where(ranks[0])} and waits for no other"
    if not absent:
        where = _where(ranks[0])
        return (
            f"all {len(ranks)} ranks are {where}: none is behind, so the network between them may have failed"
        )
    alike: dict[tuple[RankState, tuple[int, int]], list[RankBeat]] = {}
    for beat in absent:
        alike.setdefault((beat.state, beat.place), []).append(beat)
    told = ", ".join(_absence(beats) for beats in alike.values())
    steps = {beat.step for beat in absent}
    return f"{told}; {_waiting([beat for beat in ranks if beat not in absent], steps)}"


def _absence(beats: Sequence[RankBeat]) -> str:
    """What became of ranks in one state at one place."""
    is_one, where = len(beats) == 1, _where(beats[0])
    it_is, it_was = ("it is", "it was") if is_one else ("they are", "they were")
    silent = format_units.seconds(min(beat.silent_seconds for beat in beats))
    became = {
        "running": f"did not arrive: {it_is} {where}",
        "stopped": f"{'is' if is_one else 'are'} stopped {where}",
        "gone": f"{'is' if is_one else 'are'} gone: {it_was} last {where}",
        "silent": f"{'has' if is_one else 'have'} been silent for {silent}: {it_was} last {where}",
    }
    return f"{_names(beats)} {became[beats[0].state]}"


def _waiting(others: Sequence[RankBeat], steps_of_absent: set[int]) -> str:
    if not others:
        return "no other rank is left"
    is_one = len(others) == 1
    who, wait = ("the other rank", "waits") if is_one else (f"the other {len(others)} ranks", "wait")
    first, last = min(others, key=lambda beat: beat.place), max(others, key=lambda beat: beat.place)
    if first.place != last.place:
        return f"{who} are anywhere from {_whose(first)} to {_whose(last)}"
    if {last.step} == steps_of_absent and last.phase != BETWEEN_STEPS:
        return f"{who} {wait} in its {last.phase}"
    return f"{who} {wait} {_where(last)}"


def _where(beat: RankBeat) -> str:
    if beat.phase == BETWEEN_STEPS:
        return f"between steps, before step {beat.step:,}"
    return f"in {_whose(beat)}"


def _whose(beat: RankBeat) -> str:
    return f"step {beat.step:,}'s {'beginning' if beat.phase == BETWEEN_STEPS else beat.phase}"


def _names(beats: Sequence[RankBeat]) -> str:
    """rank 1 on a and ranks 2 and 3 on b"""
    by_host: dict[str, list[str]] = {}
    for beat in beats:
        by_host.setdefault(beat.host, []).append(str(beat.rank))
    return format_units.hosts(
        [
            f"{'rank' if len(ranks) == 1 else 'ranks'} {format_units.hosts(ranks)} on {host}"
            for host, ranks in by_host.items()
        ]
    )
