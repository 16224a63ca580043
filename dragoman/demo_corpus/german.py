"""Writes a meaning as a German sentence.

A main clause has this order: one part in front, the finite verb, the middle, the rest of the verb. A
subordinate clause ends with the whole verb. Embedded clauses get commas on both sides; `_tidy` removes a
closing comma next to other punctuation.
"""

from __future__ import annotations

from dragoman.demo_corpus.german_forms import (
    ACCUSATIVE,
    CONTRACTIONS,
    DATIVE,
    GENITIVE,
    NOMINATIVE,
    RELATIVE,
    WERDEN,
)
from dragoman.demo_corpus.meaning import (
    BARE,
    NO,
    THE,
    A,
    Clause,
    Phrase,
    Predicate,
    Relative,
    Sentence,
    Where,
)

_QUESTION_WORDS = {"who": "wer", "what": "was", "when": "wann", "why": "warum"}
_SUBORDINATORS = {"that": "dass", "whether": "ob"}


def phrase(p: Phrase, case: int, preposition: str = "", negated: bool = False) -> str:
    """A phrase in a case, after a preposition if there is one. `negated` turns ein into kein."""
    if p.pronoun is not None:
        words = p.pronoun.german[case]
        return f"{preposition} {words}" if preposition else words
    noun = p.noun
    assert noun is not None
    gender = p.gender
    determiner = p.determiner
    if negated and determiner.is_indefinite:
        determiner = NO
    words = noun.german[p.plural][case]
    if p.adjective is not None:
        words = f"{p.adjective.stem}{determiner.endings[case][gender]} {words}"
    article = determiner.german[case][gender]
    if preposition:
        contracted = CONTRACTIONS.get((preposition, article)) if determiner is THE and not p.owner else None
        article = contracted or (f"{preposition} {article}" if article else preposition)
    if article:
        words = f"{article} {words}"
    if p.owner is not None:
        words = f"{words} {phrase(p.owner, GENITIVE)}"
    return f"{words}, {relative(p, p.relative)}," if p.relative is not None else words


def relative(head: Phrase, r: Relative) -> str:
    clause, gender = r.clause, head.gender
    if r.role == "subject":
        return _final(clause, RELATIVE[NOMINATIVE][gender], without="subject")
    if r.role == "place":
        assert clause.place is not None
        opening = f"{clause.place.german} {RELATIVE[clause.place.case][gender]}"
    elif r.role == "prepositional":
        _, preposition, case = clause.verb.prepositions
        opening = f"{preposition} {RELATIVE[case][gender]}"
    else:
        opening = RELATIVE[ACCUSATIVE if r.role == "accusative" else DATIVE][gender]
    return _final(clause, opening, without=r.role)


def _where(where: Where) -> str:
    return phrase(where.phrase, where.case, where.german)


def _predicate(p: Predicate) -> str:
    if p.than is not None:
        return f"{p.adjective.german_comparative} als {phrase(p.than, NOMINATIVE)}"
    return f"{p.degree[1]} {p.adjective.german}" if p.degree else p.adjective.german


def _verbs(c: Clause) -> tuple[str, str, str]:
    """The finite verb, the rest of it for a main clause's end, and the whole verb of a subordinate clause."""
    person, forms = c.subject.person, c.verb.german
    if c.modal is not None:
        finite = (c.modal.german_past if c.tense == "past" else c.modal.german)[person]
        return finite, forms.infinitive, f"{forms.infinitive} {finite}"
    if c.tense == "future":
        finite = WERDEN[person]
        return finite, forms.infinitive, f"{forms.infinitive} {finite}"
    if c.tense in ("past", "perfect"):
        if forms.preterite:
            finite = forms.preterite[person]
            return finite, "", finite
        finite = forms.auxiliary[person]
        return finite, forms.participle, f"{forms.participle} {finite}"
    return forms.present[person], forms.particle, forms.final[person]


def _middle(c: Clause, without: str = "") -> list[str]:
    """The middle in order: pronouns and names, time, objects, nicht, then the parts closest to the verb."""
    dative = c.dative if without != "dative" else None
    accusative = c.accusative if without != "accusative" else None
    pronouns: list[str] = []
    objects: list[str] = []
    for p, case in ((dative, DATIVE), (accusative, ACCUSATIVE)):
        if p is not None:
            takes_kein = c.negated and case == ACCUSATIVE
            (pronouns if p.pronoun is not None else objects).append(phrase(p, case, negated=takes_kein))
    parts = pronouns
    if c.time is not None and c.fronted != "time":
        parts.append(c.time.german)
    if c.adverb is not None:
        parts.append(c.adverb.german)
    if c.likes:
        parts.append("gern")
    parts += objects
    if c.negated and not (
        accusative is not None and accusative.determiner in (A, BARE, NO) and accusative.noun
    ):
        parts.append("nicht")
    if c.price:
        parts.append(f"{c.price} Euro")
    if c.place is not None and without != "place" and c.fronted != "place":
        parts.append(_where(c.place))
    if c.prepositional is not None and without != "prepositional":
        _, preposition, case = c.verb.prepositions
        parts.append(phrase(c.prepositional, case, preposition))
    if c.predicate is not None:
        parts.append(_predicate(c.predicate))
    return parts


def _complement(c: Clause) -> str:
    """The complement clause with its comma: ..., dass er kommt; ..., das Fenster zuzumachen."""
    if c.complement is None:
        return ""
    if c.verb.frame == "to":
        middle, infinitive = _middle(c.complement), c.complement.verb.german.zu_infinitive
        # A bare infinitive takes no comma: er versucht zu schlafen.
        return f", {' '.join(middle)} {infinitive}" if middle else f" {infinitive}"
    return ", " + _final(c.complement, _SUBORDINATORS[c.verb.frame])


def _final(c: Clause, opening: str, without: str = "") -> str:
    """A clause with its verb at the end."""
    _, _, verbs = _verbs(c)
    subject = [] if without == "subject" else [phrase(c.subject, NOMINATIVE)]
    return _closed([opening, *subject, *_middle(c, without)], verbs) + _complement(c)


def _closed(parts: list[str], verbs: str) -> str:
    """The clause up to its last verb. A relative clause just before that verb moves after it."""
    if not verbs:
        return " ".join(parts)
    last, comma, moved = parts[-1].partition(", ")
    if comma and len(parts) > 2:
        return f"{' '.join(parts[:-1])} {last} {verbs}, {moved}"
    return f"{' '.join(parts)} {verbs}"


def _front(c: Clause) -> str:
    if c.fronted == "time":
        assert c.time is not None
        return c.time.german
    assert c.place is not None
    return _where(c.place)


def _second(c: Clause, opening: str = "", inverted: bool = False) -> str:
    """A main clause. The verb comes second, after `opening` (a word or a whole clause) or the subject."""
    finite, rest, _ = _verbs(c)
    subject = phrase(c.subject, NOMINATIVE)
    if c.fronted:
        parts = [_front(c), finite, subject]
    elif inverted:
        parts = [opening, finite, subject]
    else:
        parts = [opening or subject, finite]
    parts += _middle(c)
    return _closed([part for part in parts if part], rest) + _complement(c)


def _question(s: Sentence) -> str:
    c = s.main
    if s.asked == "who":
        return _second(c, "wer")
    if s.asked == "whom":
        word = "wem" if c.verb.frame == "dat" else "wen"
    elif s.asked == "where":
        word = "wohin" if c.verb.frame == "to" else "wo"
    else:
        word = _QUESTION_WORDS.get(s.asked, "")
    return _second(c, word, inverted=True)


def _statement(s: Sentence) -> str:
    if s.second is None:
        return _second(s.main)
    if s.joined_by is not None:
        return f"{_second(s.main)}{s.joined_by[1]} {_second(s.second)}"
    assert s.conjunction is not None
    subordinate = _final(s.second, s.conjunction.german)
    if s.second_first:
        return _second(s.main, subordinate + ",", inverted=True)
    return f"{_second(s.main)}, {subordinate}"


def _there(c: Clause) -> str:
    assert c.accusative is not None and c.place is not None
    verb = "gab" if c.tense == "past" else "gibt"
    return f"{_where(c.place)} {verb} es {phrase(c.accusative, ACCUSATIVE)}"


def _request(c: Clause) -> str:
    forms = c.verb.german
    return " ".join(part for part in ("bitte", forms.imperative, *_middle(c), forms.particle) if part)


def _tidy(text: str) -> str:
    return text.replace(",,", ",").replace(",.", ".").replace(",?", "?")


def sentence(s: Sentence) -> str:
    if s.form == "question":
        text = _question(s) + "?"
    elif s.form == "there":
        text = _there(s.main) + "."
    elif s.form == "request":
        text = _request(s.main) + "."
    else:
        text = _statement(s) + "."
    return _tidy(text[0].upper() + text[1:])
