"""What the answers say about faults: one sentence, their numbers, and advice where it helps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dragoman import format_units
from dragoman.explain import remedies
from dragoman.explain.finding import known
from dragoman.explain.outages import Outage
from dragoman.faults import FaultKind
from dragoman.measure.records import Fault, RunFacts

MOST_NAMED = 3
OFTEN_LOST = 3  # times that a host was lost: better to leave it out
LOST: tuple[FaultKind, ...] = ("host_unreachable", "link_cut", "port_blocked", "launcher_dead")
_HAPPENED: dict[FaultKind, str] = {
    "killed": "was killed",
    "out_of_memory": "ran out of memory",
    "exception": "failed with an error",
    "host_unreachable": "could not be reached",
    "link_cut": "lost its link",
    "port_blocked": "had a blocked port",
    "stopped": "was stopped",
    "disk_full": "ran out of disk space",
    "checkpoint_damaged": "had a damaged checkpoint",
    "clock_jump": "had its clock set",
    "launcher_dead": "lost its launcher",
    "slow_rank": "was too slow",
    "notice": "was told to leave",
}
_SIGNAL = re.compile(r"SIG[A-Z]+")


def where(fault: Fault) -> str:
    """Returns `rank 2 on b`, as far as it is known; empty if nothing is."""
    rank = "" if fault.rank is None else f"rank {fault.rank}"
    return f"{rank} on {fault.host}" if rank and fault.host else rank or fault.host


def numbers(found: Sequence[Outage]) -> dict[str, Any]:
    """Returns the number of faults, what they cost, and the costliest of them."""
    if not found:
        return {}
    return known(
        faults=len(found),
        fault_seconds=sum(outage.seconds for outage in found),
        costliest_faults=[_row(outage) for outage in _costliest(found)],
    )


def sentence(found: Sequence[Outage]) -> str:
    """Describes the faults, the costliest first; empty if there were none."""
    if not found:
        return ""
    total, named = sum(outage.seconds for outage in found), _costliest(found)
    text = format_units.counted(len(found), "fault")
    if total > 0:
        text += f" cost {format_units.seconds(total)}"
    else:
        text = f"There {'was' if len(found) == 1 else 'were'} {text}"
    parts = [_described(outage, is_only=len(found) == 1) for outage in named]
    if rest := len(found) - len(named):
        parts.append(format_units.counted(rest, "other"))
    return f"{text}: {format_units.listed(parts)}."


def evidence(found: Sequence[Outage]) -> list[str]:
    if not found:
        return []
    return [
        "fault_seconds: from the last step before each fault until the first step afterwards began, and the "
        "time that repeated steps had taken"
    ]


def advice(facts: RunFacts, found: Sequence[Outage]) -> list[str]:
    """Advises what prevents a fault from coming back, where that is in the user's hands."""
    faults = [outage.fault for outage in found]
    kinds, texts = {fault.kind for fault in faults}, []
    if "out_of_memory" in kinds:
        texts.append(
            "compute each microbatch in more parts" + _doubled(facts, "data.split") + ", or keep only the "
            "input of each layer" + remedies.setting(facts, "train.recompute", "true") + ": less memory for "
            "the same steps"
        )
    if "disk_full" in kinds:
        texts.append(f"free disk space, or keep fewer checkpoints{_keep_fewer(facts)}")
    times = Counter(host for host, _ in {(fault.host, fault.attempt) for fault in faults if _is_loss(fault)})
    for host, count in sorted(times.items(), key=lambda item: (-item[1], item[0])):
        if host and count >= OFTEN_LOST:
            texts.append(f"leave {host} out of --hosts: it was lost {count} times")
    return texts


def _is_loss(fault: Fault) -> bool:
    """Whether a whole host was lost, rather than one of its ranks."""
    return fault.kind in LOST or fault.rank is None and fault.kind in ("killed", "stopped", "notice")


def _doubled(facts: RunFacts, key: str) -> str:
    now = facts.settings.get(key, 1)
    return remedies.setting(facts, key, 2 * now if isinstance(now, int) and 0 < now < 1e6 else 2)


def _keep_fewer(facts: RunFacts) -> str:
    kept = facts.settings.get("checkpoint.keep_last")
    is_more = isinstance(kept, int) and kept > 2  # with two, the run survives damage to one
    return remedies.setting(facts, "checkpoint.keep_last", 2 if is_more else 1)


def _costliest(found: Sequence[Outage]) -> list[Outage]:
    return sorted(found, key=lambda outage: (-outage.seconds, outage.fault.time))[:MOST_NAMED]


def _described(outage: Outage, is_only: bool) -> str:
    fault = outage.fault
    text = f"{where(fault) or 'a rank'} {_HAPPENED[fault.kind]}"
    if fault.kind in ("killed", "stopped") and _SIGNAL.fullmatch(fault.detail):
        text += f" by {fault.detail}"
    text += f" at step {fault.step:,}"
    notes = []
    if outage.seconds > 0 and not is_only:
        notes.append(format_units.seconds(outage.seconds))
    if outage.steps_repeated:
        notes.append(f"{format_units.counted(outage.steps_repeated, 'step')} repeated")
    if outage.ended_run:
        notes.append("no attempt followed")
    return f"{text} ({', '.join(notes)})" if notes else text


def _row(outage: Outage) -> dict[str, Any]:
    fault = outage.fault
    return known(
        kind=fault.kind,
        host=fault.host or None,
        rank=fault.rank,
        step=fault.step,
        attempt=fault.attempt,
        seconds=outage.seconds,
        still_seconds=outage.still_seconds,
        steps_repeated=outage.steps_repeated,
        noticed_seconds=fault.noticed_seconds,
    )
