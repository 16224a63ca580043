from collections import Counter
from pathlib import Path

import psutil
import pytest

from dragoman.data.formats import tmx
from dragoman.data.formats.pair import EMPTY_SOURCE, NO_SOURCE_LANGUAGE, NO_TARGET_LANGUAGE, UNTRANSLATED
from dragoman.errors import DataError
from tests.facts import raising


def unit(**variants: str) -> str:
    inner = "".join(
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for language, text in variants.items()
    )
    return f"<tu>{inner}</tu>\n"


def write(folder: Path, *units: str) -> Path:
    path = folder / "memory.tmx"
    path.write_text(f'<?xml version="1.0"?>\n<tmx><header/><body>\n{"".join(units)}</body></tmx>')
    return path


def texts(path: Path, skipped: Counter[str] | None = None) -> list[tuple[str, str]]:
    pairs = tmx.read(path, "en", "de", Counter() if skipped is None else skipped)
    return [(pair.source.decode(), pair.target.decode()) for pair in pairs]


def test_regions_match_and_the_exact_language_wins(tmp_path: Path) -> None:
    path = write(tmp_path, unit(de_AT="Jänner", en_GB="lorry"), unit(en_US="truck", EN="van", de="Laster"))
    assert texts(path) == [("lorry", "Jänner"), ("van", "Laster")]


def test_the_old_lang_attribute_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, '<tu><tuv lang="EN"><seg>a</seg></tuv><tuv lang="DE"><seg>b</seg></tuv></tu>')
    assert texts(path) == [("a", "b")]


def test_codes_are_dropped_and_marked_words_kept(tmp_path: Path) -> None:
    seg = (
        '<bpt i="1">&lt;b></bpt>very<ept i="1">&lt;/b></ept> <hi>old <ph>x<sub>alt</sub></ph>red</hi>'
        "<!-- no --><it>y</it> <ut>z</ut>house"
    )
    assert texts(write(tmp_path, unit(en=seg, de="Haus"))) == [("very old red house", "Haus")]


def test_line_breaks_and_tabs_become_one_space(tmp_path: Path) -> None:
    assert texts(write(tmp_path, unit(en="\n  a \n\t b  c\n", de="x&#10;y"))) == [("a b  c", "x y")]


def test_units_that_are_no_pair_are_counted_by_reason(tmp_path: Path) -> None:
    skipped: Counter[str] = Counter()
    path = write(
        tmp_path,
        unit(en="one", de="eins"),
        unit(en="two"),
        unit(de="drei", fr="trois"),
        unit(en="four", de=" "),
        unit(en="", de="fünf"),
        '<tu><tuv xml:lang="en"/><tuv xml:lang="de"/></tu><tu/>',
    )
    assert texts(path, skipped) == [("one", "eins")]
    assert skipped == {NO_TARGET_LANGUAGE: 1, NO_SOURCE_LANGUAGE: 2, UNTRANSLATED: 1, EMPTY_SOURCE: 2}


def test_a_file_without_the_language_names_those_it_has(tmp_path: Path) -> None:
    path = write(tmp_path, unit(en_US="one", fr_FR="un"), unit(en_US="two", es="dos"))
    with raising(DataError, f"{path}:3", "en-US", "fr-FR", "es", "de"):
        texts(path)


def test_a_memory_without_units_has_no_pairs(tmp_path: Path) -> None:
    assert texts(write(tmp_path)) == []


def test_broken_xml_says_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, unit(en="one", de="eins"), unit(en="two & three", de="zwei"))
    with raising(DataError, f"{path}:4"):
        texts(path)


def test_another_kind_of_xml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "page.tmx"
    path.write_text("<html/>")
    with raising(DataError, path, "<html>", "<tmx>"):
        texts(path)


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_the_encoding_that_the_file_declares_is_used(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "memory.tmx"
    content = f'<?xml version="1.0" encoding="{encoding}"?><tmx><body>{unit(en="ox", de="Öl")}</body></tmx>'
    path.write_bytes(content.encode(encoding))
    assert texts(path) == [("ox", "Öl")]


def test_lines_are_right_beyond_the_16_bits_of_libxml2(tmp_path: Path) -> None:
    forms = [
        '<tu>\n\n<tuv xml:lang="en"><seg>a</seg></tuv>\n<tuv xml:lang="de"><seg>b</seg></tuv>\n</tu>\n',
        '<tu><tuv xml:lang="en"><seg>a\nb</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu>\n',
    ]
    starts, units, line = [], [], 3
    for number in range(30_000):
        starts.append(line)
        units.append(forms[number % 2])
        line += units[-1].count("\n")
    got = [pair.line for pair in tmx.read(write(tmp_path, *units), "en", "de", Counter())]
    assert max(got) > 2**16
    assert got == starts


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, *[unit(en=f"sentence {n} " * 20, de=f"Satz {n} " * 20) for n in range(20_000)])
    pairs = tmx.read(path, "en", "de", Counter())
    for _ in range(1000):
        next(pairs)
    before_bytes = psutil.Process().memory_info().rss
    assert sum(1 for _ in pairs) == 19_000
    grown_bytes = psutil.Process().memory_info().rss - before_bytes
    assert path.stat().st_size > 10_000_000
    assert grown_bytes < 3_000_000
