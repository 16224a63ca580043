"""English inflection: plurals, verb forms, comparatives, a or an."""

from __future__ import annotations

import re
from typing import NamedTuple

# Persons, in both languages, are 0 to 4: I, you, he or she or it, we, they.
HE = 2
THEY = 4


class EnglishForms(NamedTuple):
    """A verb's forms, each with the words that follow it (turn *on*)."""

    base: str
    third: str
    past: str
    participle: str
    progressive: str


BE = EnglishForms("be", "is", "was", "been", "being")
BE_PRESENT = ("am", "are", "is", "are", "are")
BE_PAST = ("was", "were", "was", "were", "were")


def plural(word: str) -> str:
    if re.search(r"(s|x|ch|sh)$", word):
        return word + "es"
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + "s"


def _doubled(word: str) -> str:
    """The stem before -ed, -ing and -er. A short word doubles a single final consonant: stop, stopp."""
    return word + word[-1] if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnpt]", word) else word


def verb(column: str) -> EnglishForms:
    """The forms of `cook`, `turn on`, `see saw seen` or `get got got up`."""
    words = column.split()
    base = words[0]
    if len(words) >= 3:
        past, participle, rest = words[1], words[2], words[3:]
    else:
        past = participle = _regular_past(base)
        rest = words[1:]
    third = "has" if base == "have" else "goes" if base == "go" else plural(base)
    return EnglishForms(
        *(" ".join([form, *rest]) for form in (base, third, past, participle, _progressive(base)))
    )


def _regular_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ied"
    return _doubled(base) + "ed"


def _progressive(base: str) -> str:
    if base in ("forget", "begin", "travel"):  # doubled in spite of their two syllables
        return base + base[-1] + "ing"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return _doubled(base) + "ing"


def comparative(word: str) -> str:
    if word.endswith("y") and word != "shy":
        return word[:-1] + "ier"
    if len(re.findall(r"[aeiouy]+", word.removesuffix("e"))) > 1 and word not in ("clever", "quiet"):
        return "more " + word
    return word + "r" if word.endswith("e") else _doubled(word) + "er"


def with_a(phrase: str) -> str:
    """The phrase with a or an: `an old book`, `a book`, `a university`, which sounds like `you`."""
    return ("an " if phrase[0] in "aeiou" and not phrase.startswith("uni") else "a ") + phrase
