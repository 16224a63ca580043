"""decode/texts.py: what a model is given of a text."""

from collections.abc import Sequence

from dragoman.decode.engine import Options, Translation
from dragoman.decode.texts import TextTranslator


def test_white_space_that_no_model_has_seen_becomes_a_space() -> None:
    """`prepare` leaves single spaces only: a tab, a no-break or a wide one is unknown to a model."""
    given: list[str] = []

    def encode(texts: Sequence[str]) -> list[str]:
        given.extend(texts)
        return list(texts)

    def find(tokens: Sequence[str], options: Options) -> list[list[Translation]]:
        return [[Translation(text.upper(), 0.0)] for text in tokens]

    translator = TextTranslator(encode, find, pieces=100)
    (found,) = translator.translate(["\u00a0bonjour\u00a0! \tça\u3000va\u202f?\u00a0"], Options())
    assert given == ["bonjour ! ça va ?"]
    assert found[0].text == "\u00a0BONJOUR ! ÇA VA ?\u00a0", "around the text it stays as it was"
