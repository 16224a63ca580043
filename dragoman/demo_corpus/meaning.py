"""The meaning of a sentence, independent of the language: phrases, clauses, sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dragoman.demo_corpus import german_forms
from dragoman.demo_corpus.english_forms import HE, THEY
from dragoman.demo_corpus.german_forms import PLURAL, Table
from dragoman.demo_corpus.lexicon import Adjective, Adverbial, Modal, Noun, Verb

Tense = Literal["present", "progressive", "past", "perfect", "future"]
Role = Literal["subject", "accusative", "dative", "prepositional", "place"]


@dataclass(frozen=True, eq=False)
class Determiner:
    english: str
    english_plural: str
    german: Table
    endings: Table  # of an adjective after it
    is_indefinite: bool = False  # negated with kein


THE = Determiner("the", "the", german_forms.DEFINITE, german_forms.WEAK)
A = Determiner("a", "", german_forms.like_ein("ein"), german_forms.MIXED, is_indefinite=True)
NO = Determiner("no", "no", german_forms.like_ein("kein"), german_forms.MIXED)
BARE = Determiner("", "", (("",) * 4,) * 4, german_forms.STRONG, is_indefinite=True)
THIS = Determiner("this", "these", german_forms.like_dieser("dies"), german_forms.WEAK)
EVERY = Determiner("every", "", german_forms.like_dieser("jed"), german_forms.WEAK)
MANY = Determiner("", "many", german_forms.like_dieser("viel"), german_forms.STRONG)


def possessive(english: str, german: str) -> Determiner:
    return Determiner(english, english, german_forms.like_ein(german), german_forms.MIXED)


def unchanging(english: str, german: str) -> Determiner:
    """A number, or a name in the genitive: Annas."""
    return Determiner(english, english, ((german,) * 4,) * 4, german_forms.STRONG)


@dataclass(frozen=True, eq=False)
class Pronoun:
    """A pronoun, or a name, which has one form for all cases."""

    english: str
    english_object: str
    german: tuple[str, str, str]  # nominative, accusative, dative
    person: int
    possessive: Determiner
    is_name: bool = False


@dataclass(slots=True)
class Phrase:
    """A pronoun, or a noun with its determiner, adjective, owner and relative clause."""

    noun: Noun | None
    determiner: Determiner = THE
    adjective: Adjective | None = None
    plural: bool = False
    pronoun: Pronoun | None = None
    owner: Phrase | None = None  # the teacher's: a genitive before the noun (English) or after it (German)
    relative: Relative | None = None

    @property
    def person(self) -> int:
        if self.pronoun is not None:
            return self.pronoun.person
        return THEY if self.plural else HE

    @property
    def gender(self) -> int:
        assert self.noun is not None
        return PLURAL if self.plural else self.noun.gender


@dataclass(slots=True)
class Where:
    """A place with its prepositions."""

    english: str
    german: str
    case: int  # in German
    phrase: Phrase


@dataclass(slots=True)
class Predicate:
    """The words after `is`: (very) old, older than the dog."""

    adjective: Adjective
    degree: tuple[str, str] | None = None
    than: Phrase | None = None


@dataclass(slots=True)
class Clause:
    subject: Phrase
    verb: Verb
    tense: Tense = "present"
    modal: Modal | None = None
    likes: bool = False  # likes to ..., in German gern
    negated: bool = False
    dative: Phrase | None = None
    accusative: Phrase | None = None
    prepositional: Phrase | None = None
    place: Where | None = None
    time: Adverbial | None = None
    adverb: Adverbial | None = None
    fronted: Literal["", "time", "place"] = ""  # the part that comes first instead of the subject
    predicate: Predicate | None = None
    price: int = 0  # euros
    complement: Clause | None = None  # of say that, wonder whether, try to


@dataclass(slots=True)
class Relative:
    """A clause about a phrase, and the role of the phrase in it."""

    clause: Clause
    role: Role


@dataclass(slots=True)
class Sentence:
    main: Clause
    form: Literal["statement", "question", "request", "there"] = "statement"
    asked: Literal["", "who", "what", "whom", "where", "when", "why"] = ""
    conjunction: Adverbial | None = None
    second: Clause | None = None  # subordinate after a conjunction, else joined by `and` or `but`
    joined_by: tuple[str, str] | None = None
    second_first: bool = False
