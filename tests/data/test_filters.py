from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.config import CleanRules
from dragoman.data.filters import EXAMPLES_KEPT, Cleaner, DropTally, Example, Pair, hashes
from dragoman.data.formats import RawPair
from dragoman.data.reasons import MEANING, Reason


def judge(source: str | bytes, target: str | bytes, **rules: object) -> Pair | Reason:
    sides = (side if isinstance(side, bytes) else side.encode() for side in (source, target))
    return Cleaner(CleanRules(**rules), "en", "de").judge(*sides)


words = " ".join


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (b"caf\xe9", "Kaffee", Reason.INVALID_UTF8),
        ("coffee", b"\xff\xfe", Reason.INVALID_UTF8),
        (b"\xed\xa0\x80", "half of a surrogate pair", Reason.INVALID_UTF8),
        ("one\x00two", "eins", Reason.CONTROL_CHARACTER),
        ("one", "eins\x1b[0m", Reason.CONTROL_CHARACTER),
        ("one", "eins\x9f", Reason.CONTROL_CHARACTER),
        ("one\rtwo", "eins", Reason.CONTROL_CHARACTER),
        ("one\u2028two", "eins", Reason.LINE_SEPARATOR),
        ("one", "eins\u2029", Reason.LINE_SEPARATOR),
        ("one", "eins\u0085zwei", Reason.LINE_SEPARATOR),
        ("", "eins", Reason.EMPTY),
        ("one", " \t\u00a0\u3000", Reason.EMPTY),
        (words(["one"] * 81), words(["eins"] * 80), Reason.LENGTH),
        (words(["one"] * 80), words(["eins"] * 81), Reason.LENGTH),
        ("one", words(["eins"] * 10), Reason.RATIO),
        (words(["one"] * 19), "eins zwei", Reason.RATIO),
        ("Berlin", "Berlin", Reason.IDENTICAL),
        ("New  York ", "New York", Reason.IDENTICAL),
    ],
)
def test_each_fault_has_its_reason(source: str | bytes, target: str | bytes, reason: Reason) -> None:
    assert judge(source, target) is reason


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (words(["one"] * 80), words(["eins"] * 80)),
        ("one", words(["eins"] * 9)),
        (words(["one"] * 18), "eins zwei"),
        ("zero\u200bwidth", "e\u0301"),
        ("Berlin", "berlin"),
    ],
)
def test_a_pair_on_the_border_stays(source: str, target: str) -> None:
    assert isinstance(judge(source, target), Pair)


def test_a_request_changes_the_rules() -> None:
    assert judge("one two", "eins zwei", min_words=3) is Reason.LENGTH
    assert judge("one two three", "eins zwei drei", max_words=2) is Reason.LENGTH
    assert judge("one", "eins zwei drei", max_ratio=2) is Reason.RATIO
    assert judge("Berlin", "Berlin", drop_identical=False) == Pair("Berlin", "Berlin")
    assert judge("one\x00", "eins", drop_control_characters=False) == Pair("one\x00", "eins")


def test_text_comes_out_composed_and_with_single_spaces() -> None:
    assert judge(" o\u0308l  and\tvinegar ", "Öl und\u00a0Essig") == Pair("öl and vinegar", "Öl und Essig")
    assert judge("o\u0308l", "oil", normalise="none") == Pair("o\u0308l", "oil")


def test_composed_and_decomposed_are_the_same_pair() -> None:
    pairs = [RawPair("o\u0308l".encode(), b"oil", 1), RawPair("\u00f6l".encode(), b"oil", 2)]
    chunk = Cleaner(CleanRules(), "de", "en").clean(pairs, "file")
    assert len(set(chunk.pair_hashes.tolist())) == 1


def test_script_and_language_are_looked_at_only_on_request() -> None:
    english, german = "The weather is very nice today.", "Das Wetter ist heute sehr schön."
    assert isinstance(judge(english, "Погода сегодня очень хорошая."), Pair)
    assert judge(english, "Погода сегодня очень хорошая.", check_script=True) is Reason.WRONG_SCRIPT
    assert isinstance(judge(german, english), Pair)
    assert judge(german, english, check_language=True) is Reason.WRONG_LANGUAGE
    assert isinstance(judge(english, german, check_language=True, check_script=True), Pair)


def test_every_reason_has_a_meaning_for_the_card() -> None:
    assert list(MEANING) == list(Reason)


def test_a_dropped_pair_is_kept_with_file_and_line() -> None:
    pairs = [RawPair(b"one", b"eins", 7), RawPair(b"caf\xe9", b"Kaffee", 8)]
    chunk = Cleaner(CleanRules(), "en", "de").clean(pairs, "a.en")
    assert chunk.tally.examples == {"invalid_utf8": [Example("a.en", 8, r"caf\xe9", "Kaffee")]}
    assert (chunk.source, chunk.target, chunk.lines.tolist()) == (b"one\n", b"eins\n", [7])


@given(st.lists(st.integers(0, 12), max_size=6))
def test_tallies_of_chunks_add_up_and_keep_the_first_examples(counts: list[int]) -> None:
    whole, line, lines = DropTally(), 0, []
    for count in counts:
        part = DropTally()
        for _ in range(count):
            line += 1
            part.drop(Reason.EMPTY, Example("a.en", line, "", ""))
            lines.append(line)
        whole.add(part)
    assert whole.dropped[Reason.EMPTY] == sum(counts)
    assert [example.line for example in whole.examples.get(Reason.EMPTY, [])] == lines[:EXAMPLES_KEPT]


sides = st.one_of(
    st.binary(max_size=12),
    st.text(max_size=12).map(lambda text: text.encode()),
    st.text("ab \u0308\u2028", max_size=12).map(lambda text: text.encode()),
).map(lambda side: side.replace(b"\n", b""))


@given(st.lists(st.tuples(sides, sides), max_size=20), st.booleans())
@example([(b"a\x1cb", b"c\x1dd")], False)  # Python takes these for line ends
def test_whatever_the_bytes_no_pair_is_lost_and_lines_stay_lines(
    pairs: list[tuple[bytes, bytes]], drop_control_characters: bool
) -> None:
    rules = CleanRules(drop_control_characters=drop_control_characters, max_words=4)
    raw = [RawPair(*pair, line) for line, pair in enumerate(pairs, 1)]
    chunk = Cleaner(rules, "en", "de").clean(raw, "file")
    kept = len(chunk.lines)
    assert chunk.read_pairs == len(pairs) == kept + sum(chunk.tally.dropped.values())
    assert chunk.source.count(b"\n") == chunk.target.count(b"\n") == kept
    assert len(chunk.pair_hashes) == len(chunk.source_hashes) == kept
    for text in (chunk.source.decode(), chunk.target.decode()):
        assert unicodedata.is_normalized("NFC", text)
        assert all(line == " ".join(line.split()) != "" for line in text.split("\n")[:-1])
        assert len(text.splitlines()) == kept


def test_hashes_tell_a_shifted_border_between_source_and_target() -> None:
    pairs = [RawPair(b"a b", b"c", 1), RawPair(b"a", b"b c", 2)]
    chunk = Cleaner(CleanRules(), "en", "de").clean(pairs, "file")
    assert len(set(chunk.pair_hashes.tolist())) == 2
    assert hashes([]).tolist() == []
