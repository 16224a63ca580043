"""Is the model fully trained? By what twice the steps would buy, from curves through loss and BLEU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.explain import exchange_quality
from dragoman.explain.curves import LEAST_POINTS, extrapolate
from dragoman.explain.finding import Finding, known, unknown
from dragoman.explain.history import History, divergence, history, rise
from dragoman.measure.records import Records

# What twice the steps must buy to be worth it. Half a BLEU is about the smallest difference that a test set
# of two or three thousand sentences shows reliably. 1 % of the loss, but at least 0.01 (1 % of perplexity).
BLEU_WORTH = 0.5
LOSS_WORTH_SHARE = 0.01
LOSS_WORTH_LEAST = 0.01
NOTHING_LEARNT_BLEU = 1.0


@dataclass(frozen=True)
class Gain:
    """Of twice the steps; positive is better, for a loss as for BLEU. Saturating curves have no other."""

    name: str
    gain: float
    low: float
    high: float
    worth: float  # the least that matters; not less than the noise of one evaluation
    curve: list[tuple[float, float]]

    @property
    def verdict(self) -> str:
        if self.high < self.worth:
            return "converged"
        if self.gain >= self.worth:
            return "improving"
        return "converged" if self.high < 2 * self.worth else "unknown"

    def __str__(self) -> str:
        unit = "BLEU" if self.name == "bleu" else "of held-out loss"
        digits = 1 if self.name == "bleu" else 3
        gain, low, high = (f"{max(0.0, number):.{digits}f}" for number in (self.gain, self.low, self.high))
        return f"{gain} {unit} (between {low} and {high})"

    def numbers(self) -> dict[str, object]:
        key = f"gain_if_doubled_{self.name}"
        curve = [[step, value] for step, value in self.curve]
        return {
            **known(**{key: self.gain, f"{key}_low": self.low, f"{key}_high": self.high}),
            f"{self.name}_curve": curve,
        }


def explain(records: Records) -> Finding:
    past = history(records)
    numbers = _numbers(past)
    if reason := divergence(records):
        return Finding(
            id="convergence",
            verdict="diverged",
            answer=f"It diverged: {reason}.",
            numbers=numbers,
            evidence=["losses, gradients and the reason of the stop"],
            advice=["a lower learning rate or a longer warm-up, from the last good checkpoint"],
        )
    gains = [gain for gain in (_loss_gain(past), _bleu_gain(past)) if gain]
    steps, losses = past.of(past.eval_loss)
    rose = rise(losses)
    if not gains and not rose:
        count = (steps > 0).sum()  # one before the first step says nothing of training
        because = (
            f"{count} evaluations after the first step have a held-out loss, a curve needs {LEAST_POINTS}"
        )
        return unknown("convergence", because, numbers)
    for gain in gains:
        numbers |= gain.numbers()
    return _judge(records, past, gains, rose, numbers)


def _judge(
    records: Records, past: History, gains: list[Gain], rose: float, numbers: dict[str, object]
) -> Finding:
    verdict = _verdict(gains, rose)
    buys = f"twice the steps would buy {' and '.join(map(str, gains))}" if gains else ""
    if rose:
        best = past.of(past.eval_loss)[0][past.of(past.eval_loss)[1].argmin()]
        past_best = f"the held-out loss passed its best at step {best:,.0f} and has risen by {rose:.3f}"
        buys = f"{past_best}; {buys}" if buys else f"{past_best}: more steps buy nothing"
    _, bleu = past.of(past.bleu)
    stuck = verdict == "converged" and len(bleu) > 0 and bleu.max() < NOTHING_LEARNT_BLEU
    if stuck:
        verdict = "unknown"
        answer = (
            f"Unknown: it stands still, {buys}, but at under {NOTHING_LEARNT_BLEU:g} BLEU it has not learnt "
        )
        answer += "to translate: stuck, or on a plateau before learning begins."
    else:
        opening = {
            "converged": "Yes, as far as this data and these settings go",
            "improving": "Not yet",
            "unknown": "Unknown, the evaluations are too few or too noisy",
        }[verdict]
        answer = f"{opening}: {buys}."
    return Finding(
        id="convergence",
        verdict=verdict,
        answer=answer + _schedule_note(records, verdict) + exchange_quality.note(records, past),
        numbers=numbers,
        evidence=_evidence(past, gains),
        confidence="unknown" if verdict == "unknown" else "estimated",
        advice=_advice(gains, verdict, stuck),
    )


def _verdict(gains: list[Gain], rose: float) -> str:
    verdicts = {gain.name: gain.verdict for gain in gains}
    if rose:
        verdicts["loss"] = "converged"
    if "improving" in verdicts.values():
        return "improving"
    if set(verdicts.values()) == {"converged"}:
        return "converged"
    return verdicts.get("bleu", "unknown")  # the loss leaves it open; BLEU, if there is one, decides


def _loss_gain(past: History) -> Gain | None:
    steps, values = past.of(past.eval_loss)
    if rise(values):  # no saturating curve goes through a minimum
        return None
    fit = extrapolate(steps, values, rises=False, bounds=(0.0, np.inf))
    if fit is None:
        return None
    worth = max(LOSS_WORTH_SHARE * abs(values[-1]), LOSS_WORTH_LEAST, fit.noise)
    return Gain("loss", -fit.change, -fit.high, -fit.low, worth, fit.curve)


def _bleu_gain(past: History) -> Gain | None:
    steps, values = past.of(past.bleu)
    fit = extrapolate(steps, values, rises=True, bounds=(0.0, 100.0))
    if fit is None:
        return None
    return Gain("bleu", fit.change, fit.low, fit.high, max(BLEU_WORTH, fit.noise), fit.curve)


def _numbers(past: History) -> dict[str, object]:
    _, losses = past.of(past.eval_loss)
    steps, bleu = past.of(past.bleu)
    return known(
        evaluations=len(past.steps),
        last_eval_loss=past.last_eval_loss,
        best_eval_loss=losses.min() if len(losses) else None,
        best_bleu=bleu.max() if len(bleu) else None,
        best_bleu_step=int(steps[bleu.argmax()]) if len(bleu) else None,
    )


def _evidence(past: History, gains: list[Gain]) -> list[str]:
    evidence = [f"losses and BLEU: {len(past.steps)} evaluations on the held-out set"]
    for gain in gains:
        evidence.append(
            f"gain_if_doubled_{gain.name}: saturating curve, 90 % interval from refits with fresh noise; "
            f"positive is better; under {gain.worth:.3g} counts as nothing"
        )
    return evidence


def _schedule_note(records: Records, verdict: str) -> str:
    """A rate that ran down to nothing stops learning, whatever the model could still learn."""
    rates = records.steps["learning_rate"]
    rates = rates[np.isfinite(rates)]
    if verdict != "converged" or not len(rates) or rates[-1] > 0.05 * rates.max():
        return ""
    return " The learning rate had run down to almost nothing: a longer schedule may still find more."


def _advice(gains: list[Gain], verdict: str, stuck: bool) -> list[str]:
    if stuck:
        return ["look at learning rate and data before training on"]
    if verdict == "improving":
        return [f"train on: twice the steps would buy about {' and '.join(map(str, gains))}"]
    if verdict == "unknown":
        return ["evaluate more often, or on more pairs, to know"]
    return []
