"""XLIFF 1.2 and 2.x: fills in targets and keeps inline tags.

The target is a copy of the source in which each stretch of text between two tags is translated separately:
tags stay complete and in order, whatever the model does. The price is that the words before and after a tag
inside a sentence are translated without each other. Text marked `translate="no"` or as protected stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lxml import etree

from dragoman.data.formats import xml
from dragoman.data.formats.xliff import FIRST_STATE, UNTRANSLATED_STATES
from dragoman.decode.documents.document import OutputWriter, Translate, UnitTally
from dragoman.decode.documents.placeholders import translate_keeping
from dragoman.errors import DataError

_TEXTS = ("{*}source", "{*}seg-source", "{*}target")
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def fill(source: Path, out: OutputWriter, translate: Translate, again: bool) -> UnitTally:
    tree = _parse(source)
    tally = UnitTally()
    gaps: list[_Stretch] = []
    for place, unit in _places(tree):
        gaps += _fill_unit(place, unit, again, tally)
    translations = translate_keeping([stretch.text for stretch in gaps], translate)
    for stretch, translation in zip(gaps, translations, strict=True):
        setattr(stretch.element, stretch.place, translation)
    encoding = tree.docinfo.encoding or "UTF-8"
    text: bytes = etree.tostring(tree, encoding=encoding, xml_declaration=True)  # type: ignore[assignment]
    ending = "\n".encode(encoding)
    out.write(text + ending if ending == b"\n" else text)  # in UTF-16 the byte order would matter
    return tally


def languages(path: Path) -> list[tuple[str, str]]:
    """The source and target language of each part of the file; empty where it names none."""
    root = _parse(path).getroot()
    parts = [(root.get("srcLang", ""), root.get("trgLang", ""))]
    files = root.iterfind("{*}file")
    return parts + [(file.get("source-language", ""), file.get("target-language", "")) for file in files]


@dataclass(frozen=True)
class _Stretch:
    """Text in an element, before its first child or after its end."""

    element: etree._Element
    place: Literal["text", "tail"]

    @property
    def text(self) -> str:
        return getattr(self.element, self.place) or ""


def _parse(path: Path) -> etree._ElementTree:
    parser = etree.XMLParser(
        resolve_entities="internal",  # type: ignore[arg-type]  # newer than the stubs
        no_network=True,
        load_dtd=False,
        strip_cdata=False,
    )
    try:
        root = etree.fromstring(xml.whole(path), parser)
    except etree.XMLSyntaxError as error:
        raise xml.broken(path, error) from error
    if xml.name_of(root) != "xliff":
        raise DataError(
            f"found <{xml.name_of(root)}> as the outermost element, expected <xliff>", path=path, line=1
        )
    return root.getroottree()


def _places(tree: etree._ElementTree) -> list[tuple[etree._Element, etree._Element]]:
    """The elements that get a target, each `trans-unit` or `segment`, with its unit.

    The list is complete before anything is filled in, and leaves out elements inside a source: a target is a
    copy of its source, so they would be found again in the copy and double with every level.
    """
    places = [(unit, unit) for unit in tree.iterfind(".//{*}trans-unit")]
    places += [(segment, _unit_of(segment)) for segment in tree.iterfind(".//{*}segment")]
    return [(place, unit) for place, unit in places if not any(True for _ in place.iterancestors(*_TEXTS))]


def _unit_of(segment: etree._Element) -> etree._Element:
    return next((outer for outer in segment.iterancestors("{*}unit")), segment)


def _fill_unit(
    place: etree._Element, unit: etree._Element, again: bool, tally: UnitTally
) -> Iterator[_Stretch]:
    """Insert a copy of the source as the target; returns its stretches to translate."""
    source, target = xml.child(place, "seg-source"), xml.child(place, "target")
    if source is None:
        source = xml.child(place, "source")
    if source is None or _is_excluded(unit) or (_is_translated(place, target) and not again):
        tally.left += 1
        return iter(())
    tally.translated += 1
    filled = _as_target(source, target)
    if target is None:
        source.addnext(filled)
    else:
        place.replace(target, filled)
    _mark(place, filled)
    return _stretches(filled)


def _as_target(source: etree._Element, target: etree._Element | None) -> etree._Element:
    """A copy of the source with the name, attributes and trailing white space of a target."""
    copy = deepcopy(source)
    copy.tag = etree.QName(etree.QName(source).namespace, "target").text
    copy.attrib.clear()
    if _SPACE in source.attrib:
        copy.set(_SPACE, source.attrib[_SPACE])
    if target is not None:
        copy.attrib.update(dict(target.attrib))
    copy.tail = source.tail if target is None else target.tail
    return copy


def _is_excluded(unit: etree._Element) -> bool:
    """Whether the unit or an element around it is marked as not to be translated."""
    marks = (element.get("translate") for element in (unit, *unit.iterancestors()))
    return next((mark for mark in marks if mark), "yes") == "no"


def _is_translated(place: etree._Element, target: etree._Element | None) -> bool:
    if target is None or target.get("state") in UNTRANSLATED_STATES or place.get("state") == FIRST_STATE:
        return False
    return any(stretch.text.strip() for stretch in _stretches(target))


def _mark(place: etree._Element, target: etree._Element) -> None:
    """Mark the target as machine translation for whoever opens the file (XLIFF 2 has no such state).

    Attributes about an earlier target, such as its approval, no longer hold and are removed.
    """
    for attribute in ("approved", "subState"):
        place.attrib.pop(attribute, "")
    if xml.name_of(place) == "segment":
        place.set("state", "translated")
    else:
        target.set("state", "needs-review-translation")
        target.set("state-qualifier", "mt-suggestion")


def _stretches(element: etree._Element) -> Iterator[_Stretch]:
    yield _Stretch(element, "text")
    for inner in element:
        if isinstance(inner.tag, str) and xml.holds_words(inner) and not _is_protected(inner):
            yield from _stretches(inner)
        yield _Stretch(inner, "tail")


def _is_protected(element: etree._Element) -> bool:
    return element.get("translate") == "no" or element.get("mtype") == "protected"
