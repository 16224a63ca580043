"""Is the model fully trained? By what twice the steps would buy, and by how much of its plan is made."""

from __future__ import annotations

import numpy as np

from dragoman import format_units
from dragoman.explain import exchange_quality
from dragoman.explain.course import Course, course
from dragoman.explain.curves import LEAST_POINTS
from dragoman.explain.finding import Finding, known
from dragoman.explain.gains import (
    LOSS_WORTH_LEAST,
    LOSS_WORTH_SHARE,
    NOTHING_LEARNT_BLEU,
    Gain,
    gains,
    least_loss,
)
from dragoman.explain.history import History, divergence, history, rise, training_losses
from dragoman.measure.records import Records

RECENT = 3  # intervals between evaluations, over which the present fall of the loss is taken
FEWEST_STEPS = 40  # for a fall of the training loss, which is noisy
WANTED_EVALUATIONS = 12  # that make a good curve


def explain(records: Records) -> Finding:
    past, path = history(records), course(records)
    numbers = _numbers(past, path)
    if reason := divergence(records):
        training = training_losses(records, past)
        if len(training):
            numbers |= known(best_training_loss=training.min(), last_training_loss=training[-1])
        return Finding(
            id="convergence",
            verdict="diverged",
            answer=f"It diverged: {reason}.",
            numbers=numbers,
            evidence=["losses, gradients and the reason of the stop"],
            advice=["a lower learning rate or a longer warm-up, from the last good checkpoint"],
        )
    found = gains(past, path, least_loss(records.facts))
    rose = rise(past.of(past.eval_loss)[1])
    numbers |= known(risen_from_best=rose or None)
    for gain in found:
        numbers |= gain.numbers()
    if not found and not rose:
        finding = _without_a_curve(records, path, numbers)
    else:
        finding = _judge(records, past, path, found, rose, numbers)
    finding.answer += _of_the_beginning(past) + exchange_quality.note(records, past)
    return finding


def _judge(
    records: Records,
    past: History,
    path: Course | None,
    found: list[Gain],
    rose: float,
    numbers: dict[str, object],
) -> Finding:
    verdict = _verdict(found, rose)
    falls = numbers.get("loss_fall_per_evaluation", 0.0)
    if verdict == "unknown" and path and path.is_unfinished and isinstance(falls, float) and falls > 0:
        verdict = "improving"
    buys = f"{_twice(path)} would buy {' and '.join(map(str, found))}" if found else ""
    if rose:
        steps, losses = past.of(past.eval_loss)
        past_best = f"the held-out loss passed its best at step {steps[losses.argmin()]:,.0f}"
        past_best += f" and has risen by {rose:.3f}"
        buys = f"{past_best}; {buys}" if buys else f"{past_best}: more steps buy nothing"
    _, bleu = past.of(past.bleu)
    is_stuck = verdict == "converged" and len(bleu) > 0 and bleu.max() < NOTHING_LEARNT_BLEU
    if is_stuck:
        verdict = "unknown"
        answer = (
            f"Unknown: it stands still, {buys}, but at under {NOTHING_LEARNT_BLEU:g} BLEU it has not learnt "
            "to translate: stuck, or on a plateau before learning begins."
        )
    else:
        opening = {
            "converged": "Yes, as far as this data and these settings go",
            "improving": _not_yet(records, path, numbers),
            "unknown": "Unknown, the evaluations are too few or too noisy",
        }[verdict]
        answer = f"{opening}: {buys}." if not opening.endswith(".") else f"{opening} {_capital(buys)}."
    return Finding(
        id="convergence",
        verdict=verdict,
        answer=answer + _schedule_note(path, verdict),
        numbers=numbers,
        evidence=_evidence(past, path, found),
        confidence="unknown" if verdict == "unknown" else "estimated",
        advice=_advice(records, path, found, verdict, is_stuck),
    )


def _without_a_curve(records: Records, path: Course | None, numbers: dict[str, object]) -> Finding:
    """Too few evaluations: what is known all the same."""
    count = sum(row.step > 0 and row.eval_loss is not None for row in records.evaluations)
    few = f"{_counted(count)} of the held-out loss after the first step, a curve needs {LEAST_POINTS}"
    falls = numbers.get("loss_fall_per_evaluation")
    is_falling = isinstance(falls, float) and falls > 0
    trained = _training_fall(records)
    numbers |= known(training_loss_fall=trained or None)
    advice = _advice(records, path, [], "unknown", False)
    if path and path.is_unfinished and (is_falling or trained):
        of_steps = f" The training loss fell by {trained:.2f} over the last fifth of the steps."
        plain = _not_yet(records, path, numbers) + ("" if is_falling else of_steps)
    elif isinstance(falls, float) and falls > _worth(numbers) and (path is None or path.way == "more"):
        plain = f"Not yet: {_seen(path, numbers)}."
    else:
        plain = ""
    if plain:
        return Finding(
            id="convergence",
            verdict="improving",
            answer=f"{plain} How much more there is to gain is not known: {few}.",
            numbers=numbers,
            evidence=["steps, rates and losses as recorded, against the plan in the run's settings"],
            advice=[*_continue(records, path, ""), *advice],
        )
    seen = _seen(path, numbers)
    answer = f"Unknown: {few}." + (f" What is known: {seen}." if seen else "")
    return Finding(
        id="convergence",
        verdict="unknown",
        answer=answer,
        numbers=numbers,
        confidence="unknown",
        advice=advice,
    )


def _worth(numbers: dict[str, object]) -> float:
    """The least fall of the loss that matters."""
    last = numbers.get("last_eval_loss")
    return max(LOSS_WORTH_LEAST, LOSS_WORTH_SHARE * abs(last) if isinstance(last, float) else 0.0)


def _not_yet(records: Records, path: Course | None, numbers: dict[str, object]) -> str:
    """The opening of an answer to an unfinished plan, a finished one, and none."""
    if path is None or not path.is_unfinished:
        if path and path.way == "anew":
            return "Not yet, but its schedule has ended: at this rate more steps change next to nothing."
        return "Not yet"
    is_running = bool(records.attempts) and records.attempts[-1].ended is None
    opening = "Not yet: it is at" if is_running else "No: stopped at"
    return f"{opening} {_seen(path, numbers)}."


def _seen(path: Course | None, numbers: dict[str, object]) -> str:
    """Plan, rate and fall of the loss, as far as they are known."""
    parts = []
    if path and path.planned_steps and path.is_unfinished:
        parts.append(f"{format_units.share(path.last / path.planned_steps)} of its planned steps")
        parts[0] += f" ({path.last:,} of {path.planned_steps:,})"
        if path.is_rising:
            parts.append("the learning rate still rising")
        else:
            parts.append(f"the learning rate still at {format_units.share(path.rate)} of its peak")
    elif path and path.planned_steps:
        parts.append(f"all {path.planned_steps:,} planned steps are made")
    falls = numbers.get("loss_fall_per_evaluation")
    if isinstance(falls, float):
        way = "falling" if falls > 0 else "rising"
        parts.append(f"the held-out loss {way} by {abs(falls):.2g} per evaluation")
    return ", ".join(parts)


def _twice(path: Course | None) -> str:
    """What would buy it."""
    if path is None or path.way == "more":
        return "twice the steps"
    if path.way == "finish":
        return f"finishing its plan (step {path.target_step:,})"
    return f"a new run with twice the steps ({path.target_step:,}) and a schedule twice as long"


def _verdict(found: list[Gain], rose: float) -> str:
    verdicts = {gain.name: gain.verdict for gain in found}
    if rose:
        verdicts["loss"] = "converged"
    if "improving" in verdicts.values():
        return "improving"
    if set(verdicts.values()) == {"converged"}:
        return "converged"
    return verdicts.get("bleu", "unknown")  # the loss leaves it open; BLEU, if there is one, decides


def _numbers(past: History, path: Course | None) -> dict[str, object]:
    steps, losses = past.of(past.eval_loss)
    scored, bleu = past.of(past.bleu)
    recent = losses[steps > 0][-RECENT - 1 :]
    return known(
        evaluations=len(past.steps),
        evaluations_of_training=len(losses[steps > 0]),
        last_eval_loss=past.last_eval_loss,
        best_eval_loss=losses.min() if len(losses) else None,
        best_eval_loss_step=int(steps[losses.argmin()]) if len(losses) else None,
        best_bleu=bleu.max() if len(bleu) else None,
        best_bleu_step=int(scored[bleu.argmax()]) if len(bleu) else None,
        loss_fall_per_evaluation=(recent[0] - recent[-1]) / (len(recent) - 1) if len(recent) > 1 else None,
        steps=path.last if path else None,
        planned_steps=path.planned_steps if path else None,
        target_step=path.target_step if path else None,
        planned_share=min(1.0, path.last / path.planned_steps) if path and path.planned_steps else None,
        rate_share_of_peak=path.rate if path and path.is_known else None,
    )


def _training_fall(records: Records) -> float:
    """By how much the loss of the steps fell from their fourth fifth to the last; 0 if it is not sure to."""
    loss = records.steps["loss"]
    loss = loss[np.isfinite(loss)]
    if len(loss) < FEWEST_STEPS:
        return 0.0
    before, after = np.array_split(loss, 5)[-2:]
    error = np.sqrt(before.var() / len(before) + after.var() / len(after))
    fall = float(before.mean() - after.mean())
    return fall if fall > 3 * error else 0.0


def _evidence(past: History, path: Course | None, found: list[Gain]) -> list[str]:
    evidence = [f"losses and BLEU: {_counted(len(past.steps))} on the held-out set"]
    if found and path and path.is_known:
        evidence.append(
            "the curve knows the learning rate: sums of rates are its clock, and a high rate costs loss"
        )
    for gain in found:
        what = (
            "saturating curve"
            if gain.name == "loss" or len(found) == 1
            else "what the loss would gain, as BLEU"
        )
        evidence.append(
            f"gain_if_doubled_{gain.name}: by {_twice(path)}; {what}, with a 90 % interval; "
            f"positive is better; under {gain.worth:.3g} counts as nothing"
        )
    return evidence


def _schedule_note(path: Course | None, verdict: str) -> str:
    """A rate that ran down to nothing stops learning, whatever the model could still learn."""
    if verdict != "converged" or path is None or path.way != "anew":
        return ""
    return " More steps of this run would change next to nothing: its learning rate has run down."


def _of_the_beginning(past: History) -> str:
    """Fine-tuning that harmed."""
    scores = {"held-out loss": past.of(-past.eval_loss), "BLEU": past.of(past.bleu)}
    best = [name for name, (steps, good) in scores.items() if len(steps) > 1 and steps[good.argmax()] == 0]
    if not best:
        return ""
    still = "the weights it began with (step 0) are still the best: training has made them worse"
    return f" By {format_units.listed(best)} {still}."


def _advice(
    records: Records, path: Course | None, found: list[Gain], verdict: str, is_stuck: bool
) -> list[str]:
    if is_stuck:
        return ["look at learning rate and data before training on"]
    if verdict == "improving":
        return _continue(records, path, f"{' and '.join(map(str, found))}")
    if verdict == "unknown":
        every = max(1, path.last // WANTED_EVALUATIONS) if path else 0
        how = f" (--set evaluate.every={every})" if every and records.facts.source == "dragoman" else ""
        return [f"evaluate more often{how}, or on more pairs, to know"]
    return []


def _continue(records: Records, path: Course | None, gain: str) -> list[str]:
    """What to do for it, with the command where the run is ours."""
    about = f" would buy about {gain}" if gain else ""
    way, steps = (path.way, path.target_step) if path else ("more", 0)
    command = ""
    if records.facts.source == "dragoman" and path and path.is_known:
        run, more = ("NEW" if way == "anew" else "RUN"), f" --set train.steps={steps}"
        is_planned = path.planned_steps is not None and steps <= path.planned_steps and way != "anew"
        command = f": dragoman train CONFIG --data DATA --run {run}{'' if is_planned else more}"
    if way == "anew":
        return [f"a new run with twice the steps and a schedule twice as long{about}{command}"]
    if path and path.is_unfinished:
        return [f"finish the plan{about if way == 'finish' else ''}{command}"]
    return [f"train on: twice the steps{about}{command}"]


def _counted(evaluations: int) -> str:
    return f"{evaluations} evaluation{'' if evaluations == 1 else 's'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
