"""Why the slower run was slower: how much each phase accounts for, and what differs behind it."""

from __future__ import annotations

from collections.abc import Callable

from dragoman import format_units
from dragoman.explain import cores
from dragoman.explain.compare_speed import FOR_SLOWER_RANK, OVER_LINK, PhaseSpeed, Speed
from dragoman.explain.counterfactual import link_rate
from dragoman.explain.device import peak_flops
from dragoman.explain.step_breakdown import step_parts
from dragoman.explain.straggler import straggler
from dragoman.explain.traffic import sent_per_step
from dragoman.measure.records import Records

WORTH_SAYING = 0.10  # share of the difference
_PHASE_WORDS = {
    "data": "waiting for data",
    "forward": "the forward pass",
    "backward": "the backward pass",
    "exchange": "the exchange",
    OVER_LINK: "the exchange over the link",
    FOR_SLOWER_RANK: "waiting for a slower rank",
    "optimizer": "clipping and the optimizer",
    "other": "time outside all phases",
}


def why(speed: Speed, names: tuple[str, str], a: Records, b: Records) -> list[str]:
    """Returns sentences on why the slower run was slower, the most important first."""
    if speed.slower is None:
        return [_no_difference(speed)]
    slow, fast = (a, b) if speed.slower == "a" else (b, a)
    slow_name, fast_name = names if speed.slower == "a" else names[::-1]
    whole = next(row for row in speed.phases if row.phase == "whole step")
    sentences = [
        f"{slow_name} was slower: {_against(whole, speed)} per {speed.per}, {speed.times_slower:.2f} x "
        f"as long as {fast_name}."
    ]
    parts = [(row, row.difference_share or 0.0) for row in speed.phases if row is not whole]
    parts.sort(key=lambda part: -part[1])
    if not any(row.difference_share for row, _ in parts):
        sentences.append("Why is not known, because the phases of a step were not recorded in both runs.")
    for row, share in parts:
        if abs(share) < WORTH_SAYING:
            continue
        lost = f"accounts for {format_units.share(share)} of the difference"
        won = f"was faster, by {format_units.share(-share)} of the difference"
        phase = _capital(_PHASE_WORDS[row.phase])
        sentences.append(f"{phase} {lost if share > 0 else won}: {_against(row, speed)}.")
        behind = _behind(row.phase, slow, fast, slow_name) if share > 0 else ""
        if behind and behind not in sentences:
            sentences.append(behind)
    return sentences


def _no_difference(speed: Speed) -> str:
    if speed.a_step_seconds is None or speed.b_step_seconds is None:
        return "Which was slower is not known, because steps were not timed in both runs."
    a, b = format_units.seconds(speed.a_step_seconds), format_units.seconds(speed.b_step_seconds)
    pair = f"{a} and {b} per step"
    if speed.per != "step":
        pair += ", with steps of different sizes"
    return f"Both were about equally fast: {pair}."


def _against(row: PhaseSpeed, speed: Speed) -> str:
    """Returns both runs' seconds, the slower run's first."""
    pair = [row.a_seconds or 0.0, row.b_seconds or 0.0]
    slow, fast = pair if speed.slower == "a" else pair[::-1]
    return f"{format_units.seconds(slow)} against {format_units.seconds(fast)}"


def _behind(phase: str, slow: Records, fast: Records, slow_name: str) -> str:
    """Names measured facts that differ and may explain the lost time; empty, rather than a guess, if none."""
    if phase == FOR_SLOWER_RANK:
        late = straggler(slow)
        return f"{slow_name} waited for {late}." if late else ""
    if phase.startswith("exchange"):
        facts: list[tuple[str, Callable[[Records], float | None], Callable[[float], str]]] = [
            ("the link was measured at", link_rate, format_units.rate),
            ("each host sent per step", sent_per_step, format_units.size),
            ("hosts:", lambda records: len(records.facts.hosts) or None, format_units.count),
            ("ranks:", lambda records: records.facts.ranks, format_units.count),
        ]
    elif shared := _shared_cores(slow, fast, slow_name):
        return shared
    elif phase in ("forward", "backward"):
        facts = [
            ("the devices' measured peak was", peak_flops, format_units.flops),
            ("parameters:", _parameters, format_units.count),
        ]
    else:
        return ""
    reasons = []
    for what, read, write in facts:
        mine, other = read(slow), read(fast)
        # A faster device or link cannot be the reason, nor a smaller model.
        explains = (mine or 0.0) < (other or 0.0) if read in (peak_flops, link_rate) else True
        explains = (mine or 0.0) > (other or 0.0) if read is _parameters else explains
        if mine and other and explains and abs(mine / other - 1) > WORTH_SAYING:
            reasons.append(f"{what} {write(mine)} against {write(other)}")
    return f"{_capital('; '.join(reasons))}." if reasons else ""


def _parameters(records: Records) -> float | None:
    return records.facts.parameters


def _shared_cores(slow: Records, fast: Records, slow_name: str) -> str:
    """Says that the slower run got clearly less of the CPU time it needed, and why; empty if it did not."""
    parts = step_parts(slow), step_parts(fast)
    if not parts[0] or not parts[1]:
        return ""
    mine, other = cores.cores(slow, parts[0]), cores.cores(fast, parts[1])
    if mine is None or mine.share > 1 - WORTH_SAYING or other and mine.share > other.share - WORTH_SAYING:
        return ""
    against = f" against {format_units.share(other.share)}" if other else ""
    got = f"{slow_name} got {format_units.share(mine.share)} of the CPU time it needed{against}"
    return f"{got}: {cores.cause(slow)}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
