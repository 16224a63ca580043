"""What must be true of a run after all its faults: its history, its weights, its records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.checkpoint import saved_state
from dragoman.errors import DragomanError
from dragoman.explain.outages import outages, pauses
from dragoman.explain.timeline import timeline
from dragoman.measure import database
from dragoman.measure.records import Records
from dragoman.rundir import RunFolder

# Relative, of the held-out loss. Fewer DiLoCo replicas learn otherwise, and mostly better.
LOSS_TOLERANCE = {"allreduce": 0.05, "diloco": 0.25}
TIME_TOLERANCE_SECONDS = 1.0
LINE_SECONDS = 0.2  # by which a line may be late, for each new world
_TENSORS = ("model.safetensors", "optimizer.safetensors")


@dataclass(frozen=True)
class Verdict:
    wrong: dict[str, str]  # what is wrong, by the name of the check
    numbers: dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What the lines of the log told of a run, as they came."""

    still_seconds: float  # from the last step of one world until the first of the next began
    worlds: int  # after the first
    faults: int  # that the launcher told of, and that a new world followed
    is_from_disk: bool  # every world after the first read a checkpoint


def judge(run: RunFolder, reference: RunFolder, plan_steps: int, mode: str, seen: Seen) -> Verdict:
    """Compares a run with one of the same settings that nobody disturbed."""
    wrong: dict[str, str] = {}
    try:
        records, undisturbed = database.read(run.records), database.read(reference.records)
    except DragomanError as error:
        return Verdict({"records": str(error)}, {})
    wrong |= _history(records, undisturbed, plan_steps)
    wrong |= _checkpoint(run, plan_steps)
    # A DiLoCo rank that comes back takes the moments of another.
    are_same = _same_ranks(records, undisturbed) and (mode != "diloco" or seen.is_from_disk)
    loss, wanted = _loss(records), _loss(undisturbed)
    difference = abs(loss - wanted) / wanted
    if not difference <= LOSS_TOLERANCE[mode]:
        wrong["loss"] = f"{loss:.4f}, undisturbed {wanted:.4f}"
    if are_same and "checkpoint" not in wrong and not _equal(run, reference, plan_steps):
        wrong["weights"] = "the ranks were always the same, the weights differ"
    still = still_seconds(records)
    tolerance = TIME_TOLERANCE_SECONDS + LINE_SECONDS * seen.worlds
    if not abs(seen.still_seconds - still) <= tolerance:
        wrong["time"] = f"stood still for {seen.still_seconds:.1f} s, {still:.1f} s by the records"
    timeline(records)
    recorded = [fault.kind for fault in records.faults]
    if len(recorded) < seen.faults:
        wrong["unrecorded"] = f"{seen.faults} faults, recorded: {', '.join(recorded) or 'none'}"
    numbers = {
        "same_ranks": are_same,
        "loss_difference": difference,
        "still_seconds": still,
        "seen_still_seconds": seen.still_seconds,
        "faults_recorded": recorded,
        "attempts": len(records.attempts),
    }
    return Verdict(wrong, numbers)


def _history(records: Records, undisturbed: Records, steps: int) -> dict[str, str]:
    """Every step is there once, with the pairs that an undisturbed run has in it."""
    made, expected = records.steps["step"].astype(int), undisturbed.steps["step"].astype(int)
    missing = sorted(set(range(1, steps + 1)) - set(made.tolist()))
    if missing:
        return {"history": f"steps without a row: {_some(missing)}"}
    if len(made) != steps:
        return {"history": f"{len(made)} rows for {steps} steps"}
    order, order_expected = np.argsort(made), np.argsort(expected)
    for name in ("pairs", "target_tokens"):
        ours, theirs = records.steps[name][order], undisturbed.steps[name][order_expected]
        if not np.array_equal(ours, theirs):
            return {
                "history": f"other {name} in steps {_some((np.flatnonzero(ours != theirs) + 1).tolist())}"
            }
    return {}


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")


def _checkpoint(run: RunFolder, steps: int) -> dict[str, str]:
    newest = max(run.checkpoint_steps(), default=None)
    if newest != steps:
        return {"checkpoint": f"the newest is of step {newest}, not {steps}"}
    try:
        saved_state.verify(run.checkpoint(newest))
        loaded = saved_state.load(run.checkpoint(newest))
    except DragomanError as error:
        return {"checkpoint": str(error)}
    return {} if loaded.state.step == steps else {"checkpoint": f"is of step {loaded.state.step}"}


def _same_ranks(records: Records, undisturbed: Records) -> bool:
    """Was every step made by as many ranks as in the undisturbed run?"""
    ranks = {attempt.number: attempt.ranks for attempt in records.attempts}
    made_by = {ranks[int(number)] for number in np.unique(records.steps["attempt"])}
    return made_by == {undisturbed.attempts[0].ranks}


def _equal(run: RunFolder, reference: RunFolder, steps: int) -> bool:
    def content(folder: Path) -> list[bytes]:
        return [(folder / name).read_bytes() for name in _TENSORS]

    return content(run.checkpoint(steps)) == content(reference.checkpoint(steps))


def _loss(records: Records) -> float:
    rows = [row for row in records.evaluations if row.eval_loss is not None]
    return float(rows[-1].eval_loss or np.nan) if rows else float("nan")


def still_seconds(records: Records) -> float:
    """How long training stood still between attempts, by what the report is made of."""
    found = outages(records)
    return sum(outage.still_seconds for outage in found) + sum(pauses(records).values())
