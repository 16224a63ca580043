from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.data.card import Card, Dropped, DroppedExample
from dragoman.data.reasons import MEANING, Reason
from dragoman.data.store import DataSet
from dragoman.errors import DataSetError
from tests.facts import only, raising


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
    only(page.splitlines(), "5,000", "3,766")
    assert rf"| empty | 1,234 | {MEANING[Reason.EMPTY]} | a\|b.en:7 |" in page
    only(page.splitlines(), "a thing to know")
    only(page.splitlines(), 3, "fuzzy unit")
    assert f"{card.parts['train'].pairs:,}" in page
    assert card.fingerprint in page
    assert all(source.sha256 in page for source in card.sources)


DEEP = b"[" * 100_000


@given(
    st.one_of(st.binary(), st.dictionaries(st.text(), st.integers()).map(lambda d: json.dumps(d).encode()))
)
@example(b"\xff\xfe{}")
@example(b"{}\0")
@example(b'{"parts": ' + DEEP)
@example(b'{"read_pairs": ' + b"9" * 10_000 + b"}")
def test_another_file_is_no_card_and_our_error(tmp_path_factory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "card.json"
    path.write_bytes(content)
    with pytest.raises(DataSetError) as caught:
        Card.load(path)
    assert caught.value.path == str(path) and caught.value.hint and len(str(caught.value)) < 1000


def change(*keys: object, to: object) -> Callable[[Any], None]:
    def apply(card: Any) -> None:
        *outer, last = keys
        for key in outer:
            card = card[key]
        if to is REMOVED:
            del card[last]
        else:
            card[last] = to

    return apply


REMOVED = object()
WRONG = {
    "-5 pairs": change("parts", "train", "pairs", to=-5),
    "no pairs": change("parts", "dev", "pairs", to=0),
    "2^70 pairs": change("parts", "train", "pairs", to=2**70),
    "one pair more": change("parts", "train", "pairs", to=3001),
    "one pair more in the corpus": change("corpora", 0, "pairs", to=3001),
    "a pair less in the corpus": change("corpora", 0, "pairs", to=2999),
    "-1 pairs in the corpus": change("corpora", 0, "pairs", to=-1),
    "pairs as text": change("parts", "train", "pairs", to="many"),
    "half a pair": change("parts", "train", "pairs", to=0.5),
    "a token more": change("parts", "test", "source", "tokens", to=10**6),
    "-1 tokens": change("parts", "train", "target", "tokens", to=-1),
    "no parts": change("parts", to={}),
    "no training part": change("parts", "train", to=REMOVED),
    "parts as a list": change("parts", to=[]),
    "no corpora": change("corpora", to=[]),
    "a part elsewhere": lambda card: card["parts"].update({"../small/dev": card["parts"]["dev"]}),
    "a part that is not there": lambda card: card["parts"].update(other=card["parts"]["dev"]),
    "a weight of NaN": change("corpora", 0, "weight", to=float("nan")),
    "an endless weight": change("corpora", 0, "weight", to=float("inf")),
    "a weight of 0": change("corpora", 0, "weight", to=0),
    "a weight of -1": change("corpora", 0, "weight", to=-1),
    "a file elsewhere": change("files", "../card.json", to=1),
    "an absolute file": change("files", "/etc/passwd", to=1),
    "a file without a name": change("files", "", to=1),
    "a file with NUL": change("files", "a\0b", to=1),
    "a file that is not there": change("files", "train/more", to=1),
    "a folder for a file": change("files", "train", to=1),
    "a size of -1": change("files", "card.md", to=-1),
    "another vocabulary": change("vocabulary_sha256", to="0" * 64),
    "no vocabulary": change("vocabulary_sha256", to=REMOVED),
    "a later schema": change("schema_version", to=2),
    "nothing at all": lambda card: card.clear(),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_card_that_cannot_be_true_is_refused_when_the_data_set_is_opened(
    case: str, small: DataSet, tmp_path: Path
) -> None:
    copy = shutil.copytree(small.path, tmp_path / "copy")
    card = json.loads((copy / "card.json").read_text())
    WRONG[case](card)
    (copy / "card.json").write_text(json.dumps(card))
    with pytest.raises(DataSetError) as caught:
        DataSet(copy)
    assert str(caught.value.path).startswith(str(copy)) and caught.value.hint


@pytest.mark.parametrize("name", ["card.json", "vocabulary.model"])
@pytest.mark.parametrize("kind", ["device", "pipe", "directory", "large"])
def test_what_is_read_whole_must_be_a_file_of_a_size_it_can_have(
    name: str, kind: str, small: DataSet, tmp_path: Path
) -> None:
    copy = shutil.copytree(small.path, tmp_path / "copy")
    path = copy / name
    path.unlink()
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 2**40)
    facts = [f"{2**40:,}"] if kind == "large" else []
    with raising(DataSetError, path, *facts) as caught:
        DataSet(copy)
    assert caught.value.path == str(path)
