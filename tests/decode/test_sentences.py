"""Texts into sentences and back: nothing is lost, and nothing is split that is one sentence."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decode.sentences import join, split


def words(texts: Sequence[str]) -> list[int]:
    """A count of tokens in which a word is one, and so is each letter of a word without spaces around it."""
    return [max(len(text.split()), len(text) // 10) for text in texts]


def sentences(text: str, longest: int = 1_000_000, always: bool = True) -> list[str]:
    return [sentence.text for sentence in split(text, longest, words, always)]


@pytest.mark.parametrize(
    "expected",
    [
        ["A dog runs.", "Two men talk!", "Do they?", "Yes."],
        ["He said “Go.”", "She went."],
        ['He said: "Stop!"', '"Why?"', "(Because.)", "Then he left."],
        ["Dr. Smith met J. R. Miller at 5.30 p.m. near St. Mary's.", "It rained."],
        ["Hello.", "Dr. Smith came (cf. Fig. 3).", "Mr. Miller left."],
        ["Das kostet ca. 3.50 Euro, z. B. bei Nr. 5.", "Über alles."],
        ["version 2.0 is out.", "Get it at www.example.org now."],
        ["He waited… and waited.", "Nothing."],
        ["Это предложение.", "Это другое."],
        ["一只狗在跑。", "两个人在说话！", "真的吗？"],
        ["यह एक वाक्य है।", "यह दूसरा है।"],
    ],
    ids=lambda expected: expected[0],
)
def test_sentences_end_where_they_end(expected: list[str]) -> None:
    for space in (" ", "  "):
        separator = "" if expected[0].endswith("。") else space
        assert sentences(separator.join(expected)) == expected


@pytest.mark.parametrize("part", ["A. ", '"', "）", "! ", "。", "([", "a,"])
def test_no_text_takes_the_square_of_its_length(part: str) -> None:
    began = time.process_time()
    split(part * (20_000 // len(part)), 128, words, always=True)
    assert time.process_time() - began < 2  # of which 0.1 are enough; a server would stand still meanwhile


def test_a_text_that_is_not_too_long_stays_whole() -> None:
    text = "A dog runs. A cat sleeps."
    assert sentences(text, longest=6, always=False) == [text]
    assert sentences(text, longest=5, always=False) == ["A dog runs.", "A cat sleeps."]


def test_lines_are_always_apart() -> None:
    assert sentences("one\ntwo\n\n three", always=False) == ["one", "two", "three"]


def test_a_sentence_that_is_too_long_is_cut_at_a_comma_else_between_words() -> None:
    with_comma = "one two three four, five six seven eight"
    assert sentences(with_comma, longest=5) == ["one two three four,", "five six seven eight"]
    without = " ".join(str(number) for number in range(40))
    parts = sentences(without, longest=12)
    assert all(len(part.split()) <= 12 for part in parts)
    assert " ".join(parts) == without


def test_a_text_without_any_space_is_cut_too() -> None:
    text = "犬" * 1_000
    parts = sentences(text, longest=10)
    assert "".join(parts) == text
    assert all(count <= 10 for count in words(parts))


@given(st.text(alphabet="aB .!?,\n\t\u3000。", max_size=80), st.booleans(), st.integers(1, 30))
def test_put_together_again_a_text_is_itself(text: str, always: bool, longest: int) -> None:
    parts = split(text, longest, words, always)
    again = join(parts, [part.text for part in parts])
    assert again.replace(" ", "") == text.replace(" ", "")  # a space may come where the source had none
    assert len(again) >= len(text)


def test_translations_into_a_script_with_spaces_get_them() -> None:
    parts = split("一只狗。两只猫。", 100, words, always=True)
    assert join(parts, ["A dog.", "Two cats."]) == "A dog. Two cats."
    assert join(parts, ["犬。", "猫。"]) == "犬。猫。"
