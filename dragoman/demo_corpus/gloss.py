"""Translates word by word: the lowest score that a model has to beat."""

from __future__ import annotations

import re
from functools import cache

from dragoman.demo_corpus.english_forms import BE_PAST, BE_PRESENT
from dragoman.demo_corpus.lexicon import (
    ADJECTIVES,
    ADVERBS,
    CLAUSE_VERBS,
    CONJUNCTIONS,
    COST,
    MODALS,
    NOUNS,
    NUMBERS,
    TIMES,
    VERBS,
)
from dragoman.demo_corpus.pronouns import PRONOUNS

# Words that no table has as an entry.
_FUNCTION_WORDS = """
the der, a ein, an ein, this dieser, these dieser, every jeder, many viele, no kein, not nicht, to zu, of
von, will werden, would würde, do tun, does tun, did tun, that dass, whether ob, than als, and und, but
aber, who wer, whom wen, what was, which welcher, where wo, when wann, why warum, there da, very sehr,
too zu, so so, quite ziemlich, please bitte, euros Euro, cannot können, likes mögen, like mögen, wants
wollen, want wollen, with mit, after nach, before vor, on auf, under unter, behind hinter, in in, at an,
into in, onto auf, for für, about über, front vorn, next nächster, last letzter, up auf, off ab, ago vor,
days Tag, weeks Woche, years Jahr, week Woche, year Jahr, day Tag, right richtig, now jetzt, o'clock Uhr,
as wie, soon bald
"""


@cache
def _dictionary() -> dict[str, str]:
    """Maps every English form to the German word as a dictionary lists it. A word's first entry counts."""
    entries: list[tuple[str, str]] = [tuple(pair.split()) for pair in _FUNCTION_WORDS.split(",")]  # type: ignore
    entries += [(form, "sein") for form in (*BE_PRESENT, *BE_PAST, "be")]
    for pronoun in PRONOUNS:
        entries.append((pronoun.english, pronoun.german[0]))
        entries.append((pronoun.possessive.english, pronoun.possessive.german[0][0]))
        entries.append((pronoun.english_object, pronoun.german[1]))
    entries += list(NUMBERS)
    for noun in NOUNS:
        entries += [(noun.english, noun.german[0][0]), (noun.english_plural, noun.german[0][0])]
    for adjective in ADJECTIVES:
        entries.append((adjective.english, adjective.german))
        entries.append((adjective.english_comparative, adjective.german_comparative))
    for verb in (*VERBS, *CLAUSE_VERBS, COST):
        entries += [(form.split()[0], verb.german.infinitive) for form in verb.english]
    entries += [(modal.english, modal.german[3]) for modal in MODALS]
    for group in (*TIMES, *ADVERBS):
        english, german = group[0].english.split(), group[0].german.split()
        entries.append((english[-1], german[-1]))
    entries += [(conjunction.english, conjunction.german) for conjunction in CONJUNCTIONS]
    dictionary: dict[str, str] = {}
    for english_word, german_word in entries:
        dictionary.setdefault(english_word.lower(), german_word)
    return dictionary


def word_by_word(sentence: str) -> str:
    """The sentence with each English word replaced by its dictionary entry, in the English order."""
    dictionary = _dictionary()

    def entry(match: re.Match[str]) -> str:
        word = match.group()
        return dictionary.get(word.lower(), word)

    text = re.sub(r"[\w]+(?:'clock)?", entry, sentence)
    return text[:1].upper() + text[1:]
