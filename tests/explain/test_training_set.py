"""explain/training_set.py: the card in a sentence."""

import re

from dragoman.explain.training_set import explain
from dragoman.measure.records import Records, RunFacts
from tests.explain import build
from tests.facts import lacking


def test_numbers_are_those_of_the_card() -> None:
    finding = explain(build.records())
    expected = {
        "lines": 9_500,
        "source_bytes": 600_000,
        "target_bytes": 700_000,
        "source_tokens": 150_000,
        "target_tokens": 160_000,
        "dropped_lines": 500,
    }
    assert expected.items() <= finding.numbers.items()
    assert finding.numbers["dropped_by_reason"] == {"too_long": 300, "duplicate": 200}
    assert not lacking(finding.answer, 300, "too long", 200, "duplicate")
    assert not lacking(finding.answer, 38), "900 pairs in each of 400 steps"
    assert not lacking(explain(build.records(steps=2_000)).answer, 189)


def test_card_with_little_in_it_gives_what_it_has() -> None:
    finding = explain(Records(RunFacts(data_card={"parts": {"train": {"pairs": 12}}})))
    assert finding.numbers == {"lines": 12}
    assert re.findall(r"\d+", finding.answer) == ["12"]


def test_nothing_dropped_is_known() -> None:
    card = {"parts": {"train": {"pairs": 12}}, "dropped": {}}
    assert explain(Records(RunFacts(data_card=card))).numbers["dropped_lines"] == 0


def test_nothing_recorded_is_unknown() -> None:
    assert explain(build.NOTHING).verdict == "unknown"
