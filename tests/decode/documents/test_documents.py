"""Documents whose targets are filled in: what was there stays there."""

from __future__ import annotations

import gzip
import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polib
import pytest
from lxml import etree

from dragoman.data import files
from dragoman.data.formats import reader
from dragoman.decode.documents import UnitTally, format_of, is_plain
from dragoman.decode.documents.output import opened
from dragoman.errors import DataError, UsageError
from tests.facts import raising

XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<!-- ours -->
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>one two</source></trans-unit>
<trans-unit id="2"><source>done</source><target state="final">fertig</target></trans-unit>
<trans-unit id="3"><source>a <g id="1">bold <x id="2"/> word</g>, <ph id="3">[b]</ph>end</source></trans-unit>
<trans-unit id="4" translate="no"><source>Acme</source></trans-unit>
<trans-unit id="5"><source>new</source><target state="new" xml:lang="de">new</target></trans-unit>
<trans-unit id="6"><source>first. second.</source><seg-source><mrk mtype="seg" mid="0">first.</mrk> \
<mrk mtype="seg" mid="1">second.</mrk></seg-source><target/></trans-unit>
<trans-unit id="7"><source>buy <mrk mtype="protected">acme</mrk> &lt;b&gt;now</source></trans-unit>
</body></file></xliff>"""

XLIFF_2 = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de">
<file id="f"><unit id="1"><segment><source>one <pc id="1">two</pc></source></segment>
<segment state="final"><source>x</source><target>y</target></segment></unit>
<unit id="2" translate="no"><segment><source>no</source></segment></unit></file></xliff>"""

PO = """# a comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=3; plural=n%10==1 ? 0 : 1;\\n"

#: main.c:1
msgid "open %s\\n"
msgstr ""

msgid "done"
msgstr "fertig"

#, fuzzy
msgid "maybe"
msgstr "vielleicht"

msgctxt "menu"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""
msgstr[2] ""

#~ msgid "old"
#~ msgstr ""
"""


def capitals(texts: Sequence[str]) -> list[str]:
    return [text.upper() for text in texts]


def filled(folder: Path, name: str, content: str | bytes, again: bool = False) -> tuple[str, UnitTally]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    out = io.BytesIO()
    tally = format_of(path)(path, out, capitals, again)
    return out.getvalue().decode(), tally


def targets(document: str) -> list[str | None]:
    """The target of each unit as it is written, but for its state; None where there is none."""
    root = etree.fromstring(document.encode())
    found = []
    for unit in root.iterfind(".//{*}trans-unit" if root.get("version") == "1.2" else ".//{*}segment"):
        target = unit.find("{*}target")
        written = None if target is None else etree.tostring(target, with_tail=False, encoding=str)
        found.append(written and re.sub(r' (xmlns|state|state-qualifier)="[^"]*"', "", written))
    return found


def test_lines_stay_on_their_lines(tmp_path: Path) -> None:
    text, tally = filled(tmp_path, "text.txt", "one\r\n\ntwo\u2028half\n last")
    assert text == "ONE\n\nTWO\u2028HALF\n LAST\n"
    assert tally == UnitTally(4, 0)


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    with raising(DataError, "text.txt:2", "byte 3"):
        filled(tmp_path, "text.txt", b"one\ntw\xff\n")


def test_tsv_gets_its_second_column_and_keeps_the_others(tmp_path: Path) -> None:
    rows = "one\ntwo\t\tnote\nthree\tdrei\tnote\n\n"
    assert filled(tmp_path, "a.tsv", rows) == (
        "one\tONE\ntwo\tTWO\tnote\nthree\tdrei\tnote\n\n",
        UnitTally(2, 2),
    )
    again, tally = filled(tmp_path, "a.tsv", rows, again=True)
    assert again == "one\tONE\ntwo\tTWO\tnote\nthree\tTHREE\tnote\n\n"
    assert tally == UnitTally(3, 1)


def test_xliff_1_targets_are_filled_and_tags_kept(tmp_path: Path) -> None:
    text, tally = filled(tmp_path, "a.xlf", XLIFF_1)
    assert targets(text) == [
        "<target>ONE TWO</target>",
        "<target>fertig</target>",
        '<target>A <g id="1">BOLD <x id="2"/> WORD</g>, <ph id="3">[b]</ph>END</target>',
        None,
        '<target xml:lang="de">NEW</target>',
        '<target><mrk mtype="seg" mid="0">FIRST.</mrk> <mrk mtype="seg" mid="1">SECOND.</mrk></target>',
        '<target>BUY <mrk mtype="protected">acme</mrk> &lt;b&gt;NOW</target>',
    ]
    assert text.count('state="needs-review-translation" state-qualifier="mt-suggestion"') == 4
    assert text.count('state="final"') == 1
    assert tally == UnitTally(5, 2)
    assert "<!-- ours -->" in text


def test_all_that_is_not_a_target_stays_in_xliff(tmp_path: Path) -> None:
    text, _ = filled(tmp_path, "a.xlf", XLIFF_1)
    before, after = (etree.fromstring(document.encode()) for document in (XLIFF_1, text))
    for tree in (before, after):
        for target in list(tree.iterfind(".//{*}target")):
            target.getparent().remove(target)
    assert etree.tostring(before, method="c14n") == etree.tostring(after, method="c14n")


def test_xliff_2_segments_are_filled(tmp_path: Path) -> None:
    text, tally = filled(tmp_path, "a.xliff", XLIFF_2)
    assert targets(text) == ['<target>ONE <pc id="1">TWO</pc></target>', "<target>y</target>", None]
    assert tally == UnitTally(1, 2)
    assert 'state="translated"' in text


def test_again_replaces_what_was_translated(tmp_path: Path) -> None:
    text, _ = filled(tmp_path, "a.xliff", XLIFF_2, again=True)
    assert targets(text)[1] == "<target>X</target>"


def test_a_segment_in_its_first_state_is_not_translated_yet(tmp_path: Path) -> None:
    copied = XLIFF_2.replace(
        'state="final"><source>x</source><target>y', 'state="initial"><source>x</source><target>x'
    )
    text, tally = filled(tmp_path, "a.xliff", copied)
    assert targets(text)[1] == "<target>X</target>"
    assert tally == UnitTally(2, 1)


def test_what_a_machine_replaced_is_approved_no_longer(tmp_path: Path) -> None:
    approved = XLIFF_1.replace('id="2"><source>done', 'id="2" approved="yes"><source>done')
    assert 'approved="yes"' in filled(tmp_path, "a.xlf", approved)[0]
    assert "approved" not in filled(tmp_path, "a.xlf", approved, again=True)[0]
    detailed = XLIFF_2.replace('state="final"', 'state="final" subState="x:signed"')
    assert "subState" not in filled(tmp_path, "a.xliff", detailed, again=True)[0]


def test_our_own_reader_finds_the_pairs_that_were_filled_in(tmp_path: Path) -> None:
    for name, document, expected in (("a.xlf", XLIFF_1, 7), ("a.po", PO, 4), ("a.tsv", "one\ntwo\n", 2)):
        text, _ = filled(tmp_path, name, document)
        path = tmp_path / f"filled-{name}"
        path.write_text(text)
        assert len(list(reader(path)(path, "en", "de", Counter()))) == expected


def test_po_entries_are_filled_and_the_rest_kept(tmp_path: Path) -> None:
    text, tally = filled(tmp_path, "a.po", PO)
    found = {entry.msgid: entry for entry in polib.pofile(text)}
    assert found["open %s\n"].msgstr == "OPEN %s\n"
    assert found["done"].msgstr == "fertig"
    assert (found["maybe"].msgstr, found["maybe"].fuzzy) == ("vielleicht", True)
    plural = found["%d file"]
    assert plural.msgstr_plural == {0: "%d FILE", 1: "%d FILES", 2: "%d FILES"}
    assert plural.msgctxt == "menu"
    assert found["old"].obsolete
    assert found["open %s\n"].occurrences == [("main.c", "1")]
    assert tally == UnitTally(2, 3)


@pytest.mark.parametrize(
    "name", ["news", "NEWS.TXT", "news.de", "news.en.gz", "news.zh-Hans", "news.pt_BR", "news.eng_Latn.zst"]
)
def test_a_name_without_a_kind_or_with_a_language_is_plain_text(name: str) -> None:
    assert is_plain(Path(name))


@pytest.mark.parametrize(
    "suffix",
    [".srt", ".vtt", ".html", ".csv", ".json", ".doc", ".docx", ".odt", ".md", ".xml", ".tmx", ".ts"]
    + [".pdf", ".x", ".en_US.UTF-8", ".srt.gz", ".zip"],
)
def test_an_unknown_kind_is_refused_with_those_that_are_known(suffix: str) -> None:
    with pytest.raises(UsageError) as refused:
        format_of(Path(f"film{suffix}"))
    assert all(known in refused.value.what for known in (".txt", ".tsv", ".po", ".xlf", ".xliff", ".gz"))
    assert "--plain" in refused.value.hint
    assert is_plain(Path(f"film{suffix}"), plain=True)


def test_po_plural_forms_that_are_there_stay_and_the_missing_are_filled(tmp_path: Path) -> None:
    entry = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Datei"\nmsgstr[1] ""\n'
    text, tally = filled(tmp_path, "a.po", entry)
    (found,) = polib.pofile(text)
    assert found.msgstr_plural == {0: "%d Datei", 1: "%d FILES"}
    assert tally == UnitTally(1, 0)


def test_po_fuzzy_entries_are_replaced_if_asked(tmp_path: Path) -> None:
    text, _ = filled(tmp_path, "a.po", PO, again=True)
    found = {entry.msgid: entry for entry in polib.pofile(text)}
    assert (found["maybe"].msgstr, found["maybe"].fuzzy) == ("MAYBE", False)
    assert found["done"].msgstr == "DONE"


@pytest.mark.parametrize("name", ["a.xlf", "a.po"])
def test_a_broken_document_is_an_error_with_its_place(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=name):
        filled(tmp_path, name, '<xliff><trans-unit>\nmsgid "x\nbroken')


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_what_is_written_can_be_read_again_compressed_as_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.txt{suffix}"
    with opened(path) as out:
        out.write(b"one\n")
        out.write(b"two\n")
        assert not path.exists()
    assert list(files.lines(path)) == [b"one", b"two"]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_file_that_failed_half_way_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), opened(tmp_path / "out.gz") as out:
        out.write(b"one\n")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_compressed_document_is_known_by_the_name_within(tmp_path: Path) -> None:
    text, _ = filled(tmp_path, "a.tsv.gz", gzip.compress(b"one\n"))
    assert text == "one\tONE\n"


def test_an_xliff_in_utf_16_can_be_read_again(tmp_path: Path) -> None:
    (tmp_path / "in.xlf").write_bytes(XLIFF_1.replace("UTF-8", "UTF-16").encode("utf-16"))
    out = io.BytesIO()
    format_of(tmp_path / "in.xlf")(tmp_path / "in.xlf", out, capitals, False)
    assert etree.fromstring(out.getvalue()).find(".//{*}target").text == "ONE TWO"


def test_a_po_whose_charset_lacks_a_letter_becomes_utf_8(tmp_path: Path) -> None:
    def quoted(texts: Sequence[str]) -> list[str]:
        return [f"„{text}“" for text in texts]

    for charset in ("ISO-8859-1", "CHARSET"):
        content = PO.replace("charset=UTF-8", f"charset={charset}").encode("latin-1")
        (tmp_path / "in.po").write_bytes(content)
        out = io.BytesIO()
        format_of(tmp_path / "in.po")(tmp_path / "in.po", out, quoted, False)
        written = polib.pofile(out.getvalue().decode("utf-8"))
        assert written.metadata["Content-Type"] == "text/plain; charset=UTF-8"
        assert written.find("done").msgstr == "fertig"
        assert any(entry.msgstr.startswith("„") for entry in written)


def test_a_po_keeps_a_charset_that_has_all_letters(tmp_path: Path) -> None:
    content = PO.replace("charset=UTF-8", "charset=ISO-8859-1").replace("fertig", "schön").encode("latin-1")
    (tmp_path / "in.po").write_bytes(content)
    out = io.BytesIO()
    format_of(tmp_path / "in.po")(tmp_path / "in.po", out, capitals, False)
    assert "schön".encode("latin-1") in out.getvalue()


def test_the_header_of_a_po_may_be_in_lower_case(tmp_path: Path) -> None:
    content = PO.replace(
        "Content-Type: text/plain; charset=UTF-8", "content-type: text/plain; charset=ISO-8859-1"
    )
    (tmp_path / "in.po").write_bytes(content.replace("fertig", "schön").encode("latin-1"))
    out = io.BytesIO()
    format_of(tmp_path / "in.po")(tmp_path / "in.po", out, capitals, False)
    assert "schön".encode("latin-1") in out.getvalue()
    assert b"UTF-8" not in out.getvalue()


@pytest.mark.parametrize(
    ("charset", "text"), [("Shift_JIS", "表示する"), ("Big5", "功能許可"), ("GBK", "誠意")]
)
def test_a_backslash_within_a_character_is_no_escape(tmp_path: Path, charset: str, text: str) -> None:
    content = PO.replace("charset=UTF-8", f"charset={charset}").replace("fertig", text).encode(charset)
    assert b"\\" in text.encode(charset)
    (tmp_path / "in.po").write_bytes(content)
    out = io.BytesIO()
    format_of(tmp_path / "in.po")(tmp_path / "in.po", out, capitals, False)
    assert text in out.getvalue().decode(charset)


@pytest.mark.parametrize("marked", ["", "#~ ", "#| "])
@pytest.mark.parametrize("escape", ["\\a", "\\033[1m", "\\x41"])
def test_a_po_with_an_escape_that_would_change_is_refused(tmp_path: Path, escape: str, marked: str) -> None:
    lines = f'{marked}msgid "bell {escape}"\n'
    lines += 'msgid "bell"\nmsgstr ""\n' if marked == "#| " else f'{marked}msgstr ""\n'
    (tmp_path / "in.po").write_text(f"{PO}\n{lines}")
    out = io.BytesIO()
    with raising(DataError, f"{tmp_path / 'in.po'}:{PO.count(chr(10)) + 2}"):
        format_of(tmp_path / "in.po")(tmp_path / "in.po", out, capitals, False)
    assert not out.getvalue()


def test_a_po_with_backslashes_of_its_own_is_filled(tmp_path: Path) -> None:
    text, _ = filled(tmp_path, "in.po", PO + '\nmsgid "C:\\\\apps \\"x\\"\\t"\nmsgstr ""\n')
    assert 'msgid "C:\\\\apps \\"x\\"\\t"' in text
