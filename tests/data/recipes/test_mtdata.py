from __future__ import annotations

import gzip
import io
import logging
import lzma
import sys
import zipfile
from pathlib import Path

import pytest

from dragoman.data import recipes
from dragoman.data.recipes.mtdata import recipe
from dragoman.errors import UsageError
from tests.facts import lacking, raising

TMX = b"""<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body><tu>
<tuv xml:lang="en"><seg>Yes</seg></tuv><tuv xml:lang="de"><seg>Ja</seg></tuv></tu></body></tmx>"""


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, content in members.items():
            out.writestr(name, content)
    return buffer.getvalue()


def entry(**fields):
    recipes.find("Statmt-europarl-7-deu-eng")  # mtdata is imported our way first
    from mtdata.entry import Entry

    return Entry("Test-corpus-1-deu-eng", **fields)


def collect(found, downloader, pairs, tmp_path: Path) -> list[tuple[str, str]]:
    collected = found.collect(tmp_path / "text", downloader.fetch)
    return [pair for corpus in collected.train for pair in pairs(corpus)]


def test_an_id_of_the_index_is_a_recipe_in_either_direction(
    mirror, downloader, pairs, tmp_path: Path
) -> None:
    mirror.put_tgz(
        "http://www.statmt.org/europarl/v7/de-en.tgz",
        {"europarl-v7.de-en.de": "Hallo\n", "europarl-v7.de-en.en": "Hello\n"},
    )
    lines: list[str] = []
    as_listed = recipes.find("Statmt-europarl-7-deu-eng", lines.append)
    swapped = recipes.find("Statmt-europarl-7-eng-deu")
    assert (as_listed.source_language, as_listed.target_language) == ("de", "en")
    assert (swapped.name, swapped.source_language) == ("Statmt-europarl-7-eng-deu", "en")
    assert collect(as_listed, downloader, pairs, tmp_path) == [("Hallo", "Hello")]
    assert collect(swapped, downloader, pairs, tmp_path) == [("Hello", "Hallo")]
    assert len(lines) == 1, "the index is built once, and that is told"


def test_the_index_is_built_without_a_pickle_and_leaves_logging_alone(monkeypatch) -> None:
    import pickle

    def refuse(*arguments: object) -> None:
        pytest.fail("a pickle was opened")

    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "dump", refuse)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mtdata"]:
        monkeypatch.delitem(sys.modules, name)
    before = logging.root.handlers[:], logging.root.level, logging.root.manager.disable
    recipes.find("Statmt-europarl-7-deu-eng")
    assert (logging.root.handlers, logging.root.level, logging.root.manager.disable) == before


def test_an_unknown_id_gets_the_nearest_of_its_languages() -> None:
    with raising(UsageError, "Statmt-europarl-77-eng-deu") as caught:  # builds the whole index
        recipes.find("Statmt-europarl-77-eng-deu")
    assert not lacking(caught.value.hint, "Statmt-europarl-7-deu-eng")


def test_line_files_in_a_zip_are_found_by_pattern(mirror, downloader, pairs, tmp_path: Path) -> None:
    url = "https://object.example/moses/de-en.txt.zip"
    mirror.put(url, zipped({"README": b"", "X.de-en.de": b"Ja\n", "X.de-en.en": b"Yes\n"}))
    found = recipe(entry(url=url, ext="zip", in_paths=["*.de", "*.en"], in_ext="txt"), is_swapped=False)
    assert collect(found, downloader, pairs, tmp_path) == [("Ja", "Yes")]


def test_two_addresses_are_the_two_sides(mirror, downloader, pairs, tmp_path: Path) -> None:
    urls = ("https://host.example/x.de.gz", "https://host.example/x.en.gz")
    for url, line in zip(urls, (b"Ja\n", b"Yes\n"), strict=True):
        mirror.put(url, gzip.compress(line))
    found = recipe(entry(url=urls, ext="txt.gz"), is_swapped=True)
    assert collect(found, downloader, pairs, tmp_path) == [("Yes", "Ja")]


@pytest.mark.parametrize("is_swapped", [False, True])
def test_the_columns_of_a_table_are_those_of_the_index(
    mirror, downloader, pairs, tmp_path: Path, is_swapped: bool
) -> None:
    url = "https://host.example/x.tsv.xz"
    mirror.put(url, lzma.compress(b'0.9\tJa\tYes "so"\r\n0.1\tNein\n'))
    found = recipe(entry(url=url, cols=(1, 2)), is_swapped)
    expected = [("Ja", 'Yes "so"'), ("Nein", "")]
    if is_swapped:
        expected = [(target, source) for source, target in expected]
    assert collect(found, downloader, pairs, tmp_path) == expected


@pytest.mark.parametrize("is_swapped", [False, True])
def test_translation_memories_are_read_in_the_direction_asked_for(
    mirror, downloader, pairs, tmp_path: Path, is_swapped: bool
) -> None:
    url = "https://host.example/download/123/"
    mirror.put(url, zipped({"a/x.tmx": TMX, "b/x.tmx": TMX.replace(b"Ja", b"Jawohl")}))
    found = recipe(entry(url=url, ext="zip", in_paths=["a/x.tmx", "b/x.tmx"], in_ext="tmx"), is_swapped)
    expected = [("Yes", "Ja"), ("Yes", "Jawohl")] if is_swapped else [("Ja", "Yes"), ("Jawohl", "Yes")]
    assert collect(found, downloader, pairs, tmp_path) == expected


def test_a_table_for_each_language_is_refused() -> None:
    urls = ("https://host.example/de.txt", "https://host.example/en.txt")
    with raising(UsageError, "Test-corpus-1-deu-eng"):
        recipe(entry(url=urls, ext="txt", in_ext="tsv", cols=(1,)), is_swapped=False)


@pytest.mark.parametrize("form", ["sgm", "opus_xces", "wmt21xml"])
def test_a_format_we_do_not_read_is_named(form: str) -> None:
    packed = entry(url="https://host.example/x.tgz", in_paths=["a", "b"], in_ext=form)
    with raising(UsageError, "Test-corpus-1-deu-eng", form):
        recipe(packed, is_swapped=False)
