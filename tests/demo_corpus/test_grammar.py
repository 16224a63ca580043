"""Each construction said in both languages, from a meaning built by hand."""

from __future__ import annotations

import pytest

from dragoman.demo_corpus import english, german
from dragoman.demo_corpus.german_forms import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE
from dragoman.demo_corpus.lexicon import (
    ADJECTIVES,
    ADVERBS,
    BE,
    CLAUSE_VERBS,
    CONJUNCTIONS,
    COST,
    MODALS,
    NOUNS,
    TIMES,
    VERBS,
    Adjective,
    Adverbial,
    Modal,
    Noun,
    Verb,
)
from dragoman.demo_corpus.meaning import (
    BARE,
    NO,
    THE,
    THIS,
    A,
    Clause,
    Determiner,
    Phrase,
    Predicate,
    Relative,
    Sentence,
    Where,
    unchanging,
)
from dragoman.demo_corpus.pronouns import HE_PRONOUN, HER, NAMES, SHE, YOU, I


def noun(word: str) -> Noun:
    return next(noun for noun in NOUNS if noun.english == word)


def verb(word: str, frame: str = "") -> Verb:
    return next(
        verb for verb in (*VERBS, *CLAUSE_VERBS) if verb.english.base == word and frame in ("", verb.frame)
    )


def adjective(word: str) -> Adjective:
    return next(adjective for adjective in ADJECTIVES if adjective.english == word)


def modal(word: str) -> Modal:
    return next(modal for modal in MODALS if modal.english == word)


def adverbial(word: str) -> Adverbial:
    return next(a for group in (*TIMES, *ADVERBS) for a in group if a.english == word)


def conjunction(german_word: str) -> Adverbial:
    return next(c for c in CONJUNCTIONS if c.german == german_word)


def np(word: str, determiner: Determiner = THE, is_: str = "", plural: bool = False) -> Phrase:
    return Phrase(noun(word), determiner, adjective(is_) if is_ else None, plural)


def at(word: str) -> Where:
    return Where(*noun(word).at, DATIVE, np(word))


def to(word: str) -> Where:
    german_preposition = noun(word).to[1]
    return Where(*noun(word).to, DATIVE if german_preposition == "zu" else ACCUSATIVE, np(word))


ANNA = Phrase(None, pronoun=NAMES[0])
ME, YOU_THERE = Phrase(None, pronoun=I), Phrase(None, pronoun=YOU)
SHE_THERE, HE_THERE = Phrase(None, pronoun=SHE), Phrase(None, pronoun=HE_PRONOUN)


def both(meaning: Sentence | Clause) -> tuple[str, str]:
    sentence = meaning if isinstance(meaning, Sentence) else Sentence(meaning)
    return english.sentence(sentence), german.sentence(sentence)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            NOMINATIVE,
            ["der alte Hund", "ein alter Hund", "Annas alter Hund", "die alten Hunde", "drei alte Hunde"],
        ),
        (
            ACCUSATIVE,
            ["den alten Hund", "einen alten Hund", "Annas alten Hund", "die alten Hunde", "drei alte Hunde"],
        ),
        (
            DATIVE,
            [
                "dem alten Hund",
                "einem alten Hund",
                "Annas altem Hund",
                "den alten Hunden",
                "drei alten Hunden",
            ],
        ),
        (GENITIVE, ["des alten Hundes", "eines alten Hundes"]),
    ],
)
def test_articles_and_adjectives_follow_case_and_number(case: int, expected: list[str]):
    phrases = [
        np("dog", THE, "old"),
        np("dog", A, "old"),
        np("dog", unchanging("Anna's", "Annas"), "old"),
        np("dog", THE, "old", plural=True),
        np("dog", unchanging("three", "drei"), "old", plural=True),
    ]
    assert [german.phrase(phrase, case) for phrase in phrases[: len(expected)]] == expected


def test_adjectives_follow_gender():
    assert german.phrase(np("cat", A, "small"), NOMINATIVE) == "eine kleine Katze"
    assert german.phrase(np("house", A, "old"), NOMINATIVE) == "ein altes Haus"
    assert german.phrase(np("milk", BARE, "cold"), DATIVE) == "kalter Milch"
    assert german.phrase(np("car", THIS, "expensive"), DATIVE) == "diesem teuren Auto"


def test_weak_masculines_change_outside_the_nominative():
    cases = (NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE)
    assert [german.phrase(np("boy"), case) for case in cases] == [
        "der Junge",
        "den Jungen",
        "dem Jungen",
        "des Jungen",
    ]


def test_a_becomes_an_before_a_vowel_that_is_spoken():
    words = [("owl", ""), ("dog", "old"), ("university", ""), ("umbrella", "red")]
    assert [english.phrase(np(word, A, is_)) for word, is_ in words] == [
        "an owl",
        "an old dog",
        "a university",
        "a red umbrella",
    ]


def test_a_fronted_time_puts_the_verb_before_the_subject():
    clause = Clause(
        ANNA, verb("read"), "past", accusative=np("book", A), time=adverbial("yesterday"), fronted="time"
    )
    assert both(clause) == ("Yesterday Anna read a book.", "Gestern hat Anna ein Buch gelesen.")


def test_a_separable_verb_stands_apart_in_a_main_clause():
    clause = Clause(ANNA, verb("turn on"), accusative=np("lamp"))
    assert both(clause) == ("Anna turns on the lamp.", "Anna schaltet die Lampe ein.")


def test_a_separable_verb_is_one_word_at_the_end_of_a_subordinate_clause():
    clause = Clause(ANNA, verb("turn on"), accusative=np("lamp"))
    sentence = Sentence(Clause(ME, verb("laugh")), conjunction=conjunction("weil"), second=clause)
    assert both(sentence) == (
        "I laugh because Anna turns on the lamp.",
        "Ich lache, weil Anna die Lampe einschaltet.",
    )


def test_a_separable_verb_takes_ge_and_zu_inside():
    perfect = Clause(ANNA, verb("turn on"), "past", accusative=np("lamp"))
    assert both(perfect) == ("Anna turned on the lamp.", "Anna hat die Lampe eingeschaltet.")
    infinitive = Clause(ANNA, verb("try"), complement=Clause(ANNA, verb("close"), accusative=np("window")))
    assert both(infinitive) == ("Anna tries to close the window.", "Anna versucht, das Fenster zuzumachen.")


def test_a_bare_infinitive_takes_no_comma():
    clause = Clause(ANNA, verb("try"), complement=Clause(ANNA, verb("sleep")))
    assert both(clause) == ("Anna tries to sleep.", "Anna versucht zu schlafen.")


def test_verbs_of_motion_take_sein_in_the_perfect():
    assert both(Clause(np("woman"), verb("go"), "past", place=to("station"))) == (
        "The woman went to the station.",
        "Die Frau ist zum Bahnhof gegangen.",
    )


def test_being_somewhere_is_dative_and_going_there_accusative():
    assert both(Clause(np("boy"), verb("sit"), place=at("garden")))[1] == "Der Junge sitzt im Garten."
    assert both(Clause(np("boy"), verb("run"), place=to("garden")))[1] == "Der Junge läuft in den Garten."
    assert both(Clause(np("boy"), verb("go"), place=to("cinema")))[1] == "Der Junge geht ins Kino."


def test_a_leading_clause_counts_as_the_first_place():
    sentence = Sentence(
        Clause(ANNA, verb("sing"), "past"),
        conjunction=conjunction("als"),
        second=Clause(np("guest", plural=True), verb("come back"), "past"),
        second_first=True,
    )
    assert both(sentence) == (
        "When the guests came back, Anna sang.",
        "Als die Gäste zurückgekommen sind, hat Anna gesungen.",
    )


def test_modal_verbs_send_the_infinitive_to_the_end():
    clause = Clause(YOU_THERE, verb("eat"), modal=modal("must"), accusative=np("soup"))
    assert both(clause) == ("You must eat the soup.", "Du musst die Suppe essen.")
    told = Clause(ME, verb("know", "that"), complement=clause)
    assert both(told) == ("I know that you must eat the soup.", "Ich weiß, dass du die Suppe essen musst.")


def test_a_past_modal_is_a_preterite():
    clause = Clause(
        SHE_THERE, verb("help"), "past", modal=modal("want to"), dative=np("neighbour"), negated=True
    )
    assert both(clause) == (
        "She did not want to help the neighbour.",
        "Sie wollte dem Nachbarn nicht helfen.",
    )


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("subject", ("The man who sleeps laughs.", "Der Mann, der schläft, lacht.")),
        ("accusative", ("The man whom Anna calls laughs.", "Der Mann, den Anna anruft, lacht.")),
        ("dative", ("The man whom Anna helps laughs.", "Der Mann, dem Anna hilft, lacht.")),
        ("prepositional", ("The man for whom Anna waits laughs.", "Der Mann, auf den Anna wartet, lacht.")),
    ],
)
def test_a_relative_pronoun_takes_its_gender_from_the_noun_and_its_case_from_its_clause(role, expected):
    man = np("man")
    clause = {
        "subject": Clause(np("man"), verb("sleep")),
        "accusative": Clause(ANNA, verb("call"), accusative=man),
        "dative": Clause(ANNA, verb("help"), dative=man),
        "prepositional": Clause(ANNA, verb("wait"), prepositional=man),
    }[role]
    man.relative = Relative(clause, role)
    assert both(Clause(man, verb("laugh"))) == expected


def test_a_relative_clause_at_the_end_follows_the_verb():
    cake = np("cake")
    cake.relative = Relative(Clause(ANNA, verb("bake"), "past", accusative=cake), "accusative")
    assert both(Clause(HE_THERE, verb("eat"), "past", accusative=cake)) == (
        "He ate the cake that Anna baked.",
        "Er hat den Kuchen gegessen, den Anna gebacken hat.",
    )


def test_an_indefinite_object_is_negated_with_kein_and_a_definite_one_with_nicht():
    assert both(Clause(ANNA, verb("buy"), negated=True, accusative=np("hat", A))) == (
        "Anna does not buy a hat.",
        "Anna kauft keinen Hut.",
    )
    assert both(Clause(ANNA, verb("buy"), negated=True, accusative=np("hat"))) == (
        "Anna does not buy the hat.",
        "Anna kauft den Hut nicht.",
    )
    assert both(Clause(ANNA, verb("have"), negated=True, accusative=np("dog", NO))) == (
        "Anna has no dog.",
        "Anna hat keinen Hund.",
    )


def test_nicht_precedes_a_goal_and_an_adjective():
    assert (
        both(Clause(HE_THERE, verb("go"), negated=True, place=to("school")))[1]
        == "Er geht nicht in die Schule."
    )
    dark = Clause(np("cellar"), BE, "past", negated=True, predicate=Predicate(adjective("dark")))
    assert both(dark) == ("The cellar was not dark.", "Der Keller war nicht dunkel.")


def test_questions_begin_with_the_verb_or_the_question_word():
    clause = Clause(YOU_THERE, verb("read"), accusative=np("letter"))
    assert both(Sentence(clause, "question")) == ("Do you read the letter?", "Liest du den Brief?")
    assert both(Sentence(clause, "question", "why"))[1] == "Warum liest du den Brief?"
    assert both(Sentence(Clause(ANNA, verb("help"), "past"), "question", "whom")) == (
        "Whom did Anna help?",
        "Wem hat Anna geholfen?",
    )
    assert both(Sentence(Clause(ANNA, verb("go"), "progressive"), "question", "where")) == (
        "Where is Anna going?",
        "Wohin geht Anna?",
    )


def test_requests_use_the_short_imperative():
    clause = Clause(YOU_THERE, verb("throw away"), negated=True, accusative=np("newspaper"))
    assert both(Sentence(clause, "request")) == (
        "Please do not throw away the newspaper.",
        "Bitte wirf die Zeitung nicht weg.",
    )


def test_numbers_are_words_before_nouns_and_digits_in_prices_and_hours():
    clause = Clause(np("shoe", THE, "red", plural=True), COST, price=45)
    assert both(clause) == ("The red shoes cost 45 euros.", "Die roten Schuhe kosten 45 Euro.")
    clause = Clause(ME, verb("see"), "past", accusative=np("bear", unchanging("two", "zwei"), plural=True))
    assert both(clause) == ("I saw two bears.", "Ich habe zwei Bären gesehen.")
    clause = Clause(ME, verb("get up"), time=adverbial("at 7 o'clock"))
    assert both(clause) == ("I get up at 7 o'clock.", "Ich stehe um 7 Uhr auf.")


def test_there_is_becomes_es_gibt_with_the_accusative():
    clause = Clause(np("garden"), BE, accusative=np("tree", A, "old"), place=at("garden"))
    assert both(Sentence(clause, "there")) == (
        "There is an old tree in the garden.",
        "Im Garten gibt es einen alten Baum.",
    )


def test_a_comparison_uses_umlaut_and_als():
    clause = Clause(np("dog"), BE, predicate=Predicate(adjective("old"), than=np("cat")))
    assert both(clause) == ("The dog is older than the cat.", "Der Hund ist älter als die Katze.")


def test_liking_to_do_something_becomes_gern():
    clause = Clause(ANNA, verb("read"), likes=True, accusative=np("book", BARE, plural=True))
    assert both(clause) == ("Anna likes to read books.", "Anna liest gern Bücher.")


def test_a_receiver_is_dative_and_a_possessive_follows_the_owner():
    clause = Clause(ANNA, verb("give"), "future", dative=np("child"), accusative=np("ball", HER))
    assert both(clause) == ("Anna will give the child her ball.", "Anna wird dem Kind ihren Ball geben.")


def test_the_genitive_of_a_noun_follows_in_german():
    phrase = np("book", THE, "old")
    phrase.owner = np("teacher")
    assert english.phrase(phrase) == "the teacher's old book"
    assert german.phrase(phrase, ACCUSATIVE) == "das alte Buch der Lehrerin"


def test_the_lexicon_has_300_to_500_words():
    assert 300 <= sum(map(len, (NOUNS, VERBS, ADJECTIVES, MODALS, TIMES, ADVERBS, CLAUSE_VERBS))) <= 500


def test_regular_forms_are_spelled_right():
    assert verb("shop").english == ("shop", "shops", "shopped", "shopped", "shopping")
    assert verb("carry").english == ("carry", "carries", "carried", "carried", "carrying")
    assert verb("draw").german.present == ("zeichne", "zeichnest", "zeichnet", "zeichnen", "zeichnen")
    assert verb("play").german.present[:3] == ("spiele", "spielst", "spielt")
    assert noun("secret").german[0][GENITIVE] == "Geheimnisses"
    assert verb("collect").german.present[:3] == ("sammle", "sammelst", "sammelt")
    assert verb("read").german.present[:3] == ("lese", "liest", "liest")
