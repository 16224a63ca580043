"""Which words go together, and which of these combinations are kept for the held-out part.

About one in twelve combinations of adjective and noun, subject and verb, or verb and object is reserved:
training never shows it, every held-out sentence shows at least one. The words themselves occur in both.
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

# Whose price one asks, and what one meets where.
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
    """Whether two words, named as in a key such as `old` and `dog`, may meet in held-out sentences only."""
    # CRC-32 and not hash(): the same on every machine and in every process.
    return crc32(f"{first}|{second}".encode()) % RESERVED_ONE_IN == 0


def _fitting(kinds: frozenset[str]) -> tuple[Noun, ...]:
    return tuple(noun for noun in NOUNS if noun.kinds & kinds)


class Choices:
    """What may be drawn next to what. Without the reserved combinations: training; with them: held-out."""

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
                frozenset(" ".join(found for kind, found in THERE.items() if kind in place.kinds).split())
            )
            for place in PLACES
        }
