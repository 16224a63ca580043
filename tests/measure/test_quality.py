import math

import pytest
import sacrebleu

from dragoman.measure.quality import Evaluation, Score, bleu, chrf

TRANSLATIONS = ["the cat sat on the mat", "a dog barks at night"]
REFERENCES = ["the cat sits on the mat", "a dog barked at night"]


def evaluation(loss: float, bleu_value: float) -> Evaluation:
    score = Score(value=bleu_value, signature="")
    return Evaluation(step=1, eval_loss=loss, train_sample_loss=0, bleu=score, chrf=score, seconds=0)


def test_scores_are_sacrebleus_with_its_signature() -> None:
    assert bleu(TRANSLATIONS, REFERENCES).value == sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES]).score
    assert chrf(TRANSLATIONS, REFERENCES).value == sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score
    assert bleu(TRANSLATIONS, REFERENCES).signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")
    assert chrf(TRANSLATIONS, REFERENCES).signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0")


def test_a_perfect_translation_is_100_and_an_empty_one_0() -> None:
    assert bleu(REFERENCES, REFERENCES).value == pytest.approx(100)
    assert bleu(["", ""], REFERENCES).value == 0


def test_better_is_more_whatever_the_metric() -> None:
    good, bad = evaluation(loss=1.0, bleu_value=30), evaluation(loss=2.0, bleu_value=20)
    for metric in ("bleu", "chrf", "loss"):
        assert good.goodness(metric) > bad.goodness(metric)
    assert evaluation(loss=math.nan, bleu_value=1).goodness("loss") == -math.inf


@pytest.mark.parametrize("language", ["zh", "zh-CN", "zh-TW-Hant", "zho", "cmn", "yue-HK", "ja-JP", "ko"])
def test_languages_without_spaces_are_split_for_bleu(language: str) -> None:
    """By words between spaces a sentence is one word: with one sign amiss it is worth nothing."""
    translations, references = ["我今天去了商店买苹果和梨"], ["我今天去了商店买苹果和桃"]
    assert bleu(translations, references).value == 0
    found = bleu(translations, references, language)
    assert found.value > 50
    assert "tok:13a" not in found.signature
