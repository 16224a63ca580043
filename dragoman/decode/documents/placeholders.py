"""Placeholders, tags and addresses in a text: in its translation there is each of them, unchanged.

A text is translated whole first, because a sentence in pieces loses its grammar. Only if the model lost or
changed a placeholder are the pieces between them translated one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import regex

from dragoman.decode.documents.document import Translate

_PLACEHOLDER = regex.compile(
    r"""
      %(?:\d+\$|\(\w+\))?[-+\#0]*\d*(?:\.\d+)?(?:hh?|ll?|[jztL])?[diouxXeEfFgGcrsap@%]  # %s %1$d %(x)s %%
    | \$?\{\{?[^{}\n]*\}\}?                # {0} {name} ${x} {{x}}
    | </?[A-Za-z][^<>]*>                   # <b> </a> <br/>
    | &(?:\#\d+|\#x[\da-fA-F]+|[A-Za-z]\w*);  # &nbsp; &#160;
    | https?://[^\s<>"]+
    """,
    regex.VERBOSE,
)
_WORD = regex.compile(r"\p{L}")


def found_in(text: str) -> Counter[str]:
    return Counter(_PLACEHOLDER.findall(text))


def translate_keeping(texts: Sequence[str], translate: Translate) -> list[str]:
    """The translation of each text, with its placeholders. What has no word beside them is left as it is."""
    results = list(texts)
    wanted = [number for number, text in enumerate(texts) if _WORD.search(_PLACEHOLDER.sub("", text))]
    for number, translation in zip(wanted, translate([texts[number] for number in wanted]), strict=True):
        results[number] = translation
    lossy = [number for number in wanted if found_in(texts[number]) != found_in(results[number])]
    if lossy:
        for number, mended in zip(lossy, _piecewise([texts[n] for n in lossy], translate), strict=True):
            results[number] = mended
    return results


def _piecewise(texts: Sequence[str], translate: Translate) -> list[str]:
    split = [regex.split(f"({_PLACEHOLDER.pattern})", text, flags=regex.VERBOSE) for text in texts]
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
