import contextlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import corpus
from dragoman.data.corpus import Corpus, Files, RawPair
from dragoman.errors import UsageError
from tests.facts import lacking


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with some files in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "folder").mkdir()
    for name in ("a.en", "a.de", "b.en.gz", "b.de.gz", "part-2.en", "part-1.en", "part-1.de", "part-2.de"):
        (tmp_path / name).write_bytes(b"one\n")
    for name in ("memory.tmx", "memory.txt", "more.tsv", "x[1].en", "x[1].de"):
        (tmp_path / name).write_bytes(b"one\teins\n")
    return tmp_path


def test_two_files_make_a_corpus_with_the_first_language_as_source(folder: Path) -> None:
    assert corpus.parse(["de=a.de", "en=a.en"]) == [
        Corpus("a", "de", "en", (Files(Path("a.de"), Path("a.en")),))
    ]


def test_a_repeated_language_begins_the_next_corpus_and_a_weight_belongs_to_the_one_before(
    folder: Path,
) -> None:
    first, second, third = corpus.parse(
        ["en=a.en", "de=a.de", "weight=2", "en=b.en.gz", "de=b.de.gz", "en:de=more.tsv", "weight=0.5"]
    )
    assert (first.name, first.weight) == ("a", 2.0)
    assert (second.name, second.weight) == ("b", 1.0)
    assert (third.name, third.weight, third.files) == ("more", 0.5, (Files(Path("more.tsv")),))


def test_globs_are_paired_in_the_order_of_their_names(folder: Path) -> None:
    (only,) = corpus.parse(["en=part-*.en", "de=part-?.de"])
    assert only.name == "part"
    assert only.files == tuple(Files(Path(f"part-{n}.en"), Path(f"part-{n}.de")) for n in (1, 2))


def test_a_tilde_is_the_home_folder(folder: Path) -> None:
    (only,) = corpus.parse(["en:de=~/more.tsv"])
    assert only.files == (Files(folder / "more.tsv"),)


def test_a_file_with_brackets_in_its_name_is_no_glob(folder: Path) -> None:
    (only,) = corpus.parse(["en=x[1].en", "de=x[1].de"])
    assert only.files == (Files(Path("x[1].en"), Path("x[1].de")),)


def test_names_are_unique(folder: Path) -> None:
    corpora = corpus.parse(["en=a.en", "de=a.de"] * 3)
    assert [each.name for each in corpora] == ["a", "a-2", "a-3"]


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ("", ["weight=2"]),
        ("a.en", ["a.en", "LANGUAGE=FILE"]),
        ("en=", ["LANGUAGE=FILE"]),
        ("en=a.en", ["en=a.en"]),
        ("en=a.en en=b.en.gz", ["en=a.en"]),
        ("en=a.en weight=2 de=a.de", ["en=a.en"]),
        ("en=a.en en:de=more.tsv", ["en=a.en"]),
        ("en=a.en de=a.de fr=a.de", ["fr=a.de"]),
        ("en=a.en de=a.de de=a.de en=a.en", ["de to en", "en to de"]),
        ("en=a.en de=a.de en=a.en fr=a.de", ["en to fr", "en to de"]),
        ("en=a.en EN=a.de", ["en"]),
        ("en:en=more.tsv", ["en"]),
        ("en:=more.tsv", ["''"]),
        ("en:de:fr=more.tsv", ["de:fr"]),
        ("e/n=a.en de=a.de", ["e/n"]),
        ("weight=2 en=a.en de=a.de", ["weight=2"]),
        ("en=a.en de=a.de weight=0", ["weight=0"]),
        ("en=a.en de=a.de weight=-1", ["weight=-1"]),
        ("en=a.en de=a.de weight=nan", ["weight=nan"]),
        ("en=a.en de=a.de weight=inf", ["weight=inf"]),
        ("en=a.en de=a.de weight=two", ["weight=two"]),
        ("en=missing.en de=a.de", ["en=missing.en"]),
        ("en=missing-*.en de=a.de", ["en=missing-*.en"]),
        ("en=~nobody-by-this-name/a de=a.de", ["en=~nobody-by-this-name/a"]),
        ("en=~\0 de=a.de", ["en=~\0"]),
        ("en=folder de=a.de", ["en=folder"]),
        ("en=part-*.en de=a.de", ["en=part-*.en", 2, "de=a.de", 1]),
        ("en=memory.tmx de=a.de", ["memory.tmx"]),
        ("en:de=memory.txt", ["memory.txt", ".tsv", ".tmx", ".xlf", ".xliff", ".po"]),
    ],
)
def test_wrong_use_names_the_argument(folder: Path, arguments: str, facts: list[object]) -> None:
    with pytest.raises(UsageError) as caught:
        corpus.parse(arguments.split())
    assert not lacking(str(caught.value), *facts)
    assert caught.value.hint


@given(st.lists(st.text(alphabet="endwight:=*[]?~/. 2\0-"), max_size=4))
def test_any_arguments_give_corpora_or_a_usage_error(arguments: list[str]) -> None:
    with contextlib.suppress(UsageError):
        assert corpus.parse(arguments)


def test_read_finds_the_format_by_the_files(folder: Path) -> None:
    lines, table = corpus.parse(["en=a.en", "de=a.de", "en:de=more.tsv"])
    skipped: Counter[str] = Counter()
    assert list(corpus.read(lines, lines.files[0], skipped)) == [RawPair(b"one", b"one", 1)]
    assert list(corpus.read(table, table.files[0], skipped)) == [RawPair(b"one", b"eins", 1)]
    assert not skipped
