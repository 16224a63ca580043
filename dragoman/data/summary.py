"""The card in a few lines: what was read and kept, and what was dropped and why."""

from __future__ import annotations

from dragoman.data.card import Card
from dragoman.data.reasons import MEANING, Reason

_MOST_REASONS = 4


def lines(card: Card) -> list[str]:
    """The summary's lines for a terminal. card.md has the rest."""
    return [
        f"Data set {card.source_language} to {card.target_language}",
        f"  read    {card.read_pairs:>15,} pairs",
        *_dropped(card),
        f"  kept    {card.read_pairs - card.dropped_pairs:>15,}",
        *_parts(card),
        f"  subwords{card.vocabulary_pieces:>15,}  SentencePiece, shared by both languages",
        *(f"Skipped: {count:,} x {reason}" for reason, count in card.skipped_units.items()),
        *(f"Check: {check}" for check in card.checks),
        *(f"Note: {note}" for note in card.notes),
    ]


def _dropped(card: Card) -> list[str]:
    """A line for each of the most common reasons, and one for the rest."""
    by_pairs = sorted(card.dropped.items(), key=lambda item: -item[1].pairs)
    rows = [(dropped.pairs, MEANING[Reason(reason)]) for reason, dropped in by_pairs[:_MOST_REASONS]]
    if rest := by_pairs[_MOST_REASONS:]:
        rows.append((sum(dropped.pairs for _, dropped in rest), "other reasons"))
    return [f"  dropped {pairs:>15,}  {why}" for pairs, why in rows]


def _parts(card: Card) -> list[str]:
    return [
        f"  {name:<8}{facts.pairs:>15,}  {facts.source.tokens:,} tokens {card.source_language}, "
        f"{facts.target.tokens:,} {card.target_language}"
        for name, facts in card.parts.items()
    ]
