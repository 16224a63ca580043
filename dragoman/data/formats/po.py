"""PO: gettext catalogues, with `msgid` as source and `msgstr` as target."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polib

from dragoman.data import files
from dragoman.data.formats.languages import matches
from dragoman.data.formats.pair import FUZZY, OBSOLETE, RawPair, pair_up
from dragoman.errors import DataError

# polib holds the whole catalogue in memory, at some twenty times its size. The largest real ones have a few
# megabytes. A larger file is of another kind, or a compressed one made to fill the memory.
LARGEST_BYTES = 32 * 2**20
# polib joins the lines of a text or comment one by one, which takes time quadratic in their number.
MOST_LINES = 5_000
NO_CHARSET = "CHARSET"  # the placeholder in a template
# An escape that polib does not know (\a, \033) keeps its backslash, and polib writes it with a second one.
# This includes comments with obsolete (#~) and previous texts (#|), which polib writes anew.
_UNKNOWN_ESCAPE = re.compile(r"""^(?!#[^~|]).*?(?<!\\)(?:\\\\)*(\\[^\\ntrvbf"])""")
_KEYWORD = re.compile(r"\s*(?:#~)?\s*msg")


def read(path: Path, source_language: str, target_language: str, skipped: Counter[str]) -> Iterator[RawPair]:
    catalogue = parse(path)
    language = catalogue.metadata.get("Language", "")
    if language and not matches(target_language, language):
        raise DataError(
            f"the catalogue is in {language}, expected {target_language}",
            path=path,
            line=1,
            hint="name the language as the Language header does, or correct the header",
        )
    for entry in catalogue:
        line = max(entry.linenum, 1)  # polib counts from 0 for the first entry only
        if entry.obsolete:
            skipped[OBSOLETE] += 1
        elif entry.fuzzy:
            skipped[FUZZY] += 1
        elif entry.msgid_plural:
            # In most languages form 0 is the singular and form 1 the plural. Further forms (Slavic, Arabic)
            # have no source sentence of their own, and pairing them would teach wrong numbers.
            for text, form in ((entry.msgid, 0), (entry.msgid_plural, 1)):
                if form in entry.msgstr_plural:
                    yield from pair_up(text, entry.msgstr_plural[form], line, skipped)
        else:
            yield from pair_up(entry.msgid, entry.msgstr, line, skipped)


class _Text(str):
    """A text whose `splitlines`, which polib calls, splits at LF only, not at U+2028, U+0085 and others."""

    def splitlines(self, keepends: bool = False) -> list[str]:
        return self.split("\n")


def parse(path: Path) -> polib.POFile:
    """The catalogue in a PO file."""
    content = _content(path)
    charset = re.search(rb"charset=([\w.:-]+)", content)
    encoding = charset[1].decode("ascii", "replace") if charset else "utf-8"
    if encoding == NO_CHARSET:
        encoding = "utf-8"
    try:
        text = content.decode(encoding)
        _check_lines(path, text)
        # The line break at the end keeps polib from taking a short text for a file name.
        return polib.pofile(_Text(text + "\n"), encoding=encoding)
    except DataError:
        raise
    except Exception as error:  # polib's parser raises IndexError and others on damaged files
        raise DataError(
            f"not a readable PO file ({error})",
            path=path,
            line=_line_of(error, content),
            hint=f"msgfmt --check {path.name} shows what is wrong",
        ) from error


def check_escapes(path: Path, encoding: str) -> None:
    """Raises if polib would change a text of the catalogue by writing it. Called before it is filled in."""
    # Decoded first: in Shift_JIS, Big5 and GBK a backslash may be the second half of a character.
    for number, line in enumerate(_content(path).decode(encoding).split("\n"), 1):
        if escape := _UNKNOWN_ESCAPE.match(line):
            raise DataError(
                f"the escape {escape[1]} cannot be kept unchanged",
                path=path,
                line=number,
                hint="write the character itself, or remove the entry",
            )


def _content(path: Path) -> bytes:
    content = bytearray()
    for block in files.text(path):
        content += block
        if len(content) > LARGEST_BYTES:
            raise DataError(
                f"larger than {LARGEST_BYTES:,} bytes, too large for a PO file",
                path=path,
                hint="split the catalogue, for instance with msggrep",
            )
    return bytes(content)


def _check_lines(path: Path, text: str) -> None:
    lines = 0  # since the last line that begins a text
    for number, line in enumerate(text.split("\n"), 1):
        lines = 0 if _KEYWORD.match(line) else lines + 1
        if lines > MOST_LINES:
            raise DataError(
                f"a text or a comment of more than {MOST_LINES:,} lines",
                path=path,
                line=number - lines + 1,
                hint="check that this is a PO file; msgcat --width=1000 joins short lines",
            )


def _line_of(error: Exception, content: bytes) -> int | None:
    if isinstance(error, UnicodeDecodeError):
        return content.count(b"\n", 0, error.start) + 1
    number = re.search(r"line (\d+)", str(error))
    return int(number[1]) if number else None
