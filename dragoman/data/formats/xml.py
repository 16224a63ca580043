"""Reads the units of an XML file one by one, in memory that does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lxml import etree

from dragoman.data import files
from dragoman.errors import DataError

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"

# Elements that hold formatting codes of the translated document, not words. The other elements in a segment
# (hi, g, pc, mrk) only mark some of its words.
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut", "sub", "x", "bx", "ex", "sc", "ec", "cp"})

# Limits in bytes and tags held in memory at a time: a tag of 4 bytes takes more than 100 there.
MOST_OF_A_UNIT = (16 * 2**20, 500_000)  # also for the content before a unit
MOST_OF_A_TREE = (64 * 2**20, 2_000_000)

# libxml2 keeps an element's line in 16 bits; beyond that it gives the line of a text inside the element.
_LAST_EXACT_LINE = 65534


def units(path: Path, root: str, names: Sequence[str]) -> Iterator[etree._Element]:
    """Each element with one of these names, in order. It is emptied when the next one is requested.

    The root element must be called `root`.
    """
    # huge_tree stays off, because it would also lift libxml2's limit on entities that multiply.
    parser = etree.XMLPullParser(
        events=("end",),
        tag=[f"{{*}}{name}" for name in names],
        resolve_entities="internal",  # type: ignore[arg-type]  # newer than the stubs
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )
    held_bytes = held_tags = 0  # since the last unit ended, up to a block too many
    try:
        for block in files.blocks(path):
            held_bytes, held_tags = held_bytes + len(block), held_tags + block.count(b"<")
            parser.feed(block)
            for _, unit in parser.read_events():
                assert isinstance(unit, etree._Element)  # it is for every "end" event
                yield unit
                _forget(unit)
                held_bytes = held_tags = 0
            _check_size(path, held_bytes, held_tags, MOST_OF_A_UNIT, "without the end of a unit")
        root_name = name_of(parser.close())
    except etree.XMLSyntaxError as error:
        raise broken(path, error) from error
    if root_name != root:
        raise DataError(
            f"found <{root_name}> as the root element, expected <{root}>",
            path=path,
            line=1,
            hint="give the file the suffix of its real format",
        )


def whole(path: Path) -> bytes:
    """The content of a file that will be held in memory as a tree."""
    content, tags = bytearray(), 0
    for block in files.blocks(path):
        content += block
        tags += block.count(b"<")
        _check_size(path, len(content), tags, MOST_OF_A_TREE, "in a file that is held in memory as a whole")
    return bytes(content)


def _check_size(path: Path, held_bytes: int, held_tags: int, most: tuple[int, int], where: str) -> None:
    if held_bytes > most[0] or held_tags > most[1]:
        raise DataError(
            f"{held_bytes:,} bytes and {held_tags:,} tags {where}; "
            f"the limits are {most[0]:,} bytes and {most[1]:,} tags",
            path=path,
            hint="split the file; if it is small on disk, it was made to fill the memory",
        )


def _forget(unit: etree._Element) -> None:
    """Frees the unit and everything before it, including its ancestors' emptied siblings."""
    unit.clear()
    for element in (unit, *unit.iterancestors()):
        parent = element.getparent()
        while parent is not None and element.getprevious() is not None:
            del parent[0]


def name_of(element: etree._Element) -> str:
    """The element's name without its namespace: tools disagree on which namespace to write, if any."""
    return etree.QName(element).localname


def child(element: etree._Element, name: str) -> etree._Element | None:
    return element.find(f"{{*}}{name}")


def words(element: etree._Element | None) -> str:
    """The text of a segment without formatting codes; empty if there is no segment."""
    if element is None:
        return ""
    parts = [element.text or ""]
    for inner in element:
        if holds_words(inner):
            parts.append(words(inner))
        parts.append(inner.tail or "")
    return "".join(parts)


def holds_words(element: etree._Element) -> bool:
    """Does this element mark words, instead of holding a code of the translated document?"""
    return name_of(element) not in _CODES


def line_of(unit: etree._Element) -> int:
    """The line of the file on which the unit begins."""
    line: int = unit.sourceline or 1  # type: ignore[assignment]  # the stubs leave its type open
    if line <= _LAST_EXACT_LINE:
        return line
    # libxml2 gave the line of the first text inside the unit, which is the line where that text ends.
    first = unit
    while first.text is None and len(first):
        first = first[0]
    return line - (first.text or "").count("\n")


def broken(path: Path, error: etree.XMLSyntaxError) -> DataError:
    return DataError(
        f"broken XML: {error.msg}",
        path=path,
        line=error.lineno or 1,
        hint=f"xmllint --noout {path.name} shows the place; correct it there, or export the file again",
    )
