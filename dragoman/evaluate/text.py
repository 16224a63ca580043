"""An evaluation as plain lines, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.evaluate.run import Evaluated
from dragoman.evaluate.scores import ScoreDifference

NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "comet": "COMET"}
_DECIMALS = {"comet": 4}


def lines(evaluated: Evaluated) -> Iterator[str]:
    yield f"{evaluated.sentences:,} sentences: {evaluated.held_out}"
    for system in evaluated.systems:
        yield f"\n{system.name} ({system.made})"
        for metric, score in system.scores.items():
            value, low, high = (_number(metric, figure) for figure in (score.value, score.low, score.high))
            yield f"  {NAMES[metric]:<5} {value:>7}  95% interval {low} to {high}  {score.signature}"
    if evaluated.differences:
        first, second = (system.name for system in evaluated.systems)
        yield f"\n{second} against {first}, with the same sentences drawn for both"
        yield from (_difference(difference, first, second) for difference in evaluated.differences)
    yield from _most_telling(evaluated)
    yield from ("\n" * (number == 0) + note for number, note in enumerate(evaluated.notes))


def _number(metric: str, value: float) -> str:
    return f"{value:.{_DECIMALS.get(metric, 2)}f}"


def _difference(difference: ScoreDifference, first: str, second: str) -> str:
    sign = "+" if difference.value > 0 else ""
    names = {"first": first, "second": second}
    verdict = f"{names[difference.better]} is better" if difference.better else "may be chance"
    value = sign + _number(difference.metric, difference.value)
    return f"  {NAMES[difference.metric]:<5} {value:>7}  p = {difference.p_value:.3f}  {verdict}"


def _most_telling(evaluated: Evaluated) -> Iterator[str]:
    if not evaluated.most_telling:
        return
    is_pair = len(evaluated.systems) > 1
    yield "\nWhere they differ most, by chrF:" if is_pair else "\nFurthest from the reference, by chrF:"
    for shown in evaluated.most_telling:
        yield f"\n  line {shown.line}"
        yield f"  source       {shown.source}"
        yield f"  reference    {shown.reference}"
        for translation, chrf in zip(shown.translations, shown.chrf, strict=True):
            yield f"  chrF {chrf:5.1f}   {translation}"
