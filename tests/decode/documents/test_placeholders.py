from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman.decode.documents.placeholders import placeholders_in, translate_keeping

MESSAGE = "{n, plural, =1 {one day} other {# days}}"


class Model:
    """Says everything in capitals, placeholders too if it is careless. Remembers what it was asked."""

    def __init__(self, careless: bool = False):
        self.careless = careless
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[str]:
        self.asked += texts
        return [self._translate(text) for text in texts]

    def _translate(self, text: str) -> str:
        if self.careless:
            return text.upper()
        kept = placeholders_in(text)
        return " ".join(word if word in kept else word.upper() for word in text.split(" "))


@pytest.mark.parametrize(
    ("text", "placeholders"),
    [
        ("%s has %d of %1$s, %(name)s and %5.2f", ["%s", "%d", "%1$s", "%(name)s", "%5.2f"]),
        ("{0} and {name} and ${x} and {{ y }}", ["{0}", "{name}", "${x}", "{{ y }}"]),
        ('<a href="x">here</a><br/>', ['<a href="x">', "</a>", "<br/>"]),
        ("this&nbsp;and &#160;", ["&nbsp;", "&#160;"]),
        ("see https://example.org/a?b=c now", ["https://example.org/a?b=c"]),
        ("100% of it, 5 < 6 & 7 > 3", []),
        (
            "{n, plural, =1 {one day} other {# days}} in {place}",
            ["{n, plural, =1 {one day} other {# days}}", "{place}"],
        ),
        ("an open { brace", []),
    ],
)
def test_placeholders_are_seen(text: str, placeholders: list[str]) -> None:
    assert sorted(placeholders_in(text).elements()) == sorted(placeholders)


def test_a_translation_that_kept_them_is_taken_whole() -> None:
    model = Model()
    assert translate_keeping(["copy %s to {name}"], model) == ["COPY %s TO {name}"]
    assert model.asked == ["copy %s to {name}"]


def test_where_the_model_lost_one_the_text_around_it_is_translated() -> None:
    model = Model(careless=True)
    texts = ["copy %s to <b>the {name} folder</b>!", "no placeholder"]
    assert translate_keeping(texts, model) == ["COPY %s TO <b>THE {name} FOLDER</b>!", "NO PLACEHOLDER"]


def test_what_has_no_word_is_not_translated() -> None:
    model = Model()
    assert translate_keeping(["%s: %d", "12.5", "", "{name}"], model) == ["%s: %d", "12.5", "", "{name}"]
    assert model.asked == []


@pytest.mark.parametrize(
    ("text", "translation", "is_taken"),
    [
        ("%s has %d items", "%d Elemente hat %s", False),  # a type mismatch for printf
        ("%1$s has %2$d items", "%2$d Elemente hat %1$s", True),
        ("%s is 100%% done by %d", "100%% von %s durch %d", True),
        ("{} of {}, {name}", "{name}, {} von {}", True),
        ("<b>here</b> we are", "wir sind </b>hier<b>", False),
        ("<b>one</b> and <i>two</i>", "<i>zwei</i> und <b>eins</b>", True),
        ("a<br>b <b>c</b>", "<b>c</b> b<br>a", True),
        (
            "{n, plural, =1 {one day} other {# days}} left",
            "noch {n, Plural, =1 {one day} andere {# days}}",
            False,
        ),
    ],
)
def test_a_placeholder_where_it_means_something_else_is_not_taken(
    text: str, translation: str, is_taken: bool
) -> None:
    def model(texts: Sequence[str]) -> list[str]:
        return [translation if asked == text else asked.upper() for asked in texts]

    (result,) = translate_keeping([text], model)
    assert (result == translation) == is_taken
    assert placeholders_in(result) == placeholders_in(text)


def test_braces_left_open_cost_no_more_than_their_number() -> None:
    """A pattern that calls itself took minutes for ten thousand. The suite's time limit is the test."""
    assert not placeholders_in("{" * 100_000)
    assert list(placeholders_in("{" * 100 + MESSAGE)) == [MESSAGE]
