"""Is the model fully trained? Judged by what twice the steps would gain and how much of the plan is done."""

from __future__ import annotations

import numpy as np

from dragoman import format_units
from dragoman.explain import exchange_quality, remedies
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

RECENT = 3  # the present fall of the loss is its mean over this many intervals between evaluations
FEWEST_STEPS = 40  # needed to see a fall of the training loss, which is noisy
WANTED_EVALUATIONS = 12  # enough for a good curve


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
            answer=f"Training diverged: {reason}.",
            numbers=numbers,
            evidence=["losses, gradients and the recorded reason for stopping"],
            advice=[_calmer(records)],
        )
    predicted = gains(past, path, least_loss(records.facts))
    rose = rise(past.of(past.eval_loss)[1])
    numbers |= known(risen_from_best=rose or None)
    for gain in predicted:
        numbers |= gain.numbers()
    if not predicted and not rose:
        finding = _without_a_curve(records, path, numbers)
    else:
        finding = _judge(records, past, path, predicted, rose, numbers)
    finding.answer += _worse_than_the_start(past) + exchange_quality.note(records, past)
    return finding


def _calmer(records: Records) -> str:
    """Advice against divergence, with the names of our settings."""
    is_ours = records.facts.source == "dragoman"
    rate = remedies.named("a lower learning rate", "train.rate" if is_ours else "")
    warmup = remedies.named("a longer warm-up", "train.warmup_steps" if is_ours else "")
    return f"go back to the last good checkpoint and use {rate} or {warmup}"


def _judge(
    records: Records,
    past: History,
    path: Course | None,
    predicted: list[Gain],
    rose: float,
    numbers: dict[str, object],
) -> Finding:
    verdict = _verdict(predicted, rose)
    falls = numbers.get("loss_fall_per_evaluation", 0.0)
    if verdict == "unknown" and path and path.is_unfinished and isinstance(falls, float) and falls > 0:
        verdict = "improving"
    gain = f"{_twice(path)} would {' and '.join(map(str, predicted))}" if predicted else ""
    if rose:
        steps, losses = past.of(past.eval_loss)
        past_best = f"the held-out loss was best at step {steps[losses.argmin()]:,.0f}"
        past_best += f" and has since risen by {rose:.3f}"
        gain = f"{past_best}; {gain}" if gain else f"{past_best}, so more steps gain nothing"
    _, bleu = past.of(past.bleu)
    is_stuck = verdict == "converged" and len(bleu) > 0 and bleu.max() < NOTHING_LEARNT_BLEU
    if is_stuck:
        verdict = "unknown"
        answer = (
            f"Unknown: the model has stopped improving, but at under {NOTHING_LEARNT_BLEU:g} BLEU it has not "
            "learnt to translate: it is stuck, or on a plateau before learning begins. "
            f"{_capital(gain)}."
        )
    else:
        opening = {
            "converged": "Yes, for this data and these settings",
            "improving": _not_yet(records, path, numbers),
            "unknown": "Unknown: the evaluations are too few or too noisy.",
        }[verdict]
        answer = f"{opening}: {gain}." if not opening.endswith(".") else f"{opening} {_capital(gain)}."
    return Finding(
        id="convergence",
        verdict=verdict,
        answer=answer + _schedule_note(path, verdict),
        numbers=numbers,
        evidence=_evidence(past, path, predicted),
        confidence="unknown" if verdict == "unknown" else "estimated",
        advice=_advice(records, path, predicted, verdict, is_stuck),
    )


def _without_a_curve(records: Records, path: Course | None, numbers: dict[str, object]) -> Finding:
    """The finding with too few evaluations for a curve, which says what is known without one."""
    count = sum(row.step > 0 and row.eval_loss is not None for row in records.evaluations)
    evaluations = format_units.counted(count, "evaluation")
    few = f"the run has {evaluations} of the held-out loss during training, and a curve needs {LEAST_POINTS}"
    falls = numbers.get("loss_fall_per_evaluation")
    is_falling = isinstance(falls, float) and falls > 0
    trained = _training_fall(records)
    numbers |= known(training_loss_fall=trained or None)
    advice = _advice(records, path, [], "unknown", False)
    if path and path.is_unfinished and (is_falling or trained):
        of_steps = f" The training loss fell by {trained:.2f} over the last fifth of the steps."
        still_improving = _not_yet(records, path, numbers) + ("" if is_falling else of_steps)
    elif isinstance(falls, float) and falls > _worth(numbers) and (path is None or path.way == "more"):
        still_improving = f"Not yet: {_progress(path, numbers)}."
    else:
        still_improving = ""
    if still_improving:
        return Finding(
            id="convergence",
            verdict="improving",
            answer=f"{still_improving} How much more training would gain is not known: {few}.",
            numbers=numbers,
            evidence=["recorded steps, rates and losses, compared with the plan in the run's settings"],
            advice=[*_continue(records, path, []), *advice],
        )
    progress = _capital(_progress(path, numbers))
    answer = f"Unknown: {few}." + (f" {progress}." if progress else "")
    return Finding(
        id="convergence",
        verdict="unknown",
        answer=answer,
        numbers=numbers,
        confidence="unknown",
        advice=advice,
    )


def _worth(numbers: dict[str, object]) -> float:
    """Returns the smallest fall of the loss that matters."""
    last = numbers.get("last_eval_loss")
    return max(LOSS_WORTH_LEAST, LOSS_WORTH_SHARE * abs(last) if isinstance(last, float) else 0.0)


def _not_yet(records: Records, path: Course | None, numbers: dict[str, object]) -> str:
    """Returns the opening of the answer for a plan that is unfinished, finished or not known."""
    if path is None or not path.is_unfinished:
        if path and path.way == "anew":
            rest = (
                "the learning rate is close to zero, and more steps of this run would change almost nothing"
            )
            return f"Not yet, but the schedule has ended: {rest}."
        return "Not yet"
    is_running = bool(records.attempts) and records.attempts[-1].ended is None
    opening = "Not yet" if is_running else "No, training stopped early"
    return f"{opening}: {_progress(path, numbers)}."


def _progress(path: Course | None, numbers: dict[str, object]) -> str:
    """Describes plan, learning rate and fall of the loss, as far as they are known."""
    falls, trend = numbers.get("loss_fall_per_evaluation"), ""
    if isinstance(falls, float):
        trend = f"{'falling' if falls > 0 else 'rising'} by {abs(falls):.2g} per evaluation"
    if not path or not path.planned_steps:
        return f"the held-out loss is {trend}" if trend else ""
    done, states = f"all {path.planned_steps:,} planned steps are done", []
    if path.is_unfinished:
        share = format_units.share(path.last / path.planned_steps)
        done = f"{path.last:,} of {path.planned_steps:,} planned steps ({share}) are done"
        rate = "rising" if path.is_rising else f"at {format_units.share(path.rate)} of its peak"
        states.append(f"the learning rate still {rate}")
    if trend:
        states.append(f"the held-out loss {trend}")
    return f"{done}, with {format_units.listed(states)}" if states else done


def _twice(path: Course | None) -> str:
    """Names the training for which gains are predicted."""
    if path is None or path.way == "more":
        return "twice the steps"
    if path.way == "finish":
        return f"finishing the plan (step {path.target_step:,})"
    return f"a new run and schedule twice as long ({path.target_step:,} steps)"


def _verdict(predicted: list[Gain], rose: float) -> str:
    verdicts = {gain.name: gain.verdict for gain in predicted}
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
    """Returns by how much the loss of the steps fell from the fourth fifth to the last; 0 if not surely."""
    loss = records.steps["loss"]
    loss = loss[np.isfinite(loss)]
    if len(loss) < FEWEST_STEPS:
        return 0.0
    before, after = np.array_split(loss, 5)[-2:]
    error = np.sqrt(before.var() / len(before) + after.var() / len(after))
    fall = float(before.mean() - after.mean())
    return fall if fall > 3 * error else 0.0


def _evidence(past: History, path: Course | None, predicted: list[Gain]) -> list[str]:
    evidence = [f"losses and BLEU: {format_units.counted(len(past.steps), 'evaluation')} on the held-out set"]
    if predicted and path and path.is_known:
        evidence.append(
            "the curve follows the sum of learning rates rather than steps, and counts what a high rate costs"
        )
    for gain in predicted:
        is_curve = gain.name == "loss" or len(predicted) == 1
        method = "from a saturating curve" if is_curve else "derived from the gain in loss"
        evidence.append(
            f"gain_if_doubled_{gain.name}: for {_twice(path)}, {method}, with a 90% interval; "
            f"positive is better, and less than {gain.worth:.3g} counts as nothing"
        )
    return evidence


def _schedule_note(path: Course | None, verdict: str) -> str:
    """Says that a rate near zero ends learning, whatever the model could still learn; else nothing."""
    if verdict != "converged" or path is None or path.way != "anew":
        return ""
    return " More steps of this run would change almost nothing: its learning rate is close to zero."


def _worse_than_the_start(past: History) -> str:
    """Says that fine-tuning did harm, if step 0 is still the best; else nothing."""
    scores = {"held-out loss": past.of(-past.eval_loss), "BLEU": past.of(past.bleu)}
    best = [name for name, (steps, good) in scores.items() if len(steps) > 1 and steps[good.argmax()] == 0]
    if not best:
        return ""
    still = "the starting weights (step 0) are still the best: training has made them worse"
    return f" By {format_units.listed(best)}, {still}."


def _advice(
    records: Records, path: Course | None, predicted: list[Gain], verdict: str, is_stuck: bool
) -> list[str]:
    if is_stuck:
        return ["check the learning rate and the data before training on"]
    if verdict == "improving":
        return _continue(records, path, predicted)
    if verdict == "unknown" and path:
        every = max(1, path.last // WANTED_EVALUATIONS)
        how = remedies.setting(records.facts, "evaluate.every", every)
        return [f"evaluate more often{how} or on more pairs, to get a usable curve"]
    return []


def _continue(records: Records, path: Course | None, predicted: list[Gain]) -> list[str]:
    """Advises to train on and what to expect of it, with the command if the run is ours."""
    gains = " and ".join(gain.expected for gain in predicted)
    expected = f", which should {gains}" if predicted else ""
    way, steps = (path.way, path.target_step) if path else ("more", 0)
    command = ""
    if records.facts.source == "dragoman" and path and path.is_known:
        run, more = ("NEW" if way == "anew" else "RUN"), f" --set train.steps={steps}"
        is_planned = path.planned_steps is not None and steps <= path.planned_steps and way != "anew"
        command = f": dragoman train CONFIG --data DATA --run {run}{'' if is_planned else more}"
    if way == "anew":
        return [f"start a new run with twice the steps and a schedule twice as long{expected}{command}"]
    if path and path.is_unfinished:
        return [f"finish the plan{expected if way == 'finish' else ''}{command}"]
    return [f"train for twice the steps{expected}{command}"]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
