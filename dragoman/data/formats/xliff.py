"""XLIFF 1.2 (`trans-unit`) and 2.x (`unit` with `segment`s)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from dragoman.data.formats import xml
from dragoman.data.formats.languages import matches
from dragoman.data.formats.pair import NO_SOURCE_LANGUAGE, NO_TARGET_LANGUAGE, RawPair, pair_up
from dragoman.data.formats.unmatched import Unmatched

# States in which a tool has filled the target with a copy of the source, in XLIFF 1.2 and in a segment of 2.
UNTRANSLATED_STATES = frozenset({"new", "needs-translation"})
FIRST_STATE = "initial"


def read(path: Path, source_language: str, target_language: str, skipped: Counter[str]) -> Iterator[RawPair]:
    unmatched = Unmatched(path, source_language, target_language)
    for unit in xml.units(path, "xliff", ["trans-unit", "unit"]):
        line = xml.line_of(unit)
        source, target = _languages(unit)
        # A file need not name its languages; then those that the user named are assumed.
        has_source = not source or matches(source_language, source)
        has_target = not target or matches(target_language, target)
        unmatched.note((source, target), has_source, has_target, line)
        if not has_source:
            skipped[NO_SOURCE_LANGUAGE] += 1
        elif not has_target:
            skipped[NO_TARGET_LANGUAGE] += 1
        else:
            for source_text, target_text in _segments(unit):
                yield from pair_up(source_text, target_text, line, skipped)
    unmatched.check()


def _languages(unit: etree._Element) -> tuple[str, str]:
    """The source and target language of a unit: its own, else those of the nearest enclosing element."""
    source = target = ""
    source_element, target_element = xml.child(unit, "source"), xml.child(unit, "target")
    if source_element is not None:
        source = source_element.get(xml.LANGUAGE, "")
    if target_element is not None:
        target = target_element.get(xml.LANGUAGE, "")
    for element in unit.iterancestors():
        source = source or element.get("source-language") or element.get("srcLang") or ""
        target = target or element.get("target-language") or element.get("trgLang") or ""
    return source, target


def _segments(unit: etree._Element) -> Iterator[tuple[str, str]]:
    """The source and target of each segment. The target is empty if there is no translation."""
    if xml.name_of(unit) == "unit":
        for segment in unit.iterfind("{*}segment"):
            is_begun = segment.get("state") != FIRST_STATE
            target = xml.child(segment, "target") if is_begun else None
            yield xml.words(xml.child(segment, "source")), xml.words(target)
        return
    target = xml.child(unit, "target")
    if target is not None and target.get("state") in UNTRANSLATED_STATES:
        target = None
    source_parts, target_parts = _marked(xml.child(unit, "seg-source")), _marked(target)
    if source_parts and target_parts:
        for mark, text in source_parts.items():
            yield text, target_parts.get(mark, "")
    else:
        yield xml.words(xml.child(unit, "source")), xml.words(target)


def _marked(element: etree._Element | None) -> dict[str, str]:
    """The text of the segments marked inside a seg-source or target, by id."""
    if element is None:
        return {}
    marks = element.iterfind(".//{*}mrk[@mtype='seg']")
    return {mark.get("mid", ""): xml.words(mark) for mark in marks}
