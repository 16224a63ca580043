"""The quality of a model at one step: comparable losses, and sacreBLEU scores with their signatures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from dragoman.data.language import primary

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU


# Language -> sacreBLEU's name of its splitter. Mandarin and Cantonese have codes besides that of Chinese.
_WITHOUT_SPACES = {"zh": "zh", "cmn": "zh", "yue": "zh", "ja": "ja", "ko": "ko"}


class Score(BaseModel):
    """A score with its sacreBLEU signature, which says how it was computed."""

    value: float
    signature: str


class Sample(BaseModel):
    """One translation with its source and reference."""

    source: str
    reference: str
    translation: str


class Evaluation(BaseModel):
    """One evaluation. Both losses are per target token, without dropout, with training's label smoothing."""

    model_config = ConfigDict(ser_json_inf_nan="constants")  # a diverged loss must survive a round trip

    step: int
    eval_loss: float
    train_sample_loss: float
    bleu: Score
    chrf: Score
    seconds: float
    at_stop: bool = False  # an extra evaluation because the run was stopped

    def goodness(self, metric: str) -> float:
        """The metric's value with its sign chosen so that more is better; -inf if it is not finite."""
        value = {"bleu": self.bleu.value, "chrf": self.chrf.value, "loss": -self.eval_loss}[metric]
        return value if math.isfinite(value) else -math.inf

    def best_by(self, metric: str) -> str:
        """A sentence that names this evaluation as the best by the metric, with the score's signature."""
        if metric == "loss":
            return f"Best held-out loss {self.eval_loss:.4f} at step {self.step:,}"
        name, score = ("BLEU", self.bleu) if metric == "bleu" else ("chrF", self.chrf)
        return f"Best {name} {score.value:.2f} at step {self.step:,} ({score.signature})"


def bleu_metric(target_language: str | None) -> BLEU:
    """sacreBLEU's BLEU for this language, with a word splitter if it is written without spaces."""
    from sacrebleu.metrics import BLEU  # imported only for the first score, so that a run starts sooner

    language = _WITHOUT_SPACES.get(primary(target_language)) if target_language else None
    if language is None:
        return BLEU()
    try:
        return BLEU(trg_lang=language)
    except (ImportError, RuntimeError):  # MeCab for Japanese and Korean is an optional part of sacreBLEU
        return BLEU(tokenize="char")


def bleu(translations: Sequence[str], references: Sequence[str], target_language: str | None = None) -> Score:
    metric = bleu_metric(target_language)
    score = metric.corpus_score(translations, [references])
    return Score(value=score.score, signature=str(metric.get_signature()))


def chrf(translations: Sequence[str], references: Sequence[str]) -> Score:
    from sacrebleu.metrics import CHRF

    metric = CHRF()
    score = metric.corpus_score(translations, [references])
    return Score(value=score.score, signature=str(metric.get_signature()))
