"""Draws sentences of every form from a seed, and writes them in both languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice

from dragoman.demo_corpus import english, german
from dragoman.demo_corpus.choices import THERE, Choices, is_reserved
from dragoman.demo_corpus.drawing import ACTIVE_VERBS, NUMBERS_OF, Drawing
from dragoman.demo_corpus.german_forms import HABEN
from dragoman.demo_corpus.lexicon import ADJECTIVES, BE, CLAUSE_VERBS, CONJUNCTIONS, COST, PLACES, VERBS
from dragoman.demo_corpus.meaning import BARE, MANY, NO, A, Clause, Phrase, Predicate, Sentence, Tense
from dragoman.demo_corpus.pronouns import HE_PRONOUN, YOU, pronoun_of

_TENSES: tuple[Tense, ...] = (
    ("present",) * 5 + ("progressive",) * 4 + ("past",) * 7 + ("perfect",) * 2 + ("future",) * 4
)
_SIMPLE: tuple[Tense, ...] = ("present", "past", "past", "future")
_DEGREES = (("very", "sehr"), ("too", "zu"), ("so", "so"), ("quite", "ziemlich"))
_JOINTS = (("and", " und"), ("but", ", aber"))
_WILLING = tuple(verb for verb in ACTIVE_VERBS if "person" in verb.subjects)
# Nobody can be asked to arrive or to fall asleep.
_ASKED_FOR = tuple(
    v for v in _WILLING if v.frame not in ("-", "at") or v.german.auxiliary is HABEN and v.frame == "-"
)
_WHO_VERBS = tuple(verb for verb in VERBS if "person" in verb.subjects)
_WHAT_VERBS = tuple(verb for verb in VERBS if verb.frame == "acc" and "person" not in verb.objects)
_WHOM_VERBS = tuple(verb for verb in VERBS if verb.objects == {"person"} and verb.frame in ("acc", "dat"))
_WHERE_VERBS = tuple(verb for verb in VERBS if verb.where and not verb.frame.startswith("dat"))
_THERE_PLACES = tuple(place for place in PLACES if place.kinds & THERE.keys())
_MOODS = tuple(adjective for adjective in ADJECTIVES if "person" in adjective.kinds and not adjective.unfit)
_COMPARABLE = frozenset(adjective for adjective in ADJECTIVES if adjective.german_comparative)


def _simple(draw: Drawing) -> Sentence:
    tense = draw.pick(_TENSES)
    clause = draw.clause(tense)
    if not clause.negated and draw.chance(0.35):
        _relate(draw, clause, tense)
    return Sentence(clause)


def _relate(draw: Drawing, clause: Clause, tense: Tense) -> None:
    """Adds a relative clause where it is clear what it belongs to: at the end, or to the subject."""
    place = clause.place if clause.fronted != "place" else None
    last = place.phrase if place is not None else clause.accusative or clause.prepositional or clause.dative
    if last is not None and draw.chance(0.65):
        draw.add_relative(last, tense)
        if last.relative is not None and clause.time is not None:
            clause.fronted = "time"  # after the relative clause it would seem to belong to that
    else:
        draw.add_relative(clause.subject, tense)


def _described(draw: Drawing) -> Sentence:
    """The soup is too hot. The dog was older than the cat."""
    return Sentence(_description(draw, "past" if draw.chance(0.4) else "present"))


def _description(draw: Drawing, tense: Tense) -> Clause:
    adjective = draw.pick(ADJECTIVES)
    noun = draw.pick(draw.choices.described[adjective])
    draw.used.append((adjective.english, noun.english))
    subject = draw.noun_phrase(noun, definite=True, bare_of_adjectives=True)
    predicate = Predicate(adjective)
    if adjective in _COMPARABLE and draw.chance(0.3):
        other = draw.pick(draw.choices.described[adjective])
        if other is not noun and other.kinds & noun.kinds:
            draw.used.append((adjective.english, other.english))
            predicate.than = draw.noun_phrase(other, definite=True, bare_of_adjectives=True)
    if predicate.than is None and draw.chance(0.6):
        predicate.degree = draw.pick(_DEGREES) if adjective in _COMPARABLE else None
    negated = predicate.degree is None and draw.chance(0.2)
    return Clause(subject, BE, tense, negated=negated, predicate=predicate)


def _priced(draw: Drawing) -> Sentence:
    """The red coat costs 45 euros."""
    noun = draw.pick(draw.choices.subjects[COST])
    draw.used.append((noun.english, COST.key))
    subject = draw.noun_phrase(noun, definite=True)
    # `The shoes cost` could be present or past.
    tense: Tense = "past" if not subject.plural and draw.chance(0.3) else "present"
    return Sentence(Clause(subject, COST, tense, price=2 + draw.pick(range(98))))


def _there(draw: Drawing) -> Sentence:
    """There are three cats in the garden."""
    place = draw.pick(_THERE_PLACES)
    phrase = draw.noun_phrase(draw.pick(draw.choices.there[place]))
    phrase.owner = None
    if phrase.plural:
        phrase.determiner = draw.pick((MANY, NO, *NUMBERS_OF))
    else:
        phrase.determiner = NO if draw.chance(0.25) else A if phrase.noun and phrase.noun.has_plural else BARE
    tense: Tense = "past" if draw.chance(0.4) else "present"
    return Sentence(Clause(Phrase(place), BE, tense, accusative=phrase, place=draw.place(place)), "there")


def _reasoned(draw: Drawing) -> Sentence:
    """Anna is laughing because ..., although ...; the second clause may describe someone."""
    conjunction = draw.pick(_REASONS)
    tense: Tense = draw.pick(("present", "past"))
    main = draw.clause(tense)
    before = draw.chance(0.3)
    pronoun = pronoun_of(main.subject) if not before else None
    if draw.chance(0.4):
        again = pronoun is not None and draw.chance(0.8)
        second = _mood(draw, main.subject, tense) if again else _description(draw, tense)
    else:
        again = pronoun is not None and draw.chance(0.5)
        second = draw.clause(tense, Phrase(None, pronoun=pronoun) if again else None)
    second.fronted = ""
    if before:
        main.fronted = ""
    return Sentence(main, conjunction=conjunction, second=second, second_first=before)


def _mood(draw: Drawing, subject: Phrase, tense: Tense) -> Clause:
    """A clause such as `she is tired`, about a subject that was just named."""
    if subject.noun is not None:
        adjective = draw.pick(draw.choices.adjectives[subject.noun])
        draw.used.append((adjective.english, subject.noun.english))
    else:
        adjective = draw.pick(_MOODS)
    degree = draw.pick(_DEGREES) if draw.chance(0.6) else None
    again = Phrase(None, pronoun=pronoun_of(subject))
    return Clause(
        again, BE, tense, negated=degree is None and draw.chance(0.2), predicate=Predicate(adjective, degree)
    )


def _timed(draw: Drawing) -> Sentence:
    """Two events with when, if, before, while or as soon as: the second gives the time of the first."""
    conjunction = draw.pick(_OCCASIONS)
    tense: Tense = draw.pick(_TENSES_OF[conjunction])
    may_negate = conjunction.english == "if"
    main = draw.clause(tense, negatable=may_negate, active=True)
    main.fronted, main.time = "", None  # the other clause gives the time
    before = draw.chance(0.4)
    pronoun = pronoun_of(main.subject) if not before and draw.chance(0.4) else None
    second = draw.clause(
        "present" if tense == "future" else tense,
        Phrase(None, pronoun=pronoun) if pronoun is not None else None,
        plain=True,
        negatable=may_negate,
        active=True,
    )
    second.fronted = ""
    return Sentence(main, conjunction=conjunction, second=second, second_first=before)


def _joined(draw: Drawing) -> Sentence:
    tense = draw.pick(_SIMPLE)
    first, second = draw.clause(tense, negatable=False), draw.clause(tense, plain=draw.chance(0.5))
    if second.fronted == "time":
        second.fronted = ""
    second.time = None  # the first clause's time applies to both
    return Sentence(first, second=second, joined_by=draw.pick(_JOINTS))


def _reported(draw: Drawing) -> Sentence:
    """Anna says that ..., Paul wonders whether ..., we try to ..."""
    tense: Tense = "past" if draw.chance(0.5) else "present"
    subject = draw.person()
    verbs, willing = CLAUSE_VERBS, _WILLING
    if subject.noun is not None:
        verbs = draw.choices.clause_verbs[subject.noun]
        willing = tuple(v for v in draw.choices.verbs_of_subject[subject.noun] if not v.stative)
    verb = draw.pick(verbs)
    clause = Clause(subject, verb, tense)
    if subject.noun is not None:
        draw.used.append((subject.noun.english, verb.key))
    if verb.frame == "to":
        clause.complement = draw.clause(
            "present",
            Phrase(None, pronoun=pronoun_of(subject)),
            draw.pick(willing),
            plain=True,
            negatable=False,
        )
        if subject.noun is not None:  # the person who plans to sing is also the one who sings
            draw.used.append((subject.noun.english, clause.complement.verb.key))
    else:
        clause.complement = draw.clause("past" if tense == "past" else draw.pick(_SIMPLE))
    clause.complement.fronted = ""
    return Sentence(clause)


def _request(draw: Drawing) -> Sentence:
    clause = draw.clause("present", Phrase(None, pronoun=YOU), draw.pick(_ASKED_FOR), plain=True)
    clause.fronted = ""
    return Sentence(clause, "request")


def _question(draw: Drawing) -> Sentence:
    tense = draw.pick(_TENSES)
    clause = draw.clause(tense)
    clause.fronted = ""
    return Sentence(clause, "question")


def _why(draw: Drawing) -> Sentence:
    question = _question(draw)
    question.asked = "why"
    return question


def _when(draw: Drawing) -> Sentence:
    clause = draw.clause("past" if draw.chance(0.5) else "future", negatable=False)
    clause.fronted, clause.time, clause.adverb = "", None, None
    return Sentence(clause, "question", "when")


def _who(draw: Drawing) -> Sentence:
    someone = Phrase(None, pronoun=HE_PRONOUN)
    clause = draw.clause(draw.pick(_TENSES), someone, draw.pick(_WHO_VERBS), negatable=False)
    clause.fronted = ""
    return Sentence(clause, "question", "who")


def _what(draw: Drawing) -> Sentence:
    is_whom = draw.chance(0.4)
    clause = draw.clause(
        draw.pick(_TENSES), verb=draw.pick(_WHOM_VERBS if is_whom else _WHAT_VERBS), negatable=False
    )
    _forget(draw, clause.accusative or clause.dative)
    clause.fronted, clause.accusative, clause.dative = "", None, None
    return Sentence(clause, "question", "whom" if is_whom else "what")


def _where(draw: Drawing) -> Sentence:
    clause = draw.clause(draw.pick(_TENSES), verb=draw.pick(_WHERE_VERBS), negatable=False)
    _forget(draw, clause.place.phrase if clause.place is not None else None)
    clause.fronted, clause.place = "", None
    return Sentence(clause, "question", "where")


def _forget(draw: Drawing, phrase: Phrase | None) -> None:
    """Drops the recorded combinations of a phrase that the question leaves out."""
    if phrase is not None and phrase.noun is not None:
        draw.used = [pair for pair in draw.used if pair[1] != phrase.noun.english]


_FORMS: tuple[Callable[[Drawing], Sentence], ...] = tuple(
    form
    for form, weight in (
        (_simple, 30),
        (_reasoned, 12),
        (_timed, 11),
        (_reported, 12),
        (_joined, 8),
        (_described, 6),
        (_question, 7),
        (_there, 4),
        (_request, 4),
        (_priced, 2),
        (_what, 2),
        (_who, 2),
        (_where, 1),
        (_when, 1),
        (_why, 1),
    )
    for _ in range(weight)
)
_TENSES_OF = {
    conjunction: tuple(
        tense for tense in ("present", "progressive", "past", "future") if tense in conjunction.tenses
    )
    for conjunction in CONJUNCTIONS
}
_REASONS = tuple(c for c in CONJUNCTIONS if c.english in ("because", "although"))
_OCCASIONS = tuple(c for c in CONJUNCTIONS if c not in _REASONS)
_CHOICES = cache(Choices)  # two sets of tables, each built on first use


def draw_sentences(seed: int, with_reserved: bool) -> Iterator[tuple[Sentence, list[tuple[str, str]]]]:
    """An endless stream of meanings, each with the combinations of words it uses."""
    # Even seeds for training, odd ones for held-out: from one stream, they would be near copies.
    draw = Drawing(2 * seed + with_reserved, _CHOICES(with_reserved))
    while True:
        draw.used = []
        sentence = draw.pick(_FORMS)(draw)
        yield sentence, draw.used


def pairs(count: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """English and German training sentences. The same seed gives the same sentences on every machine."""
    for sentence, _ in islice(draw_sentences(seed, with_reserved=False), count):
        yield english.sentence(sentence), german.sentence(sentence)


def held_out(count: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Distinct sentences, each with a combination of words that no training sentence of any seed has."""
    seen: set[str] = set()
    for sentence, used in draw_sentences(seed, with_reserved=True):
        if len(seen) == count:
            return
        if any(is_reserved(first, second) for first, second in used):
            source = english.sentence(sentence)
            if source not in seen:
                seen.add(source)
                yield source, german.sentence(sentence)
