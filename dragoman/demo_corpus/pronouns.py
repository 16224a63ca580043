"""Pronouns and names, and which pronoun stands for which person."""

from __future__ import annotations

from dragoman.demo_corpus.english_forms import HE
from dragoman.demo_corpus.german_forms import FEMININE, MASCULINE
from dragoman.demo_corpus.meaning import THE, Determiner, Phrase, Pronoun, possessive, unchanging
from dragoman.demo_corpus.smallwords import MEN, WOMEN

HIS, HER = possessive("his", "sein"), possessive("her", "ihr")
I = Pronoun("I", "me", ("ich", "mich", "mir"), 0, possessive("my", "mein"))  # noqa: E741
YOU = Pronoun("you", "you", ("du", "dich", "dir"), 1, possessive("your", "dein"))
HE_PRONOUN = Pronoun("he", "him", ("er", "ihn", "ihm"), 2, HIS)
SHE = Pronoun("she", "her", ("sie", "sie", "ihr"), 2, HER)
WE = Pronoun("we", "us", ("wir", "uns", "uns"), 3, possessive("our", "unser"))
THEY_PRONOUN = Pronoun("they", "them", ("sie", "sie", "ihnen"), 4, possessive("their", "ihr"))
PRONOUNS = (I, YOU, HE_PRONOUN, SHE, WE, THEY_PRONOUN)
NAMES = tuple(
    Pronoun(name, name, (name, name, name), 2, determiner, is_name=True)
    for names, determiner in ((WOMEN, HER), (MEN, HIS))
    for name in names.split()
)
NAMES_OWN = tuple(unchanging(f"{name.english}'s", f"{name.english}s") for name in NAMES)
POSSESSIVES = tuple(pronoun.possessive for pronoun in PRONOUNS)


def possessive_of(subject: Phrase) -> Determiner:
    """The possessive that refers to the subject, or `the` if no pronoun suits it."""
    pronoun = pronoun_of(subject)
    return pronoun.possessive if pronoun is not None else THE


def pronoun_of(phrase: Phrase) -> Pronoun | None:
    """The pronoun for a person. None for girls and children, whose German grammar and sex disagree."""
    if phrase.pronoun is not None:
        if phrase.pronoun.is_name:
            return SHE if phrase.pronoun.possessive is HER else HE_PRONOUN
        return phrase.pronoun
    noun = phrase.noun
    if noun is None or not noun.is_person:
        return None
    if phrase.person != HE:
        return THEY_PRONOUN
    return {FEMININE: SHE, MASCULINE: HE_PRONOUN}.get(noun.gender)
