from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.card import Card, Dropped, DroppedExample
from dragoman.data.store import DataSet
from dragoman.errors import DataError


def test_a_card_is_read_back_as_it_was_written(small: DataSet, tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(small.card.json_text(), encoding="utf-8")
    assert Card.load(tmp_path / "card.json") == small.card
    assert json.loads(small.card.json_text())["schema_version"] == 1


def test_the_facts_are_those_of_the_files(small: DataSet) -> None:
    for name, facts in small.card.parts.items():
        part = small.parts[name]
        assert facts.pairs == len(part)
        for said, side in ((facts.source, part.source), (facts.target, part.target)):
            assert said.tokens == len(side.tokens)
            assert sum(said.lengths.values()) == facts.pairs
    dev = small.path / "dev"
    assert small.card.parts["dev"].source.bytes == (dev / "source.txt").stat().st_size
    assert small.card.vocabulary_pieces == len(small.tokenizer)


def test_the_page_says_what_the_json_says(small: DataSet) -> None:
    dropped = Dropped(pairs=1_234, examples=[DroppedExample(file="a|b.en", line=7, source="", target="x")])
    card = small.card.model_copy(
        update={
            "dropped": {"empty": dropped},
            "read_pairs": 5_000,
            "notes": ["a thing to know"],
            "skipped_units": {"fuzzy unit": 3},
        }
    )
    page = card.markdown()
    assert "5,000 pairs read, 3,766 kept." in page
    assert r"| empty | 1,234 | nothing on one side | a\|b.en:7 |" in page
    assert "Note: a thing to know." in page
    assert "Skipped, no pair: 3 x fuzzy unit." in page
    assert f"{card.parts['train'].pairs:,}" in page
    assert card.fingerprint in page
    assert all(source.sha256 in page for source in card.sources)


@given(
    st.one_of(st.binary(), st.dictionaries(st.text(), st.integers()).map(lambda d: json.dumps(d).encode()))
)
def test_another_file_is_no_card_and_our_error(tmp_path_factory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "card.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a card that this version reads"):
        Card.load(path)
