"""data/summary.py: the card in a few lines that fit a terminal."""

from __future__ import annotations

from dragoman.data import summary
from dragoman.data.card import Dropped
from dragoman.data.reasons import MEANING, Reason
from dragoman.data.store import DataSet
from tests.facts import only


def test_a_summary_says_what_was_dropped_and_why_within_80_columns(small: DataSet) -> None:
    dropped = {str(reason): Dropped(pairs=10**n, examples=[]) for n, reason in enumerate(Reason)}
    card = small.card.model_copy(
        update={"dropped": dropped, "read_pairs": 200_000_000_000, "notes": ["a thing to know"]}
    )
    said = summary.lines(card)
    numbers = {line.split()[0]: line.split()[1] for line in said if line.startswith("  ")}
    assert (numbers["read"], numbers["kept"]) == ("200,000,000,000", "188,888,888,889")
    reasons = [line for line in said if line.startswith("  dropped")]
    assert [line.split()[1] for line in reasons] == [
        "10,000,000,000", "1,000,000,000", "100,000,000", "10,000,000", "1,111,111"
    ]  # fmt: skip
    assert reasons[1].endswith(MEANING[Reason.DUPLICATE])
    assert sum(line.startswith(("  train", "  dev", "  test")) for line in said) == len(card.parts)
    only(said, "a thing to know")
    assert max(map(len, said)) <= 80
