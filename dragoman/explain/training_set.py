"""How big is the training set? Its pairs, bytes and tokens on each side, and what cleaning dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman import format_units
from dragoman.explain.finding import Finding, known, unknown
from dragoman.measure.records import Records

_CARD = "all numbers: the card that `dragoman prepare` wrote with the data set; tokens include EOS"


def explain(records: Records) -> Finding:
    card = records.facts.data_card
    train = _at(card, "parts", "train")
    lines = _at(train, "pairs")
    if not isinstance(lines, int):
        return unknown("training_set", "the data set's card was not recorded")
    dropped = _dropped(card)
    numbers = known(
        lines=lines,
        source_bytes=_at(train, "source", "bytes"),
        target_bytes=_at(train, "target", "bytes"),
        source_tokens=_at(train, "source", "tokens"),
        target_tokens=_at(train, "target", "tokens"),
        dropped_lines=sum(dropped.values()) if dropped is not None else None,
        read_lines=_at(card, "read_pairs"),
        vocabulary_pieces=_at(card, "vocabulary_pieces"),
        passes=_passes(records, lines),
    )
    if dropped:
        numbers["dropped_by_reason"] = dropped
    return Finding(
        id="training_set",
        verdict="stated",
        answer=_answer(card, numbers, dropped) + _passes_sentence(numbers.get("passes")),
        numbers=numbers,
        evidence=[
            _CARD if records.facts.source == "dragoman" else f"all numbers: the log of {records.facts.source}"
        ],
    )


def _at(value: Any, *keys: str) -> Any:
    """Returns the value under a path of keys, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _dropped(card: Mapping[str, Any]) -> dict[str, int] | None:
    """Returns the dropped lines by reason; None if they were not counted."""
    dropped = card.get("dropped")
    if not isinstance(dropped, Mapping):
        return None
    counts = {reason: _at(entry, "pairs") for reason, entry in dropped.items()}
    return {reason: count for reason, count in counts.items() if isinstance(count, int)}


def _answer(card: Mapping[str, Any], numbers: dict[str, Any], dropped: dict[str, int] | None) -> str:
    sides = []
    for side in ("source", "target"):
        language = card.get(f"{side}_language", f"the {side} side")
        amounts = []
        if f"{side}_bytes" in numbers:
            amounts.append(format_units.size(numbers[f"{side}_bytes"]))
        if f"{side}_tokens" in numbers:
            amounts.append(f"{format_units.count(numbers[f'{side}_tokens'])} tokens")
        if amounts:
            more = f" ({amounts[1]})" if amounts[1:] else ""
            sides.append(f"{amounts[0]}{more} of {language}")
    text = format_units.counted(numbers["lines"], "sentence pair")
    text += (f": {format_units.listed(sides)}" if sides else "") + "."
    if dropped:
        reasons = sorted(dropped.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in reasons if count)
        read = f" of the {numbers['read_lines']:,} pairs read" if "read_lines" in numbers else ""
        text += f" Cleaning dropped {numbers['dropped_lines']:,}{read}" + (f" ({listed})." if listed else ".")
    return text


def _passes(records: Records, lines: int) -> float | None:
    """Returns how many times training has gone through the data set."""
    pairs = records.steps["pairs"]
    seen = float(pairs[pairs > 0].sum())
    return seen / lines if seen and lines else None


def _passes_sentence(passes: float | None) -> str:
    if passes is None:
        return ""
    times = f"{passes:,.0f}" if passes >= 10 else f"{passes:.2g}"
    return f" Training went through it {'once' if times == '1' else f'{times} times'}."
