"""Reads the tables of words, and works out every form in both languages once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.demo_corpus import english_forms, german_forms, nouns, smallwords, verbs


@dataclass(frozen=True, eq=False)
class Noun:
    english: str
    english_plural: str
    german: tuple[tuple[str, ...], tuple[str, ...]]  # singular and plural, each by case
    gender: int  # german_forms.MASCULINE, FEMININE, NEUTER
    has_plural: bool
    kinds: frozenset[str]
    # Places only: English and German prepositions for being there and for going there.
    at: tuple[str, str] = ("", "")
    to: tuple[str, str] = ("", "")

    @property
    def is_person(self) -> bool:
        return "person" in self.kinds


@dataclass(frozen=True, eq=False)
class Verb:
    english: english_forms.EnglishForms
    german: german_forms.GermanForms
    frame: str  # see verbs.py; a prepositional object is `prep`
    subjects: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    where: frozenset[str] = frozenset()
    stative: bool = False
    prepositions: tuple[str, str, int] = ("", "", 0)  # English, German, German case

    @property
    def key(self) -> str:
        """The verb's name in a combination. All its frames share it: to dance, and to dance with someone."""
        return self.english.base


@dataclass(frozen=True, eq=False)
class Adjective:
    english: str
    german: str
    stem: str  # to which an ending is added: dunkel, dunkl-e
    english_comparative: str  # empty if there is none
    german_comparative: str
    kinds: frozenset[str]
    unfit: frozenset[str]

    def suits(self, noun: Noun) -> bool:
        return bool(self.kinds & noun.kinds) and not self.unfit & noun.kinds


@dataclass(frozen=True, eq=False)
class Modal:
    english: str
    english_past: str
    german: tuple[str, ...]  # by person
    german_past: tuple[str, ...]  # empty if there is none


@dataclass(frozen=True, eq=False)
class Adverbial:
    english: str
    german: str
    tenses: frozenset[str]


def _rows(table: str) -> Iterator[list[str]]:
    for line in table.strip().splitlines():
        if line.strip():
            yield re.split(r"\s{2,}", line.strip())


def _noun(english: str, german: str, kinds: str, at: str = ":", to: str = ":") -> Noun:
    singular, _, plural = english.partition("/")
    article_and_word, german_plural, *weak = german.split(", ")
    article, word = article_and_word.split(" ")
    gender = german_forms.ARTICLES[article]
    return Noun(
        english=singular,
        english_plural=plural or english_forms.plural(singular),
        german=german_forms.noun(word, german_plural, gender, bool(weak)),
        gender=gender,
        has_plural=german_plural != "-",
        # A word is also its own kind, so that a verb may require just this word.
        kinds=frozenset([singular, *kinds.split()]),
        at=_two(at),
        to=_two(to),
    )


def _two(prepositions: str) -> tuple[str, str]:
    english, german = prepositions.split(":")
    return english, german


def _kinds(column: str) -> frozenset[str]:
    return frozenset(column.replace("-", "").split())


def _verb(english: str, german: str, frame: str, subjects: str, objects: str = "", notes: str = "-") -> Verb:
    where = _kinds(notes.replace(",", " "))
    prepositions = ("", "", 0)
    if ":" in frame:
        english_preposition, german_preposition = _two(frame)
        german_preposition, case = german_preposition.split("+")
        prepositions = (english_preposition, german_preposition, german_forms.CASES[case])
        frame = "prep"
    return Verb(
        english_forms.verb(english),
        german_forms.verb(german),
        frame,
        _kinds(subjects),
        _kinds(objects),
        where - {"stative"},
        "stative" in where,
        prepositions,
    )


def _adjective(english: str, german: str, kinds: str) -> Adjective:
    word, *comparative = german.split()
    word, _, stem = word.partition("/")
    has_comparative = comparative != ["-"]
    return Adjective(
        english=english,
        german=word,
        stem=stem or word.removesuffix("e"),
        english_comparative=english_forms.comparative(english) if has_comparative else "",
        german_comparative=(comparative[0] if comparative else word.removesuffix("e") + "er")
        if has_comparative
        else "",
        kinds=frozenset(kind for kind in kinds.split() if kind[0] != "!"),
        unfit=frozenset(kind[1:] for kind in kinds.split() if kind[0] == "!"),
    )


def _modal(english: str, past: str, singular: str, plural: str, german_past: str) -> Modal:
    return Modal(
        english,
        "" if past == "-" else past,
        german_forms.modal(singular, plural),
        () if german_past == "-" else german_forms.modal(german_past, german_past + "n"),
    )


def _fillings(english: str) -> list[dict[str, tuple[str, str]]]:
    if "{hour}" in english:
        return [{"hour": (str(hour), str(hour))} for hour in range(1, 13)]
    return [{"n": number} for number in NUMBERS] if "{n}" in english else [{}]


def _adverbials(table: str) -> tuple[tuple[Adverbial, ...], ...]:
    """A group for each row: one adverbial, or one per number if the row has a placeholder for it."""
    return tuple(
        tuple(
            Adverbial(
                english.format(**{name: words[0] for name, words in filling.items()}),
                german.format(**{name: words[1] for name, words in filling.items()}),
                frozenset(tenses.split()),
            )
            for filling in _fillings(english)
        )
        for english, german, tenses in _rows(table)
    )


NUMBERS = tuple(
    (english, german) for english, german in (pair.split() for pair in smallwords.NUMBERS.split(", "))
)
PLACES = tuple(
    _noun(english, german, "place " + kinds, at, to) for english, german, at, to, kinds in _rows(nouns.PLACES)
)
NOUNS = tuple(_noun(*row) for row in _rows(nouns.NOUNS)) + PLACES
VERBS = tuple(_verb(*row) for row in _rows(verbs.VERBS))
CLAUSE_VERBS = tuple(
    Verb(english_forms.verb(english), german_forms.verb(german), frame, stative=bool(notes))
    for english, german, frame, *notes in _rows(verbs.CLAUSE_VERBS)
)
ADJECTIVES = tuple(_adjective(*row) for row in _rows(smallwords.ADJECTIVES))
MODALS = tuple(_modal(*row) for row in _rows(smallwords.MODALS))
TIMES = _adverbials(smallwords.TIMES)
ADVERBS = _adverbials(smallwords.ADVERBS)
CONJUNCTIONS = tuple(
    Adverbial(english, german, frozenset(tenses.split()))
    for english, german, tenses in _rows(smallwords.CONJUNCTIONS)
)
COST = Verb(english_forms.verb("cost cost cost"), german_forms.verb("kosten"), "acc", stative=True)
BE = Verb(english_forms.BE, german_forms.SEIN, "be", stative=True)
