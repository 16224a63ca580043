"""Scores, intervals and comparisons are sacreBLEU's."""

import random

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

from dragoman.evaluate import scores

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "house",
    "garden",
    "sees",
    "takes",
    "runs",
    "sleeps",
    "under",
    "red",
    "old",
]


def text(sentences: int, seed: int) -> list[str]:
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(WORDS, k=chosen.randint(6, 14))) for _ in range(sentences)]


def spoilt(sentences: list[str], share: float, seed: int) -> list[str]:
    """So large a share of the words is replaced."""
    chosen = random.Random(seed)
    return [
        " ".join(chosen.choice(WORDS) if chosen.random() < share else word for word in sentence.split())
        for sentence in sentences
    ]


REFERENCES = text(120, 1)
GOOD, BAD = spoilt(REFERENCES, 0.2, 2), spoilt(REFERENCES, 0.5, 3)


def test_values_intervals_and_signatures_are_those_of_sacrebleu() -> None:
    found = scores.compare([GOOD], [REFERENCES], scores.metrics("de")).scores[0]
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())):
        expected = metric.corpus_score(GOOD, [REFERENCES], n_bootstrap=1000)
        assert found[name].value == pytest.approx(expected.score)
        assert (found[name].high - found[name].low) / 2 == pytest.approx(expected._ci)
        assert found[name].low < found[name].value < found[name].high
        assert found[name].signature == str(metric.get_signature())
    assert "bs:1000|seed:12345" in found["bleu"].signature


def test_a_clear_difference_is_found_in_every_metric_whichever_comes_first() -> None:
    for first, second, better in ((GOOD, BAD, "first"), (BAD, GOOD, "second")):
        found = scores.compare([first, second], [REFERENCES], scores.metrics(None))
        assert [difference.metric for difference in found.differences] == ["bleu", "chrf", "ter"]
        for difference in found.differences:
            value = found.scores[1][difference.metric].value - found.scores[0][difference.metric].value
            assert difference.value == pytest.approx(value)
            assert difference.better == better
            assert difference.p_value < 0.01


def test_chance_is_not_called_better() -> None:
    twin = spoilt(REFERENCES, 0.2, 4)
    found = scores.compare([GOOD, twin], [REFERENCES], scores.metrics(None))
    assert all(difference.better is None for difference in found.differences)
    same = scores.compare([GOOD, GOOD], [REFERENCES], scores.metrics(None))
    assert all((difference.value, difference.better) == (0, None) for difference in same.differences)


def test_all_references_count() -> None:
    found = scores.compare([GOOD], [REFERENCES, GOOD], scores.metrics(None)).scores[0]
    assert found["bleu"].value == pytest.approx(100)
    assert found["bleu"].signature.startswith("nrefs:2|")


@pytest.mark.parametrize(("language", "tokeniser"), [("de", "13a"), (None, "13a"), ("zh", "zh")])
def test_words_are_split_as_the_language_asks_and_the_signature_says_so(
    language: str | None, tokeniser: str
) -> None:
    found = scores.compare([["我喜欢猫。"]], [["我喜欢狗。"]], scores.metrics(language)).scores[0]
    assert f"tok:{tokeniser}|" in found["bleu"].signature
    expected = sacrebleu.corpus_bleu(["我喜欢猫。"], [["我喜欢狗。"]], tokenize=tokeniser)
    assert found["bleu"].value == pytest.approx(expected.score)


def test_languages_without_an_installed_splitter_are_split_into_characters() -> None:
    found = scores.compare([["猫が好きです"]], [["犬が好きです"]], scores.metrics("ja")).scores[0]
    assert "tok:char|" in found["bleu"].signature or "tok:ja-mecab" in found["bleu"].signature
    assert found["bleu"].value > 0


def test_a_large_test_set_is_drawn_less_often_and_the_signature_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scores, "_DRAWN_SENTENCES", 200 * len(GOOD))
    found = scores.compare([GOOD], [REFERENCES], {"bleu": BLEU()}).scores[0]
    assert "bs:200|" in found["bleu"].signature
