"""Which of two runs has the faster steps, and in which phases."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from dragoman.explain.step_breakdown import StepParts, mean, settled, step_parts
from dragoman.measure.records import Records

Side = Literal["a", "b"]
SAME_TOKENS = 0.02  # steps whose tokens differ by less are compared step by step
SAME_SPEED = 0.02
PER_TOKENS = 1000
# The causes that an exchange is split into where the waits of the ranks tell them apart.
OVER_LINK, FOR_SLOWER_RANK = "exchange over the link", "waiting for a slower rank"


class PhaseSpeed(BaseModel):
    """Mean seconds of a phase over ranks and steps; None if a run did not record it."""

    phase: str
    a_seconds: float | None = None
    b_seconds: float | None = None
    difference_share: float | None = None  # of the extra time of the slower run; negative: it was faster here


class Speed(BaseModel):
    per: str = "step"  # or "1,000 target tokens", if the runs' steps differ in size
    a_step_seconds: float | None = None
    b_step_seconds: float | None = None
    a_tokens_per_second: float | None = None
    b_tokens_per_second: float | None = None
    slower: Side | None = None  # None: about the same, or not known
    times_slower: float | None = None
    phases: list[PhaseSpeed] = []


def compare_speed(a: Records, b: Records) -> Speed:
    """Compares the time of a step, or of 1,000 tokens if steps differ in size, as a whole and by phase."""
    parts, tokens = (step_parts(a), step_parts(b)), (_tokens(a), _tokens(b))
    rates = [t / p.seconds if p and t else None for p, t in zip(parts, tokens, strict=True)]
    speed = Speed(
        a_step_seconds=parts[0].seconds if parts[0] else None,
        b_step_seconds=parts[1].seconds if parts[1] else None,
        a_tokens_per_second=rates[0],
        b_tokens_per_second=rates[1],
    )
    if not parts[0] or not parts[1]:
        return speed
    scales = (1.0, 1.0)
    if tokens[0] and tokens[1] and abs(tokens[0] / tokens[1] - 1) > SAME_TOKENS:
        speed.per = f"{PER_TOKENS:,} target tokens"
        scales = (PER_TOKENS / tokens[0], PER_TOKENS / tokens[1])
    times = parts[0].seconds * scales[0], parts[1].seconds * scales[1]
    slower: Side = "a" if times[0] > times[1] else "b"
    if max(times) > (1 + SAME_SPEED) * min(times):
        speed.slower, speed.times_slower = slower, max(times) / min(times)
    speed.phases = _phases(_seconds(parts[0], scales[0]), _seconds(parts[1], scales[1]), slower)
    return speed


def _tokens(records: Records) -> float | None:
    """Returns the target tokens of a step."""
    return mean(records.steps["target_tokens"][settled(records)]) or None


def _seconds(parts: StepParts, scale: float) -> dict[str, float | None]:
    """Returns seconds by phase, adding up to the step; the exchange by cause, if the ranks' waits show it."""
    phases = {"data": parts.data, "forward": parts.forward, "backward": parts.backward}
    if parts.link is None or parts.straggler is None:
        phases["exchange"] = parts.exchange
    else:
        phases |= {OVER_LINK: parts.link, FOR_SLOWER_RANK: parts.straggler}
    phases["optimizer"] = parts.optimizer
    known = [seconds for seconds in phases.values() if seconds is not None]
    if known:
        phases["other"] = parts.seconds - sum(known)
    phases["whole step"] = parts.seconds
    return {name: None if seconds is None else seconds * scale for name, seconds in phases.items()}


def _phases(a: dict[str, float | None], b: dict[str, float | None], slower: Side) -> list[PhaseSpeed]:
    if ("exchange" in a) != ("exchange" in b):  # only one run tells the causes apart
        a, b = _joined(a), _joined(b)
    lost = abs((a["whole step"] or 0.0) - (b["whole step"] or 0.0))
    rows = []
    for phase in [*(name for name in a if name != "whole step"), "whole step"]:
        mine, other = a.get(phase), b.get(phase)
        row = PhaseSpeed(phase=phase, a_seconds=mine, b_seconds=other)
        if mine is not None and other is not None and lost > 0:
            share = (mine - other if slower == "a" else other - mine) / lost
            row.difference_share = round(share, 4) + 0.0  # no -0.0
        if mine is not None or other is not None:
            rows.append(row)
    return rows


def _joined(phases: dict[str, float | None]) -> dict[str, float | None]:
    """Returns the phases with the exchange as a single one."""
    causes = {OVER_LINK, FOR_SLOWER_RANK} & set(phases)
    known = [seconds for name in causes if (seconds := phases[name]) is not None]
    rest = {name: seconds for name, seconds in phases.items() if name not in causes}
    return {"exchange": sum(known), **rest} if causes else rest
