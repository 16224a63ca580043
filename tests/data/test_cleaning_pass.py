from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dragoman.config import CleanRules
from dragoman.data import cleaning_pass
from dragoman.data.cleaning_pass import CleanText
from dragoman.data.corpus import parse
from dragoman.data.parallel import Workers
from dragoman.progress import Reporter


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(2) as workers:
        yield workers


@pytest.fixture
def text(tmp_path: Path, write, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> CleanText:
    """Three corpora, the middle one with nothing left, in chunks of three pairs."""
    monkeypatch.setattr(cleaning_pass, "CHUNK_PAIRS", 3)
    first = [(f"one {n}", f"eins {n}") for n in range(8)]
    first[1:6] = [("", "leer"), ("", "leer"), ("same", "same"), ("", "leer"), ("", "leer")]
    corpora = [first, [("", "leer")] * 4, [(f"two {n}", f"zwei {n}") for n in range(5)]]
    names = [word for n, pairs in enumerate(corpora) for word in write(tmp_path, f"part{n}", pairs)]
    (tmp_path / "clean").mkdir()
    cleaning_pass.clean(tmp_path / "clean", tuple(parse(names)), CleanRules(), workers, Reporter())
    return CleanText(tmp_path / "clean")


def test_pairs_stay_in_order_over_chunks_and_processes(text: CleanText) -> None:
    everything = text.pairs(np.ones(len(text), dtype=bool))
    assert [pair.source for pair in everything] == [
        "one 0",
        "one 6",
        "one 7",
        *(f"two {n}" for n in range(5)),
    ]
    assert [pair.target[:4] for pair in everything] == ["eins"] * 3 + ["zwei"] * 5


def test_counts_add_up(text: CleanText) -> None:
    assert text.facts.read_pairs == 17 == len(text) + sum(text.facts.dropped.values())
    assert text.facts.dropped == {"empty": 8, "identical": 1}
    assert len(text.pair_hashes()) == len(text.source_hashes()) == len(text)


def test_a_chunk_without_a_wanted_pair_shifts_nothing(text: CleanText) -> None:
    wanted = np.zeros(len(text), dtype=bool)
    wanted[[0, 6, 7]] = True
    assert [pair.source for pair in text.pairs(wanted)] == ["one 0", "two 3", "two 4"]
    assert [len(sources) for sources, _ in text.chunks(wanted)] == [1, 0, 2]


def test_an_example_names_the_file_and_line_it_came_from(text: CleanText) -> None:
    found = [(Path(e.file).name, e.line, e.source) for e in text.examples([0, 1, 2, 3, 7])]
    assert found == [
        ("part0.en", 1, "one 0"),
        ("part0.en", 7, "one 6"),
        ("part0.en", 8, "one 7"),
        ("part2.en", 1, "two 0"),
        ("part2.en", 5, "two 4"),
    ]


def test_each_corpus_knows_its_range_also_an_empty_one(text: CleanText) -> None:
    assert text.corpus_ranges(3) == [(0, 3), (3, 3), (3, 8)]
