from collections import Counter
from pathlib import Path

import pytest

from dragoman.data.formats import xliff
from dragoman.data.formats.pair import NO_SOURCE_LANGUAGE, NO_TARGET_LANGUAGE, UNTRANSLATED
from dragoman.errors import DataError
from tests.facts import raising


def version_1(
    folder: Path, units: str, languages: str = 'source-language="en-US" target-language="de"'
) -> Path:
    path = folder / "text.xlf"
    path.write_text(
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f"<file {languages}><body>\n{units}</body></file></xliff>"
    )
    return path


def version_2(folder: Path, units: str) -> Path:
    path = folder / "text.xlf"
    path.write_text(
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de-DE">\n'
        f"<file>{units}</file></xliff>"
    )
    return path


def texts(path: Path, skipped: Counter[str] | None = None) -> list[tuple[str, str]]:
    pairs = xliff.read(path, "en", "de", Counter() if skipped is None else skipped)
    return [(pair.source.decode(), pair.target.decode()) for pair in pairs]


def test_proposals_beside_a_unit_are_not_its_translation(tmp_path: Path) -> None:
    units = (
        "<trans-unit><source>a</source><alt-trans><source>no</source><target>no</target></alt-trans>"
        "<target>b</target></trans-unit>"
        "<trans-unit><source>a</source><alt-trans><target>no</target></alt-trans></trans-unit>"
    )
    skipped: Counter[str] = Counter()
    assert texts(version_1(tmp_path, units), skipped) == [("a", "b")]
    assert skipped == {UNTRANSLATED: 1}


def test_inline_codes_are_dropped_and_marked_words_kept(tmp_path: Path) -> None:
    units = (
        '<trans-unit><source>a <g id="1">red</g><x id="2"/> <bpt id="3">[b]</bpt>house<ept id="3">[/b]</ept>'
        '</source><target>ein <mrk mtype="term">rotes</mrk> Haus<ph id="4">{0}</ph></target></trans-unit>'
    )
    assert texts(version_1(tmp_path, units)) == [("a red house", "ein rotes Haus")]


def test_segments_of_version_1_are_paired_by_their_mark(tmp_path: Path) -> None:
    units = (
        "<trans-unit><source>One. Two. Three.</source><seg-source>"
        '<mrk mtype="seg" mid="1">One.</mrk> <g id="1"><mrk mtype="seg" mid="2">Two.</mrk></g> '
        '<mrk mtype="seg" mid="3">Three.</mrk></seg-source>'
        '<target><mrk mtype="seg" mid="3">Drei.</mrk> <mrk mtype="seg" mid="1">Eins.</mrk></target>'
        "</trans-unit>"
    )
    skipped: Counter[str] = Counter()
    assert texts(version_1(tmp_path, units), skipped) == [("One.", "Eins."), ("Three.", "Drei.")]
    assert skipped == {UNTRANSLATED: 1}


def test_each_segment_of_version_2_is_a_pair(tmp_path: Path) -> None:
    units = (
        "<group><unit><notes><note>n</note></notes>"
        '<segment><source>One <pc id="1">word</pc>.</source><target>Ein <mrk id="2">Wort</mrk>.</target>'
        "</segment>"
        "<ignorable><source> </source></ignorable>"
        "<segment><source>Two.</source></segment></unit></group>"
        "<unit><segment><source>Three.</source><target>Drei.</target></segment></unit>"
    )
    skipped: Counter[str] = Counter()
    assert texts(version_2(tmp_path, units), skipped) == [("One word.", "Ein Wort."), ("Three.", "Drei.")]
    assert skipped == {UNTRANSLATED: 1}


@pytest.mark.parametrize("state", ["new", "needs-translation"])
def test_a_target_still_to_be_translated_is_no_pair(tmp_path: Path, state: str) -> None:
    units = f'<trans-unit><source>a</source><target state="{state}">a</target></trans-unit>'
    skipped: Counter[str] = Counter()
    assert texts(version_1(tmp_path, units), skipped) == []
    assert skipped == {UNTRANSLATED: 1}


def test_a_segment_in_its_first_state_is_no_pair(tmp_path: Path) -> None:
    units = '<unit><segment state="initial"><source>a</source><target>a</target></segment></unit>'
    skipped: Counter[str] = Counter()
    assert texts(version_2(tmp_path, units), skipped) == []
    assert skipped == {UNTRANSLATED: 1}


def test_a_file_that_names_no_target_language_is_taken_at_the_users_word(tmp_path: Path) -> None:
    units = "<trans-unit><source>a</source><target>b</target></trans-unit>"
    assert texts(version_1(tmp_path, units, 'source-language="en"')) == [("a", "b")]


def test_a_file_in_other_languages_names_them(tmp_path: Path) -> None:
    units = "\n<trans-unit><source>a</source><target>b</target></trans-unit>"
    path = version_1(tmp_path, units, 'source-language="fr" target-language="it-IT"')
    with raising(DataError, f"{path}:4", "fr", "it-IT", "de", "en"):
        texts(path)


def test_units_in_other_languages_are_counted(tmp_path: Path) -> None:
    units = (
        '<trans-unit><source>a</source><target xml:lang="de-CH">b</target></trans-unit>'
        '<trans-unit><source>a</source><target xml:lang="fr">b</target></trans-unit>'
        '<trans-unit><source xml:lang="es">a</source><target>b</target></trans-unit>'
    )
    skipped: Counter[str] = Counter()
    assert texts(version_1(tmp_path, units), skipped) == [("a", "b")]
    assert skipped == {NO_TARGET_LANGUAGE: 1, NO_SOURCE_LANGUAGE: 1}
