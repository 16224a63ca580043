"""PO: each empty `msgstr` is filled from its `msgid`; placeholders stay.

The first plural form comes from `msgid` and all others from `msgid_plural`: a language with three or more
forms needs a human check. Fuzzy entries hold a translation that awaits review, and count as translated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import polib

from dragoman.data.formats.po import NO_CHARSET, check_escapes, parse
from dragoman.decode.documents.document import OutputWriter, Translate, UnitTally
from dragoman.decode.documents.placeholders import translate_keeping
from dragoman.errors import DataError

_MOST_FORMS = 20  # Arabic has six, the most in use


def fill(source: Path, out: OutputWriter, translate: Translate, again: bool) -> UnitTally:
    catalogue = parse(source)
    check_escapes(source, catalogue.encoding)
    forms = _plural_forms(catalogue, source)
    wanted = [(entry, gaps) for entry in catalogue if (gaps := _gaps(entry, forms, again))]
    gaps = [gap for _, gaps_of_entry in wanted for gap in gaps_of_entry]
    for (_, put), text in zip(gaps, translate_keeping([text for text, _ in gaps], translate), strict=True):
        put(text)
    for entry, _ in wanted:
        entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
        entry.previous_msgid = entry.previous_msgid_plural = entry.previous_msgctxt = None
    out.write(_encoded(catalogue) + b"\n")
    return UnitTally(len(wanted), len(catalogue) - len(wanted))


def languages(path: Path) -> list[tuple[str, str]]:
    """The catalogue's own language; that of its `msgid` is not written anywhere."""
    return [("", parse(path).metadata.get("Language", ""))]


def _encoded(catalogue: polib.POFile) -> bytes:
    """The file's bytes, in its own charset if that has every letter needed, else in UTF-8."""
    header = next((name for name in catalogue.metadata if name.lower() == "content-type"), "Content-Type")
    named = catalogue.metadata.get(header, "").partition("charset=")[2]
    if named and named != NO_CHARSET:
        with suppress(UnicodeEncodeError):
            return str(catalogue).encode(catalogue.encoding)
    catalogue.metadata[header] = "text/plain; charset=UTF-8"
    return str(catalogue).encode()


Gap = tuple[str, Callable[[str], None]]  # a text to translate, and the function that stores its translation


def _gaps(entry: polib.POEntry, forms: int, again: bool) -> list[Gap]:
    """The gaps of an entry; an empty list if the entry stays as it is."""
    has_translation = bool(entry.msgstr) or any(entry.msgstr_plural.values())
    if entry.obsolete or (entry.fuzzy and has_translation and not again):
        return []
    if not entry.msgid_plural:
        return [] if entry.msgstr and not again else [(entry.msgid, partial(setattr, entry, "msgstr"))]
    # A language with one form uses it for several things more often than for one.
    texts = [entry.msgid, *[entry.msgid_plural] * (forms - 1)] if forms > 1 else [entry.msgid_plural]
    filled = entry.msgstr_plural
    return [
        (text, partial(filled.__setitem__, form))
        for form, text in enumerate(texts)
        if again or not filled.get(form)
    ]


def _plural_forms(catalogue: polib.POFile, path: Path) -> int:
    """The number of plural forms in the header; two, as in most languages, if it names none."""
    named = re.search(r"nplurals\s*=\s*(\d+)", catalogue.metadata.get("Plural-Forms", ""))
    if named and (len(named[1]) > 3 or int(named[1]) > _MOST_FORMS):
        raise DataError(
            f"the header says nplurals={named[1][:20]}; no language has more than six plural forms",
            path=path,
            hint="correct the Plural-Forms header",
        )
    return max(1, int(named[1])) if named else 2
