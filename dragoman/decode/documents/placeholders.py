"""Keeps placeholders, tags and web addresses unchanged in translations.

A text is first translated whole, because a sentence in pieces loses its grammar. Only if the model lost or
changed a placeholder, or moved one to where its meaning changes, are the pieces between placeholders
translated one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import regex

from dragoman.decode.documents.document import Translate


def _braces(depth: int) -> str:
    """A pattern of braces nested `depth` deep; a recursive one would be quadratic in braces left open."""
    inside = _braces(depth - 1) if depth else "(?!)"
    return rf"\{{(?:[^{{}}]++|{inside})*+\}}"


# A nested message, {n, plural, one {# day} other {# days}}, is one placeholder: only its whole grammar tells
# its keywords from the words to translate.
# Quantifiers are possessive (*+, ++): with backtracking they would be quadratic in a tag left open.
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
_NAMED = regex.compile(r"%(?:\d+\$|\(|%)")  # %1$s %(x)s %%: their meaning does not depend on position
_WORD = regex.compile(r"\p{L}")


def placeholders_in(text: str) -> Counter[str]:
    return Counter(match[0] for match in _PLACEHOLDER.finditer(text))


def translate_keeping(texts: Sequence[str], translate: Translate) -> list[str]:
    """Translate texts and keep their placeholders; a text with no word beside them stays as it is."""
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
    """Whether it has the same placeholders, in an order that keeps their meaning."""
    if placeholders_in(translation) != placeholders_in(source):
        return False
    if _positional(translation) != _positional(source):
        return False
    return _are_nested(translation) or not _are_nested(source)


def _positional(text: str) -> list[str]:
    """The placeholders whose meaning depends on their position: %s %d, {} {}."""
    candidates = [match[0] for match in _PLACEHOLDER.finditer(text) if match["printf"] or match[0] == "{}"]
    return [placeholder for placeholder in candidates if not _NAMED.match(placeholder)]


def _are_nested(text: str) -> bool:
    """Whether every closing tag closes one that is still open."""
    is_open: list[str] = []
    names: Counter[str] = Counter()  # of open tags; searching the list instead would be quadratic
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
    # Even positions hold text, odd ones placeholders.
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
    """Text and placeholders in alternation; the first and last parts are text."""
    parts, end = [], 0
    for match in _PLACEHOLDER.finditer(text):
        parts += [text[end : match.start()], match[0]]
        end = match.end()
    return [*parts, text[end:]]
