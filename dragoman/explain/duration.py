"""How long did the run take? Its whole time, split by what it was spent on, and the time left."""

from __future__ import annotations

import numpy as np

from dragoman import format_units
from dragoman.explain import fault_words, jumps, outages
from dragoman.explain.finding import Finding, known, unknown
from dragoman.explain.memory import growth
from dragoman.explain.step_breakdown import SETTLING_STEPS
from dragoman.explain.time_outside_steps import event_seconds
from dragoman.measure.records import Records

ENDED_BY_ITSELF = ("finished", "no improvement")
# The parts of a run's time: the names of their numbers, and their names in text and charts.
PARTS = {
    "training_seconds": "training",
    "evaluation_seconds": "evaluation",
    "checkpoint_seconds": "checkpoints",
    "startup_seconds": "start-up",
    "restart_seconds": "restarts",
    "other_seconds": "other",
}
RECENT_STEPS = 200  # the time left is estimated from their mean


def explain(records: Records, price_per_hour: float | None = None) -> Finding:
    seconds = _step_seconds(records)
    start, end = _span(records)
    if start is None and (not len(seconds) or _steps(records) is None):
        return unknown("duration", "neither the times of attempts nor of steps were recorded")
    inferred = jumps.inferred(records)
    wall = max(0.0, end - start - sum(inferred)) or None if start is not None and end is not None else None
    clock_jumps = [*jumps.recorded(records), *inferred]
    evaluation = _seconds_of(records, "evaluation")
    split = {
        "training_seconds": _training(records, seconds, evaluation),
        "evaluation_seconds": evaluation,
        "checkpoint_seconds": _seconds_of(records, "checkpoint"),
        "startup_seconds": _startup(records),
        "restart_seconds": _restarts(records),
    }
    tokens = _tokens(records)
    lost = outages.outages(records)
    last = records.attempts[-1] if records.attempts else None
    running = last is not None and last.ended is None
    numbers = known(
        wall_seconds=wall,
        **split,
        other_seconds=max(0.0, round(wall - sum(filter(None, split.values())), 3)) if wall else None,
        steps=_steps(records),
        tokens_per_wall_second=tokens / wall if tokens and wall else None,
        tokens_per_step_second=tokens / training
        if tokens and (training := split["training_seconds"])
        else None,
        finished=last.reason in ENDED_BY_ITSELF if last and records.facts.end_is_known else None,
        attempts=len(records.attempts) or None,
        eta_seconds=_eta(records, seconds, split) if running else None,
        money=_money(records, price_per_hour),
        price_per_host_hour=price_per_hour,
        clock_jumps=len(clock_jumps) or None,
        clock_jump_seconds=sum(clock_jumps) if clock_jumps else None,
        steps_repeated=_repeated(records, lost) or None,
    )
    numbers |= fault_words.numbers(lost)
    evidence = _evidence(records, wall is not None) + fault_words.evidence(lost)
    advice = fault_words.advice(records.facts, lost)
    sentences = [_answer(records, numbers, price_per_hour), fault_words.sentence(lost)]
    sentences.append(jumps.sentence(clock_jumps))
    if grown := growth(records):
        sentences.append(str(grown))
        numbers["memory_growth"] = grown.numbers
        evidence.append("memory_growth: medians of memory in use over each quarter of the latest attempt")
        advice.append(grown.advice)
    return Finding(
        id="duration",
        verdict="stated",
        answer=" ".join(filter(None, sentences)),
        numbers=numbers,
        evidence=evidence,
        confidence="estimated" if records.facts.one_mean else "measured",
        advice=advice,
    )


def _seconds_of(records: Records, kind: str) -> float | None:
    """Returns the seconds of all events of a kind; None if a log that is not ours does not time that kind."""
    is_own = records.facts.source == "dragoman" and bool(records.events)
    is_timed = any(event.kind == kind for event in records.events)
    return event_seconds(records, kind) if is_own or is_timed else None


def _repeated(records: Records, lost: list[outages.Outage]) -> int:
    """Returns how many steps were made twice, including those whose rows were lost with a fault."""
    recorded = outages.repeated_steps(records)
    of_faults = {outage.fault.attempt: outage.steps_repeated for outage in lost if outage.steps_repeated}
    return sum(({number: count for number, (count, _) in recorded.items()} | of_faults).values())


def _steps(records: Records) -> int | None:
    steps = records.steps["step"]
    steps = steps[np.isfinite(steps)]
    return int(steps.max()) if len(steps) else None


def _tokens(records: Records) -> float | None:
    """Returns the target tokens of all steps; only for our own runs, which record every step."""
    tokens = records.steps["target_tokens"]
    is_own = records.facts.source == "dragoman" and len(tokens)
    return float(tokens.sum()) if is_own and np.isfinite(tokens).all() else None


def _step_seconds(records: Records) -> np.ndarray:
    seconds = records.steps["seconds"]
    return seconds[np.isfinite(seconds) & (seconds > 0)]


def _training(records: Records, seconds: np.ndarray, evaluation: float | None) -> float | None:
    if not len(seconds) or _steps(records) is None:
        return None
    training = float(seconds.sum()) * records.facts.steps_per_row
    return training - (evaluation or 0.0) if records.facts.seconds_include_evaluations else training


def _record_times(records: Records) -> np.ndarray:
    """Returns every time at which something was recorded, in order."""
    tables = [records.steps["ended"], records.repeated["ended"]]
    tables += [records.nics["time"], records.hosts["time"], records.gpus["time"]]
    rows = [event.time + event.seconds for event in records.events]
    rows += [evaluation.time for evaluation in records.evaluations]
    times = np.concatenate([*tables, np.array(rows, dtype=np.float64)])
    return np.sort(times[np.isfinite(times)])


def _span(records: Records) -> tuple[float | None, float | None]:
    """Returns when the run began, and when it ended or recorded something for the last time."""
    times = _record_times(records)
    if not records.attempts:
        if not len(times):
            return None, None
        seconds = _step_seconds(records)
        return float(times[0] - (seconds[0] if len(seconds) else 0.0)), float(times[-1])
    first, last = records.attempts[0], records.attempts[-1]
    if last.ended is not None:
        return first.started, last.ended
    return first.started, float(max(last.started, times[-1])) if len(times) else last.started


def _startup(records: Records) -> float | None:
    """Returns the seconds from each start to the first step, summed over all attempts."""
    if any(event.kind == "startup" for event in records.events):
        return event_seconds(records, "startup")
    begun = records.steps["ended"] - records.steps["seconds"]
    known = np.isfinite(begun) & np.isfinite(records.steps["attempt"])
    numbers, places = np.unique(records.steps["attempt"][known], return_inverse=True)
    earliest = np.full(len(numbers), np.inf)
    np.minimum.at(earliest, places, begun[known])
    first = dict(zip(numbers.tolist(), earliest.tolist(), strict=True))
    # Rounded to a millisecond, as floating-point error must not make equal times differ.
    waits = [
        max(0.0, round(first[attempt.number] - attempt.started, 3))
        for attempt in records.attempts
        if attempt.number in first
    ]
    return sum(waits) if waits else None


def _restarts(records: Records) -> float | None:
    """Returns the seconds from an attempt's last record to the start of the next, over all attempts."""
    if not records.attempts:
        return None
    times, waited = _record_times(records), 0.0
    for attempt, following in zip(records.attempts, records.attempts[1:], strict=False):
        ended = attempt.ended
        if ended is None:
            last = int(np.searchsorted(times, following.started, side="right")) - 1
            ended = max(attempt.started, float(times[last])) if last >= 0 else attempt.started
        waited += max(0.0, following.started - ended)
    return waited


def _eta(records: Records, seconds: np.ndarray, split: dict[str, float | None]) -> float | None:
    """Returns the time left at the pace of the latest steps, with as many evaluations and checkpoints."""
    steps, wanted = _steps(records), records.facts.settings.get("train.steps")
    if not steps or not len(seconds) or not isinstance(wanted, int):
        return None
    beside = (split["evaluation_seconds"] or 0.0) + (split["checkpoint_seconds"] or 0.0)
    pace = float(_usual(records)[-RECENT_STEPS:].mean())
    return max(0, wanted - steps) * (pace + beside / len(seconds))


def _usual(records: Records) -> np.ndarray:
    """Returns the seconds of the steps, without the slow first few of each attempt but the run's first."""
    attempt, seconds = records.steps["attempt"], records.steps["seconds"]
    timed = np.isfinite(seconds) & (seconds > 0)
    attempt, seconds = np.nan_to_num(attempt[timed]), seconds[timed]
    begins = np.flatnonzero(np.diff(attempt)) + 1
    is_first = np.zeros(len(seconds) + SETTLING_STEPS, dtype=bool)
    for later in range(SETTLING_STEPS):
        is_first[begins + later] = True
    usual = seconds[~is_first[: len(seconds)]]
    return usual if len(usual) else seconds


def _hosts(records: Records) -> list[int]:
    """Returns the number of hosts of each attempt, or of the run if no attempt was recorded."""
    last = records.facts.hosts
    return [len(attempt.placement.get("hosts", last)) for attempt in records.attempts] or [len(last)]


def _money(records: Records, price_per_hour: float | None) -> float | None:
    """Returns the price from each start to the next; whether hosts were returned in between is not known."""
    start, end = _span(records)
    if not price_per_hour or start is None or end is None:
        return None
    times = [*(attempt.started for attempt in records.attempts), end] if records.attempts else [start, end]
    return price_per_hour * float(np.dot(_hosts(records), np.diff(times).clip(min=0))) / 3600 or None


def _answer(records: Records, numbers: dict[str, float], price_per_hour: float | None) -> str:
    steps = format_units.counted(int(numbers["steps"]), "step") if "steps" in numbers else "The run"
    if "wall_seconds" in numbers:
        text = f"{steps} took {format_units.seconds(numbers['wall_seconds'])}"
    elif "training_seconds" in numbers:
        text = (
            f"{steps} took {format_units.seconds(numbers['training_seconds'])}; time between steps was not "
        )
        text += "recorded"
    else:
        text = "How long it took is not known"
    spent = {name: numbers.get(number, 0.0) for number, name in PARTS.items()}
    if "wall_seconds" in numbers:
        parts = [f"{name} {format_units.seconds(value)}" for name, value in spent.items() if value > 0]
        text += f": {', '.join(parts)}" if parts else ""
    text += "."
    if "tokens_per_wall_second" in numbers and "tokens_per_step_second" in numbers:
        overall, of_steps = numbers["tokens_per_wall_second"], numbers["tokens_per_step_second"]
        text += f" Throughput was {format_units.count(overall)} target tokens per second overall,"
        text += f" {format_units.count(of_steps)} within steps."
    text += f" {_ending(records, numbers)}"
    if "money" in numbers:
        fewest, most = min(_hosts(records)), max(_hosts(records))
        hosts = format_units.counted(most, "host") if fewest == most else f"{fewest} to {most} hosts"
        text += f" At {price_per_hour:g} per host-hour, {hosts} cost {numbers['money']:.2f}."
    return text.strip()


def _ending(records: Records, numbers: dict[str, float]) -> str:
    if not records.attempts or not records.facts.end_is_known:
        return "Whether the run finished was not recorded."
    last = records.attempts[-1]
    tries = f" after {len(records.attempts)} attempts" if len(records.attempts) > 1 else ""
    if last.ended is None:
        left = format_units.seconds(numbers["eta_seconds"]) if numbers.get("eta_seconds") else ""
        to_go = f", with about {left} to go" if left else ""
        return f"The run had not ended at its last record{tries}{to_go}."
    if last.reason == "finished":
        return f"The run finished{tries}."
    if numbers.get("finished"):
        return f"The run finished early{tries} ({last.reason})."
    return f"The run did not finish{tries} ({last.reason or 'no reason recorded'})."


def _evidence(records: Records, has_wall: bool) -> list[str]:
    evidence = []
    if has_wall:
        which = "start and end of the attempts" if records.attempts else "times of the first and last record"
        evidence.append(f"wall_seconds: {which}")
    if one_mean := records.facts.one_mean:
        evidence.append(f"training_seconds: number of steps times their mean ({one_mean})")
    else:
        evidence.append("training_seconds: sum over steps")
    if records.events:
        evidence.append("evaluation_, checkpoint_ and startup_seconds: events that paused training")
    if _tokens(records):
        evidence.append(
            "tokens_per_wall_ and tokens_per_step_second: target tokens over the whole time and over steps"
        )
    if jumps.recorded(records):
        evidence.append("clock_jump_seconds: the wall clock compared with a clock that cannot be set")
    if jumps.inferred(records):
        evidence.append("clock_jump_seconds: recorded times that go backwards")
    if len(records.attempts) > 1:
        evidence.append("restart_seconds: from an attempt's last record to the next start")
        evidence.append("other_seconds: mostly steps that a later attempt repeated")
    return evidence
