"""Which words go together, and which of these combinations are reserved for the held-out sentences.

About one in twelve combinations of adjective and noun, subject and verb, or verb and object is reserved. It
never occurs in training, and every held-out sentence has at least one. The words themselves occur in both.
"""

from __future__ import annotations

from zlib import crc32

from dragoman.demo_corpus.lexicon import (
    ADJECTIVES,
    CLAUSE_VERBS,
    COST,
    NOUNS,
    PLACES,
    VERBS,
    Adjective,
    Noun,
    Verb,
)

RESERVED_ONE_IN = 12

# Kinds of things with a price, and for each kind of place the kinds of things in it.
_PRICED = frozenset(["food", "clothing", "vessel", "thing", "furniture", "machine"])
THERE = {
    "room": "furniture vessel switch clock pet",
    "green": "animal plant",
    "shop": "food vessel",
    "shore": "animal boat child",
    "stop": "tourist policeman child transport",
    "settlement": "building animal",
}


def is_reserved(first: str, second: str) -> bool:
    """May these two words, such as `old` and `dog`, be combined only in held-out sentences?"""
    # CRC-32 instead of hash(), because it is the same on every machine and in every process.
    return crc32(f"{first}|{second}".encode()) % RESERVED_ONE_IN == 0


def _fitting(kinds: frozenset[str]) -> tuple[Noun, ...]:
    return tuple(noun for noun in NOUNS if noun.kinds & kinds)


class Choices:
    """The words that may be drawn together, with reserved combinations for held-out sentences or without."""

    def __init__(self, with_reserved: bool) -> None:
        def allowed(first: str, second: str) -> bool:
            return with_reserved or not is_reserved(first, second)

        self.subjects: dict[Verb, tuple[Noun, ...]] = {}
        self.objects: dict[Verb, tuple[Noun, ...]] = {}
        self.places: dict[Verb, tuple[Noun, ...]] = {}
        for verb in VERBS:
            self.subjects[verb] = tuple(n for n in _fitting(verb.subjects) if allowed(n.english, verb.key))
            self.objects[verb] = tuple(n for n in _fitting(verb.objects) if allowed(verb.key, n.english))
            self.places[verb] = tuple(place for place in PLACES if place.kinds & verb.where)
        self.subjects[COST] = tuple(n for n in _fitting(_PRICED) if allowed(n.english, COST.key))
        self.adjectives: dict[Noun, tuple[Adjective, ...]] = {
            noun: tuple(a for a in ADJECTIVES if a.suits(noun) and allowed(a.english, noun.english))
            for noun in NOUNS
        }
        self.described: dict[Adjective, tuple[Noun, ...]] = {
            adjective: tuple(noun for noun in NOUNS if adjective in self.adjectives[noun])
            for adjective in ADJECTIVES
        }
        self.verbs_of_subject: dict[Noun, tuple[Verb, ...]] = {
            noun: tuple(verb for verb in VERBS if noun in self.subjects[verb]) for noun in NOUNS
        }
        self.verbs_of_object: dict[Noun, tuple[Verb, ...]] = {
            noun: tuple(verb for verb in VERBS if noun in self.objects[verb]) for noun in NOUNS
        }
        self.clause_verbs: dict[Noun, tuple[Verb, ...]] = {
            noun: tuple(v for v in CLAUSE_VERBS if allowed(noun.english, v.key)) for noun in NOUNS
        }
        self.there: dict[Noun, tuple[Noun, ...]] = {
            place: _fitting(
                frozenset(" ".join(kinds for kind, kinds in THERE.items() if kind in place.kinds).split())
            )
            for place in PLACES
        }
