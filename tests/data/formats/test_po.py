import gzip
from collections import Counter
from pathlib import Path

import pytest

from dragoman.data.formats import po
from dragoman.data.formats.pair import FUZZY, OBSOLETE, UNTRANSLATED, RawPair
from dragoman.errors import DataError
from tests.facts import raising

HEADER = 'msgid ""\nmsgstr ""\n"Language: de_AT\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def write(folder: Path, entries: str) -> Path:
    path = folder / "messages.po"
    path.write_text(entries)
    return path


def read(path: Path, skipped: Counter[str] | None = None) -> list[RawPair]:
    return list(po.read(path, "en", "de", Counter() if skipped is None else skipped))


def test_only_finished_translations_are_pairs_and_the_rest_is_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        HEADER
        + 'msgid "one"\nmsgstr "eins"\n\n#, fuzzy\nmsgid "two"\nmsgstr "zwo"\n\nmsgid "three"\nmsgstr ""\n\n'
        + '#~ msgid "four"\n#~ msgstr "vier"\n',
    )
    skipped: Counter[str] = Counter()
    assert read(path, skipped) == [RawPair(b"one", b"eins", 6)]
    assert skipped == {FUZZY: 1, UNTRANSLATED: 1, OBSOLETE: 1}


def test_singular_and_plural_are_paired_and_further_forms_left_out(tmp_path: Path) -> None:
    forms = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"\n'
    pairs = read(write(tmp_path, HEADER + forms + 'msgstr[2] "x"\n'))
    assert [pair[:2] for pair in pairs] == [(b"%d file", b"%d Datei"), (b"%d files", b"%d Dateien")]
    (only,) = read(write(tmp_path, 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Datei"\n'))
    assert only == RawPair(b"%d file", b"%d Datei", 1)


def test_line_breaks_and_tabs_become_one_space(tmp_path: Path) -> None:
    (only,) = read(write(tmp_path, 'msgid ""\n"two\\n"\n"lines\\n"\nmsgstr "zwei\\n\\tZeilen\\n"\n'))
    assert only[:2] == (b"two lines", b"zwei Zeilen")


def test_a_catalogue_in_another_language_names_both(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER.replace("de_AT", "fr") + 'msgid "one"\nmsgstr "un"\n')
    with raising(DataError, path, "fr", "de"):
        read(path)


def test_the_charset_of_the_header_is_used(tmp_path: Path) -> None:
    path = tmp_path / "messages.po.gz"
    content = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "oil"\nmsgstr "Öl"\n'
    path.write_bytes(gzip.compress(content.encode("iso-8859-1")))
    assert read(path)[0].target == "Öl".encode()


@pytest.mark.parametrize(
    ("entry", "line"), [(b'msgid "one"\nmsgstr eins"\nmsgstr "x"\n', 8), (b'msgid "one"\nmsgstr "\xff"\n', 7)]
)
def test_what_cannot_be_read_says_its_line(tmp_path: Path, entry: bytes, line: int) -> None:
    path = tmp_path / "messages.po"
    path.write_bytes(HEADER.encode() + entry)
    with raising(DataError, f"{path}:{line}"):
        read(path)


def test_a_text_that_happens_to_be_a_file_name_opens_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 'msgid "one"\nmsgstr "eins"\n')
    path = tmp_path / "short.po"
    path.write_text("messages.po")
    with raising(DataError, path):
        read(path)


def test_a_file_too_large_for_a_catalogue_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "messages.po.gz"
    path.write_bytes(gzip.compress(bytes(po.LARGEST_BYTES + 1), compresslevel=1))
    with raising(DataError, path):
        read(path)
