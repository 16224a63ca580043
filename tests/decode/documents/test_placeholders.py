from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman.decode.documents.placeholders import found_in, translate_keeping


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
        kept = found_in(text)
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
    ],
)
def test_placeholders_are_seen(text: str, placeholders: list[str]) -> None:
    assert sorted(found_in(text).elements()) == sorted(placeholders)


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
