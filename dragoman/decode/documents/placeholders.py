"""Placeholders, tags and addresses in a text: in its translation there is each of them, unchanged.

A text is translated whole first, because a sentence in pieces loses its grammar. Only if the model lost or
changed a placeholder, or put one where it means something else, are the pieces between them translated one by
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import regex

from dragoman.decode.documents.document import Translate


def _braces(depth: int) -> str:
    """A pattern of braces with others inside. A recursive one would be quadratic in braces left open."""
    inside = _braces(depth - 1) if depth else "(?!)"
    return rf"\{{(?:[^{{}}]++|{inside})*+\}}"


# A message with others inside, {n, plural, one {# day} other {# days}}, is one placeholder: its words for a
# program and its words for people cannot be told apart without its whole grammar.
# Quantifiers are possessive (*+, ++): one that gave back what it took would be quadratic in a tag left open.
_PLACEHOLDER = regex.compile(
    rf"""
      (?P<printf>%(?:\d++\$|\(\w++\))?[-+\#0]*+\d*+(?:\.\d++)?(?:hh?|ll?|[jztL])?[diouxXeEfFgGcrsap@%])
    | \$?{_braces(5)}                     # {{0}} {{name}} ${{x}}
    | (?P<tag></?(?P<name>[A-Za-z][\w:-]*+)[^<>]*+>)  # <b> </a> <br/>
    | &(?:\#\d++|\#x[\da-fA-F]++|[A-Za-z]\w*+);  # &nbsp; &#160;
    | https?://[^\s<>"]+
    """,
    regex.VERBOSE,
)
_NAMED = regex.compile(r"%(?:\d+\$|\(|%)")  # %1$s %(x)s %%: they mean the same wherever they stand
_WORD = regex.compile(r"\p{L}")


def found_in(text: str) -> Counter[str]:
    return Counter(match[0] for match in _PLACEHOLDER.finditer(text))


def translate_keeping(texts: Sequence[str], translate: Translate) -> list[str]:
    """The translation of each text, with its placeholders. What has no word beside them is left as it is."""
    results = list(texts)
    wanted = [number for number, text in enumerate(texts) if _WORD.search(_PLACEHOLDER.sub("", text))]
    for number, translation in zip(wanted, translate([texts[number] for number in wanted]), strict=True):
        results[number] = translation
    lossy = [number for number in wanted if not _keeps(results[number], texts[number])]
    if lossy:
        for number, mended in zip(lossy, _piecewise([texts[n] for n in lossy], translate), strict=True):
            results[number] = mended
    return results


def _keeps(translation: str, source: str) -> bool:
    """Does it have the same placeholders, in an order in which they mean the same?"""
    if found_in(translation) != found_in(source) or _by_place(translation) != _by_place(source):
        return False
    return _are_nested(translation) or not _are_nested(source)


def _by_place(text: str) -> list[str]:
    """Those that mean something by their place among each other: %s %d, {} {}."""
    found = [match[0] for match in _PLACEHOLDER.finditer(text) if match["printf"] or match[0] == "{}"]
    return [placeholder for placeholder in found if not _NAMED.match(placeholder)]


def _are_nested(text: str) -> bool:
    """Is each tag that is closed one that was opened, and the last one?"""
    is_open: list[str] = []
    names: Counter[str] = Counter()  # of those open: a search through them would be quadratic in their number
    for match in _PLACEHOLDER.finditer(text):
        tag, name = match["tag"], match["name"]
        if not tag or tag.endswith("/>"):
            continue
        if not tag.startswith("</"):
            is_open.append(name)
            names[name] += 1
        elif names[name]:
            last = None
            while last != name:  # <br> and <img> are never closed
                last = is_open.pop()
                names[last] -= 1
        else:
            return False
    return True


def _piecewise(texts: Sequence[str], translate: Translate) -> list[str]:
    split = [_parts(text) for text in texts]
    # Even places are text, odd ones placeholders.
    pieces = [piece for parts in split for piece in parts[::2] if _WORD.search(piece)]
    translated = iter(translate(pieces))
    return [
        "".join(
            next(translated) if place % 2 == 0 and _WORD.search(piece) else piece
            for place, piece in enumerate(parts)
        )
        for parts in split
    ]


def _parts(text: str) -> list[str]:
    """Text and placeholders in turn; the first and the last are text."""
    parts, end = [], 0
    for match in _PLACEHOLDER.finditer(text):
        parts += [text[end : match.start()], match[0]]
        end = match.end()
    return [*parts, text[end:]]
