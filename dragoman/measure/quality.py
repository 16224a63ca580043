"""The quality of a model at one step: losses scored alike, and sacreBLEU scores with their signatures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from dragoman.data.language import primary

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU


# By sacreBLEU's names. Mandarin and Cantonese have codes of their own beside that of Chinese.
_WITHOUT_SPACES = {"zh": "zh", "cmn": "zh", "yue": "zh", "ja": "ja", "ko": "ko"}


class Score(BaseModel):
    """A score means nothing without how it was made."""

    value: float
    signature: str


class Sample(BaseModel):
    """One translation, shown beside its source and reference."""

    source: str
    reference: str
    translation: str


class Evaluation(BaseModel):
    """One evaluation. Both losses are per target token, without dropout, with the smoothing of training."""

    model_config = ConfigDict(ser_json_inf_nan="constants")  # a diverged model's loss must be readable again

    step: int
    eval_loss: float
    train_sample_loss: float
    bleu: Score
    chrf: Score
    seconds: float
    at_stop: bool = False  # made because the run was stopped, between two of `evaluate.every`

    def goodness(self, metric: str) -> float:
        """More is better, whatever the metric."""
        value = {"bleu": self.bleu.value, "chrf": self.chrf.value, "loss": -self.eval_loss}[metric]
        return value if math.isfinite(value) else -math.inf

    def best_by(self, metric: str) -> str:
        """A sentence for the evaluation that is best by the metric, with how that was made."""
        if metric == "loss":
            return f"Best held-out loss {self.eval_loss:.4f} at step {self.step:,}"
        name, score = ("BLEU", self.bleu) if metric == "bleu" else ("chrF", self.chrf)
        return f"Best {name} {score.value:.2f} at step {self.step:,} ({score.signature})"


def bleu_metric(target_language: str | None) -> BLEU:
    """BLEU counts words: for languages that write no spaces between them sacreBLEU has splitters."""
    from sacrebleu.metrics import BLEU  # when the first score is wanted: a run starts sooner

    language = _WITHOUT_SPACES.get(primary(target_language)) if target_language else None
    if language is None:
        return BLEU()
    try:
        return BLEU(trg_lang=language)
    except (ImportError, RuntimeError):  # MeCab, for Japanese and Korean, is an extra of sacreBLEU's
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
