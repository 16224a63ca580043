"""Writes a meaning as an English sentence."""

from __future__ import annotations

from dragoman.demo_corpus.english_forms import BE_PAST, BE_PRESENT, HE, with_a
from dragoman.demo_corpus.meaning import A, Clause, Phrase, Predicate, Relative, Sentence, Where


def phrase(p: Phrase, is_object: bool = False) -> str:
    if p.pronoun is not None:
        return p.pronoun.english_object if is_object else p.pronoun.english
    assert p.noun is not None
    words = p.noun.english_plural if p.plural else p.noun.english
    if p.adjective is not None:
        words = f"{p.adjective.english} {words}"
    if p.owner is not None:
        owner = phrase(p.owner)
        words = f"{owner}'s {words}"
    elif p.determiner is A:
        words = with_a(words)
    elif determiner := p.determiner.english_plural if p.plural else p.determiner.english:
        words = f"{determiner} {words}"
    return f"{words} {relative(p, p.relative)}" if p.relative is not None else words


def relative(head: Phrase, r: Relative) -> str:
    assert head.noun is not None
    clause = r.clause
    if r.role == "subject":
        return f"{'who' if head.noun.is_person else 'that'} {_after_subject(clause)}"
    if r.role == "place":
        assert clause.place is not None
        opening = f"{clause.place.english} which"
    elif r.role == "prepositional":
        opening = f"{clause.verb.prepositions[0]} {'whom' if head.noun.is_person else 'which'}"
    else:
        opening = "whom" if head.noun.is_person else "that"
    return f"{opening} {_plain(clause, without=r.role)}"


def _where(where: Where) -> str:
    return f"{where.english} {phrase(where.phrase, is_object=True)}"


def _predicate(p: Predicate) -> str:
    if p.than is not None:
        return f"{p.adjective.english_comparative} than {phrase(p.than)}"
    return f"{p.degree[0]} {p.adjective.english}" if p.degree else p.adjective.english


def _verbs(c: Clause, emphatic: bool) -> tuple[str, str]:
    """The auxiliary, if any, and the rest. `emphatic` is set for questions and negations, which need `do`."""
    person, forms = c.subject.person, c.verb.english
    if c.modal is not None:
        past = c.tense == "past"
        auxiliary = c.modal.english_past if past else c.modal.english
        if auxiliary == "want to":
            return _finite(person, "want", "wants", f" to {forms.base}", emphatic)
        if past and auxiliary != "could":
            past_word, base = ("had", "have") if auxiliary == "had to" else ("wanted", "want")
            return ("did", f"{base} to {forms.base}") if emphatic else ("", f"{past_word} to {forms.base}")
        first, _, rest = auxiliary.partition(" ")
        return first, f"{rest} {forms.base}" if rest else forms.base
    if c.likes:
        return _finite(person, "like", "likes", f" to {forms.base}", emphatic)
    if c.tense == "future":
        return "will", forms.base
    if forms.base == "be":
        return (BE_PAST if c.tense == "past" else BE_PRESENT)[person], ""
    if c.tense == "progressive":
        return BE_PRESENT[person], forms.progressive
    if c.tense == "perfect":
        return "has" if person == HE else "have", forms.participle
    if c.tense == "past":
        return ("did", forms.base) if emphatic else ("", forms.past)
    return _finite(person, forms.base, forms.third, "", emphatic)


def _finite(person: int, base: str, third: str, rest: str, emphatic: bool) -> tuple[str, str]:
    if emphatic:
        return "does" if person == HE else "do", base + rest
    return "", (third if person == HE else base) + rest


def _says_not(c: Clause) -> bool:
    """Is the clause negated with `not`? `has no dog` carries its negation in the object instead."""
    return c.negated and not (c.accusative is not None and c.accusative.determiner.english == "no")


def _tail(c: Clause, without: str = "") -> list[str]:
    """The parts that follow the verb."""
    parts = []
    if c.dative is not None and without != "dative":
        parts.append(phrase(c.dative, is_object=True))
    if c.accusative is not None and without != "accusative":
        parts.append(phrase(c.accusative, is_object=True))
    if c.price:
        parts.append(f"{c.price} euros")
    if c.prepositional is not None and without != "prepositional":
        parts.append(f"{c.verb.prepositions[0]} {phrase(c.prepositional, is_object=True)}")
    if c.predicate is not None:
        parts.append(_predicate(c.predicate))
    if c.place is not None and without != "place" and c.fronted != "place":
        parts.append(_where(c.place))
    if c.time is not None and c.fronted != "time":
        parts.append(c.time.english)
    if c.complement is not None:
        parts.append(_complement(c))
    return parts


def _complement(c: Clause) -> str:
    assert c.complement is not None
    if c.verb.frame == "to":
        return " ".join(["to", c.complement.verb.english.base, *_tail(c.complement)])
    return f"{c.verb.frame} {_plain(c.complement)}"


def _after_subject(c: Clause, without: str = "") -> str:
    says_not = _says_not(c)
    auxiliary, rest = _verbs(c, emphatic=says_not)
    if says_not:
        auxiliary = "cannot" if auxiliary == "can" else f"{auxiliary} not"
    adverb = c.adverb.english if c.adverb is not None else ""
    return " ".join(part for part in (auxiliary, adverb, rest, *_tail(c, without)) if part)


def _front(c: Clause) -> str:
    if c.fronted == "time":
        assert c.time is not None
        return c.time.english + " "
    if c.fronted == "place":
        assert c.place is not None
        return _where(c.place) + " "
    return ""


def _plain(c: Clause, without: str = "") -> str:
    return f"{_front(c)}{phrase(c.subject)} {_after_subject(c, without)}"


def _question(s: Sentence) -> str:
    c = s.main
    if s.asked == "who":
        return f"who {_after_subject(c)}?"
    auxiliary, rest = _verbs(c, emphatic=True)
    negation = "not" if _says_not(c) else ""
    adverb = c.adverb.english if c.adverb is not None else ""
    parts = (s.asked, auxiliary, phrase(c.subject), negation, adverb, rest, *_tail(c))
    return " ".join(part for part in parts if part) + "?"


def _statement(s: Sentence) -> str:
    first = _plain(s.main)
    if s.second is None:
        return first + "."
    second = _plain(s.second)
    if s.joined_by is not None:
        return f"{first}, {s.joined_by[0]} {second}."
    assert s.conjunction is not None
    if s.second_first:
        return f"{s.conjunction.english} {second}, {first}."
    return f"{first} {s.conjunction.english} {second}."


def _there(c: Clause) -> str:
    assert c.accusative is not None and c.place is not None
    verb = (BE_PAST if c.tense == "past" else BE_PRESENT)[c.accusative.person]
    return f"there {verb} {phrase(c.accusative)} {_where(c.place)}."


def sentence(s: Sentence) -> str:
    if s.form == "question":
        text = _question(s)
    elif s.form == "there":
        text = _there(s.main)
    elif s.form == "request":
        negation = "do not " if s.main.negated else ""
        text = " ".join([f"please {negation}{s.main.verb.english.base}", *_tail(s.main)]) + "."
    else:
        text = _statement(s)
    return text[0].upper() + text[1:]
