"""PO: each empty `msgstr` is filled from its `msgid`; placeholders stay.

Of plural forms the first comes from `msgid` and all others from `msgid_plural`: a language with three or more
needs a human look. Fuzzy entries have a translation that somebody is to look at, and count as translated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import polib

from dragoman.data.formats.po import parse
from dragoman.decode.documents.document import Tally, Translate, Writer
from dragoman.decode.documents.placeholders import translate_keeping


def fill(source: Path, out: Writer, translate: Translate, again: bool) -> Tally:
    catalogue = parse(source)
    forms = _plural_forms(catalogue)
    wanted = [entry for entry in catalogue if not entry.obsolete and (again or not _is_translated(entry))]
    gaps = [gap for entry in wanted for gap in _gaps(entry, forms)]
    for (_, put), text in zip(gaps, translate_keeping([text for text, _ in gaps], translate), strict=True):
        put(text)
    for entry in wanted:
        entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
        entry.previous_msgid = entry.previous_msgid_plural = entry.previous_msgctxt = None
    out.write(str(catalogue).encode(catalogue.encoding) + b"\n")
    return Tally(len(wanted), len(catalogue) - len(wanted))


def _is_translated(entry: polib.POEntry) -> bool:
    return any(entry.msgstr_plural.values()) if entry.msgid_plural else bool(entry.msgstr)


def _gaps(entry: polib.POEntry, forms: int) -> list[tuple[str, Callable[[str], None]]]:
    """Each text to translate, and what takes its translation."""
    if not entry.msgid_plural:
        return [(entry.msgid, lambda text: setattr(entry, "msgstr", text))]
    # A language with one form uses it for several things more often than for one.
    texts = [entry.msgid, *[entry.msgid_plural] * (forms - 1)] if forms > 1 else [entry.msgid_plural]
    return [
        (text, lambda found, form=form: entry.msgstr_plural.__setitem__(form, found))  # type: ignore[misc]
        for form, text in enumerate(texts)
    ]


def _plural_forms(catalogue: polib.POFile) -> int:
    """As the header says; two, as in most languages, if it does not."""
    named = re.search(r"nplurals\s*=\s*(\d+)", catalogue.metadata.get("Plural-Forms", ""))
    return max(1, int(named[1])) if named else 2
