"""German inflection: articles and adjective endings by case and gender, nouns by case, verbs by person."""

from __future__ import annotations

import re
from typing import NamedTuple

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
CASES = {"acc": ACCUSATIVE, "dat": DATIVE}
# The plural has one declension for all genders, so the tables treat it as a fourth gender.
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
ARTICLES = {"der": MASCULINE, "die": FEMININE, "das": NEUTER}

Table = tuple[tuple[str, ...], ...]  # by case, then gender


def _table(text: str, stem: str = "") -> Table:
    """Parses a table with four rows by case and four columns by gender. A dash is an empty ending."""
    return tuple(tuple(stem + ending.strip("-") for ending in row.split()) for row in text.split("/"))


DEFINITE = _table("der die das die / den die das die / dem der dem den / des der des der")
RELATIVE = _table("der die das die / den die das die / dem der dem denen / dessen deren dessen deren")
_EIN = "- e - e / en e - e / em er em en / es er es er"
_DIESER = "er e es e / en e es e / em er em en / es er es er"
WEAK = _table("e e e en / en e e en / en en en en / en en en en")
MIXED = _table("er e es en / en e es en / en en en en / en en en en")
STRONG = _table("er e es e / en e es e / em er em en / en er en er")


def like_ein(stem: str) -> Table:
    """The forms of ein, kein, mein and the like."""
    return _table(_EIN, stem)


def like_dieser(stem: str) -> Table:
    """The forms of dieser, jeder, viele."""
    return _table(_DIESER, stem)


# A preposition and the article it contracts with. Only for `der`: im Haus, but in dem (in which), in diesem.
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
}


def noun(word: str, plural: str, gender: int, weak: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The singular and the plural forms of a noun, each by case."""
    if weak:
        singular = (word, plural, plural, plural + ("s" if word == "Name" else ""))
    elif gender == FEMININE:
        singular = (word,) * 4
    else:
        singular = (word, word, word, _genitive(word, plural))
    dative_plural = plural if plural.endswith(("n", "s")) else plural + "n"
    return singular, (plural, plural, dative_plural, plural)


def _genitive(word: str, plural: str) -> str:
    if plural == word + "s" or word.endswith("ee"):  # des Parks, des Tees
        return word + "s"
    if plural == word + "se":  # des Geheimnisses
        return word + "ses"
    syllables = len(re.findall(r"[aeiouyäöü]+", word.lower()))
    return word + ("es" if syllables == 1 or re.search(r"(s|ß|z|x|sch)$", word) else "s")


class GermanForms(NamedTuple):
    """A verb's forms. In a main clause `present` is second, `particle` last; `final` ends other clauses."""

    infinitive: str
    present: tuple[str, ...]  # by person: ich, du, er, wir, sie
    particle: str
    final: tuple[str, ...]
    participle: str
    auxiliary: tuple[str, ...]  # haben or sein, by person
    zu_infinitive: str
    imperative: str
    preterite: tuple[str, ...] = ()  # only where speech uses it: war, hatte, wusste


HABEN = ("habe", "hast", "hat", "haben", "haben")
HATTE = ("hatte", "hattest", "hatte", "hatten", "hatten")
BIN = ("bin", "bist", "ist", "sind", "sind")
WAR = ("war", "warst", "war", "waren", "waren")
WERDEN = ("werde", "wirst", "wird", "werden", "werden")
WUSSTE = ("wusste", "wusstest", "wusste", "wussten", "wussten")
WEISS = ("weiß", "weißt", "weiß", "wissen", "wissen")
SEIN = GermanForms("sein", BIN, "", BIN, "gewesen", BIN, "zu sein", "sei", WAR)


def verb(column: str) -> GermanForms:
    """The forms of `kochen`, `auf|machen`, `lesen liest gelesen` or `gehen geht ist gegangen`."""
    infinitive, *irregular = column.split()
    particle, _, infinitive = infinitive.rpartition("|")
    stem = re.sub(r"e?n$", "", infinitive)
    # -et where -t could not be pronounced: arbeitet, findet, öffnet, zeichnet.
    linking = "e" if re.search(r"([td]|ch[mn]|[^aeiouäöülrhmn][mn])$", stem) else ""
    regular_third = stem + linking + "t"
    third = irregular[0] if irregular else regular_third
    participle = irregular[-1] if irregular else _regular_participle(regular_third)
    present = _present(infinitive, stem, linking, third, third == regular_third)
    return GermanForms(
        infinitive=particle + infinitive,
        present=present,
        particle=particle,
        final=tuple(particle + form for form in present),
        participle=particle + participle,
        auxiliary=BIN if "ist" in irregular else HABEN,
        zu_infinitive=particle + "zu" + infinitive if particle else "zu " + infinitive,
        imperative=_imperative(infinitive, stem, linking, third),
        preterite={"haben": HATTE, "wissen": WUSSTE}.get(infinitive, ()),
    )


def _present(infinitive: str, stem: str, linking: str, third: str, regular: bool) -> tuple[str, ...]:
    if infinitive == "haben":
        return HABEN
    if infinitive == "wissen":
        return WEISS
    first = _with_e(infinitive, stem)
    if regular:
        second = stem + ("t" if re.search(r"[sßz]$", stem) else linking + "st")
    else:
        second = third if re.search(r"[sßz]t$", third) else third[:-1] + "st"
    return first, second, third, infinitive, infinitive


def _with_e(infinitive: str, stem: str) -> str:
    """The first person singular: ich sammle, ich plaudere, ich spiele."""
    return stem[:-2] + "le" if infinitive.endswith("eln") else stem + "e"


def _regular_participle(third: str) -> str:
    return third if re.match(r"(be|ver|er|ent|ge)", third) or third.endswith("iert") else "ge" + third


def _imperative(infinitive: str, stem: str, linking: str, third: str) -> str:
    """The informal imperative. Lies, gib, hilf keep the vowel of liest, gibt, hilft; fahr does not."""
    changed = third.removesuffix("t")
    if changed != stem and not re.search(r"[äöü]", changed):
        return changed
    if infinitive.endswith(("eln", "ern", "ieren")):
        return _with_e(infinitive, stem)
    return stem + linking


def modal(singular: str, plural: str) -> tuple[str, ...]:
    return singular, singular + ("t" if singular.endswith("s") else "st"), singular, plural, plural
