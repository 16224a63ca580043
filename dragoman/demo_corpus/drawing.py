"""Draws random phrases and clauses that make sense: people eat food, and dogs do not read."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from dragoman.demo_corpus.choices import Choices
from dragoman.demo_corpus.english_forms import HE
from dragoman.demo_corpus.german_forms import ACCUSATIVE, DATIVE, NEUTER
from dragoman.demo_corpus.lexicon import (
    ADVERBS,
    MODALS,
    NOUNS,
    NUMBERS,
    PLACES,
    TIMES,
    VERBS,
    Adverbial,
    Noun,
    Verb,
)
from dragoman.demo_corpus.meaning import (
    BARE,
    EVERY,
    MANY,
    NO,
    THE,
    THIS,
    A,
    Clause,
    Determiner,
    Phrase,
    Relative,
    Role,
    Tense,
    Where,
    unchanging,
)
from dragoman.demo_corpus.pronouns import NAMES, NAMES_OWN, POSSESSIVES, PRONOUNS, WE, YOU, I, possessive_of

Item = TypeVar("Item")

NUMBERS_OF = tuple(unchanging(english, german) for english, german in NUMBERS)

_TIMES = {
    tense: tuple(group for group in TIMES if tense in group[0].tenses)
    for tense in ("present", "progressive", "past", "future")
}
_ADVERBS = {
    tense: tuple(adverb for (adverb,) in ADVERBS if tense in adverb.tenses)
    for tense in ("present", "past", "perfect", "future")
}
_NEGATABLE_MODALS = tuple(modal for modal in MODALS if modal.english in ("can", "may", "should", "want to"))
_PAST_MODALS = tuple(modal for modal in MODALS if modal.german_past)
ACTIVE_VERBS = tuple(verb for verb in VERBS if not verb.stative)
# Without verbs whose past looks like the present: they read, they read.
_CLEAR_VERBS = tuple(verb for verb in ACTIVE_VERBS if verb.english.past != verb.english.base)
_ONE_ONLY = frozenset(["sole", "place"])
_NATURE = tuple(place for place in PLACES if "nature" in place.kinds)
_SURFACES = tuple(noun for noun in NOUNS if "surface" in noun.kinds)
_LANDMARKS = tuple(noun for noun in NOUNS if noun.kinds & {"surface", "building", "tree", "gate", "window"})
_ONTO = (("on", "auf"), ("on", "auf"), ("under", "unter"), ("next to", "neben"))
_BESIDE = (("next to", "neben"), ("behind", "hinter"), ("in front of", "vor"))
_PEOPLE = tuple(noun for noun in NOUNS if noun.is_person)
_OWNERS = tuple(noun for noun in _PEOPLE if "family" not in noun.kinds)
_SPEAKERS = tuple(noun for noun in _PEOPLE if noun.gender != NEUTER)


class Drawing:
    """A stream of random meanings. `used` collects the combinations of words in the current sentence."""

    def __init__(self, seed: int, choices: Choices) -> None:
        # Everything is built on random(), because Python promises to keep its sequence for a seed.
        self._random = Random(seed).random
        self.choices = choices
        self.used: list[tuple[str, str]] = []

    def pick(self, items: Sequence[Item]) -> Item:
        return items[int(self._random() * len(items))]

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    # Phrases

    def noun_phrase(
        self,
        noun: Noun,
        possessive: Determiner | None = None,
        definite: bool = False,
        bare_of_adjectives: bool = False,
    ) -> Phrase:
        """A noun with a determiner and perhaps an adjective. `possessive` refers to the clause's subject."""
        plural = noun.has_plural and not noun.kinds & _ONE_ONLY and self.chance(0.25)
        phrase = Phrase(noun, plural=plural)
        phrase.determiner = self._determiner(noun, plural, possessive, definite)
        if phrase.determiner is THE and not definite and not noun.is_person and self.chance(0.1):
            phrase.owner = Phrase(self.pick(_OWNERS))
        adjectives = self.choices.adjectives[noun]
        if adjectives and not bare_of_adjectives and self.chance(0.33):
            phrase.adjective = self.pick(adjectives)
            self.used.append((phrase.adjective.english, noun.english))
        return phrase

    def _determiner(
        self, noun: Noun, plural: bool, possessive: Determiner | None, definite: bool
    ) -> Determiner:
        draw = self._random()
        if "family" in noun.kinds:
            if draw < 0.88:
                return possessive or self.pick(POSSESSIVES)
            return self.pick(NAMES_OWN) if draw < 0.95 else THE
        if noun.is_person and draw < 0.58:
            return THE
        if definite:
            return THE if draw < 0.7 else THIS if draw < 0.85 or noun.is_person else possessive or THE
        if draw < 0.4:
            return THE
        if draw < 0.53:
            return possessive or self.pick(POSSESSIVES)
        if draw < 0.58:
            return self.pick(NAMES_OWN)
        if draw < 0.64:
            return THIS
        if plural:
            return BARE if draw < 0.73 else MANY if draw < 0.8 else self.pick(NUMBERS_OF)
        if not noun.has_plural:
            return BARE
        return EVERY if draw < 0.66 else A

    def subject(self, verb: Verb, definite: bool = False) -> Phrase:
        if "person" in verb.subjects:
            draw = self._random()
            if draw < 0.25:
                return Phrase(None, pronoun=self.pick(PRONOUNS))
            if draw < 0.4:
                return Phrase(None, pronoun=self.pick(NAMES))
        noun = self.pick(self.choices.subjects[verb])
        self.used.append((noun.english, verb.key))
        phrase = self.noun_phrase(noun, definite=definite)
        if phrase.determiner is BARE:
            phrase.determiner = THE
        return phrase

    def person(self) -> Phrase:
        """Someone who speaks or thinks, and whom a pronoun can stand for."""
        draw = self._random()
        if draw < 0.3:
            return Phrase(None, pronoun=self.pick(PRONOUNS))
        if draw < 0.6:
            return Phrase(None, pronoun=self.pick(NAMES))
        return self.noun_phrase(self.pick(_SPEAKERS), definite=True)

    def _object(self, verb: Verb, subject: Phrase, definite: bool = False) -> Phrase:
        if "person" in verb.objects and self.chance(0.3):
            return self._someone(subject)
        noun = self.pick(self.choices.objects[verb])
        self.used.append((verb.key, noun.english))
        return self.noun_phrase(noun, possessive_of(subject), definite)

    def _someone(self, subject: Phrase) -> Phrase:
        """A pronoun or name other than the subject."""
        other = self.pick(PRONOUNS if self.chance(0.6) else NAMES)
        if subject.pronoun is not None and other.person == subject.pronoun.person:
            other = YOU if other.person != YOU.person else I
        # Not `I see us` or `we see me`, because I am one of us.
        if other is WE and subject.pronoun is I or other is I and subject.pronoun is WE:
            other = YOU
        return Phrase(None, pronoun=other)

    def _receiver(self, subject: Phrase) -> Phrase:
        """The person who is given something."""
        if self.chance(0.45):
            return self._someone(subject)
        return self.noun_phrase(self.pick(_PEOPLE), possessive_of(subject), definite=True)

    # Places and times

    def place(self, noun: Noun, going: bool = False) -> Where:
        phrase = Phrase(noun)
        if self.chance(0.2) and (adjectives := self.choices.adjectives[noun]):
            phrase.adjective = self.pick(adjectives)
            self.used.append((phrase.adjective.english, noun.english))
        english, german = noun.to if going else noun.at
        return Where(english, german, ACCUSATIVE if going and german != "zu" else DATIVE, phrase)

    def _near(self, prepositions: Sequence[tuple[str, str]], nouns: Sequence[Noun], case: int) -> Where:
        english, german = self.pick(prepositions)
        return Where(english, german, case, self.noun_phrase(self.pick(nouns), definite=True))

    def _place_of(self, verb: Verb, subject: Phrase) -> Where | None:
        places = self.choices.places[verb]
        if not places:
            return None
        if _is_wild(subject):
            places = _NATURE
        return self.place(self.pick(places))

    def time(self, tense: str) -> Adverbial:
        return self.pick(self.pick(_TIMES[tense]))

    # Clauses

    def clause(
        self,
        tense: Tense,
        subject: Phrase | None = None,
        verb: Verb | None = None,
        plain: bool = False,
        negatable: bool = True,
        active: bool = False,
    ) -> Clause:
        """A clause around a verb: `plain` without modal verb, time and adverb, `active` with an action."""
        negated = negatable and self.chance(0.13)
        if verb is None:
            if subject is not None and subject.noun is not None:
                verb = self.pick(self.choices.verbs_of_subject[subject.noun])
            else:
                verb = self.pick(_verbs_for(tense, active))
        if subject is None:
            subject = self.subject(verb, definite=negated)
        elif subject.noun is not None:
            self.used.append((subject.noun.english, verb.key))
        clause = Clause(subject, verb, _possible(tense, verb, subject), negated=negated)
        if not plain:
            self._add_modifiers(clause)
        self._add_complements(clause)
        return clause

    def _add_modifiers(self, clause: Clause) -> None:
        """May add a modal verb, an adverb and a time."""
        tense, verb = clause.tense, clause.verb
        draw = self._random()
        if draw < 0.18 and tense in ("present", "past") and not verb.stative:
            if tense == "past":
                modals = tuple(m for m in _PAST_MODALS if not clause.negated or m in _NEGATABLE_MODALS)
            else:
                modals = _NEGATABLE_MODALS if clause.negated else MODALS
            clause.modal = self.pick(modals)
        elif draw < 0.24 and tense == "present" and not clause.negated and verb.frame in ("-", "acc"):
            clause.likes = not verb.stative
        elif (draw < 0.4 or tense == "perfect") and not clause.negated and tense in _ADVERBS:
            clause.adverb = self.pick(_ADVERBS[tense])
        if tense != "perfect" and (clause.adverb is None or tense == "past") and self.chance(0.35):
            if tense == "present" and clause.modal is not None:
                tense = "future"  # as in: can come tomorrow
            if tense != "present" or not verb.stative:
                clause.time = self.time(tense)
                if self.chance(0.4):
                    clause.fronted = "time"

    def _add_complements(self, clause: Clause) -> None:
        """Adds the objects and places that the verb's frame requires."""
        verb, subject = clause.verb, clause.subject
        definite = clause.negated and self.chance(0.5)
        if verb.frame in ("acc", "dat+acc", "acc+onto"):
            clause.accusative = self._object(verb, subject, definite)
            noun = clause.accusative.noun
            if clause.likes and noun is not None and not noun.kinds & {"family", "place"}:
                clause.accusative.determiner, clause.accusative.owner = BARE, None
                clause.accusative.plural = noun.has_plural
            if verb.key == "have" and clause.negated and clause.modal is None:
                clause.accusative.determiner, clause.accusative.owner = NO, None
        elif verb.frame == "dat":
            clause.dative = self._object(verb, subject, definite=True)
        elif verb.frame == "prep":
            clause.prepositional = self._object(verb, subject, definite=clause.negated)
        if verb.frame == "dat+acc":
            clause.dative = self._receiver(subject)
        if verb.frame == "acc+onto":
            clause.place = self._near(_ONTO, _SURFACES, ACCUSATIVE)
        elif verb.frame == "to":
            clause.place = self.place(self.pick(self.choices.places[verb]), going=True)
        elif verb.frame == "at":
            near = verb.key in ("sit", "stand") and not _is_wild(subject) and self.chance(0.4)
            clause.place = self._near(_BESIDE, _LANDMARKS, DATIVE) if near else self._place_of(verb, subject)
        elif not clause.negated and self.chance(0.25):
            clause.place = self._place_of(verb, subject)
            if clause.place is not None and not clause.fronted and self.chance(0.15):
                clause.fronted = "place"

    # Relative clauses

    def add_relative(self, phrase: Phrase, tense: Tense) -> None:
        """Adds a relative clause to the phrase, if it is a noun phrase that can take one."""
        noun = phrase.noun
        if noun is None or phrase.owner is not None or phrase.determiner not in (THE, A, MANY):
            return
        tense = "past" if tense in ("past", "perfect") else "present"
        if "place" in noun.kinds and self.chance(0.7):
            self._place_relative(phrase, tense)
        elif self.choices.verbs_of_subject[noun] and self.chance(0.6):
            subject = Phrase(noun, plural=phrase.plural)
            clause = self.clause(tense, subject, plain=True)
            clause.fronted = ""  # the pronoun comes first
            phrase.relative = Relative(clause, "subject")
        elif verbs := self.choices.verbs_of_object[noun]:
            verb = self.pick(verbs)
            subject = self.subject(verb, definite=True)
            clause = Clause(subject, verb, _possible(tense, verb, subject))
            self.used.append((verb.key, noun.english))
            role: Role = "accusative"
            if verb.frame == "dat":
                role, clause.dative = "dative", phrase
            elif verb.frame == "prep":
                role, clause.prepositional = "prepositional", phrase
            else:
                clause.accusative = phrase
                if verb.frame == "dat+acc":
                    clause.dative = self._receiver(clause.subject)
                elif verb.frame == "acc+onto":
                    clause.place = self._near(_ONTO, _SURFACES, ACCUSATIVE)
            phrase.relative = Relative(clause, role)

    def _place_relative(self, phrase: Phrase, tense: Tense) -> None:
        """Adds a clause to a place: the village in which Anna lives."""
        noun = phrase.noun
        assert noun is not None
        verbs = tuple(v for v in VERBS if noun in self.choices.places[v] and v.frame in ("-", "at"))
        if verbs:
            verb = self.pick(verbs)
            clause = Clause(self.subject(verb, definite=True), verb, tense)
            clause.place = Where(*noun.at, DATIVE, phrase)
            phrase.relative = Relative(clause, "place")


def _is_wild(phrase: Phrase) -> bool:
    """Is this an animal that does not live in a house?"""
    return phrase.noun is not None and "animal" in phrase.noun.kinds and "pet" not in phrase.noun.kinds


def _verbs_for(tense: Tense, active: bool) -> Sequence[Verb]:
    if tense == "past" and active:
        return _CLEAR_VERBS
    return VERBS if tense in ("present", "past") and not active else ACTIVE_VERBS


def _possible(tense: Tense, verb: Verb, subject: Phrase) -> Tense:
    """The tense, or another one if English does not have it for this verb or does not show it."""
    if verb.stative and tense == "progressive":
        return "present"
    if verb.stative and tense == "perfect":
        return "past"
    # `They read` may be present or past; in this corpus it is always the present.
    if tense == "past" and verb.english.past == verb.english.base and subject.person != HE:
        return "perfect"
    return tense
