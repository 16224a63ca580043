"""Compares two runs: what differs, which was faster and in which phase, and which is better."""

from __future__ import annotations

from pydantic import BaseModel

from dragoman.explain.compare_facts import FactDifference, facts_and_settings
from dragoman.explain.compare_quality import ComparedScore, scores
from dragoman.explain.compare_speed import PhaseSpeed, Speed, compare_speed
from dragoman.explain.compare_why import why
from dragoman.explain.placement import longest
from dragoman.explain.time_outside_steps import event_seconds
from dragoman.measure.records import Records


class RunComparison(BaseModel):
    schema_version: int = 1
    a: str  # names
    b: str
    machines: list[FactDifference]  # ranks, hosts, device, data
    settings: list[FactDifference]
    speed: Speed
    outside_steps: list[PhaseSpeed]  # seconds of the whole run in evaluation, checkpoints and start-up
    quality: list[ComparedScore]
    why: list[str]  # why the slower run was slower, in words


def compare(a: Records, b: Records) -> RunComparison:
    """Compares facts, speed and scores; if ranks or hosts changed, by the longest-running configuration."""
    names = _names(a, b)
    placed = longest(a), longest(b)
    judged = placed[0].records, placed[1].records
    speed = compare_speed(*judged)
    facts, settings = facts_and_settings((a, judged[0]), (b, judged[1]))
    outside = [_outside(kind, a, b) for kind in ("startup", "evaluation", "checkpoint")]
    return RunComparison(
        a=names[0],
        b=names[1],
        machines=facts,
        settings=settings,
        speed=speed,
        outside_steps=[row for row in outside if row.a_seconds or row.b_seconds],
        quality=scores(a, b),
        why=[
            *why(speed, names, *judged),
            *(f"{name}: {side.others}" for name, side in zip(names, placed, strict=True) if side.others),
        ],
    )


def _names(a: Records, b: Records) -> tuple[str, str]:
    first, second = a.facts.name or "the first run", b.facts.name or "the second run"
    return (f"{first} (first)", f"{second} (second)") if first == second else (first, second)


def _outside(kind: str, a: Records, b: Records) -> PhaseSpeed:
    return PhaseSpeed(phase=kind, a_seconds=event_seconds(a, kind), b_seconds=event_seconds(b, kind))
