"""TMX: translation memories, with a `tu` per unit and in it a `tuv` per language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from dragoman.data.formats import xml
from dragoman.data.formats.languages import choose
from dragoman.data.formats.pair import NO_SOURCE_LANGUAGE, NO_TARGET_LANGUAGE, RawPair, pair_up
from dragoman.data.formats.unmatched import Unmatched


def read(path: Path, source_language: str, target_language: str, skipped: Counter[str]) -> Iterator[RawPair]:
    unmatched = Unmatched(path, source_language, target_language)
    for unit in xml.units(path, "tmx", ["tu"]):
        line = xml.line_of(unit)
        variants = _variants(unit)
        source = choose(source_language, variants)
        target = choose(target_language, variants)
        unmatched.note(variants, source is not None, target is not None, line)
        if source is None:
            skipped[NO_SOURCE_LANGUAGE] += 1
        elif target is None:
            skipped[NO_TARGET_LANGUAGE] += 1
        else:
            yield from pair_up(variants[source], variants[target], line, skipped)
    unmatched.check()


def _variants(unit: etree._Element) -> dict[str, str]:
    """The unit's text by language. If a language occurs twice, its first variant counts."""
    variants: dict[str, str] = {}
    for variant in unit.iterfind("{*}tuv"):
        language = variant.get(xml.LANGUAGE) or variant.get("lang") or ""  # `lang`: TMX 1.1
        variants.setdefault(language, xml.words(xml.child(variant, "seg")))
    return variants
