"""Lines of a training that numbers alone decide."""

from __future__ import annotations

from dragoman.config import Training
from dragoman.measure.quality import Evaluation, Score
from dragoman.train import fitting, view
from dragoman.train.fitting import Costs
from dragoman.train.pace import Left

LEFT = Left(90, 2, 7_200.0, 0.5, 3.0, is_settled=True)


def page() -> str:
    fitted = Training.model_validate({"train": {"minutes": 30, "steps": 80, "warmup_steps": 8}})
    score = Score(value=12.5, signature="tok:13a")
    scored = Evaluation(step=8, eval_loss=3.25, train_sample_loss=3, bleu=score, chrf=score, seconds=1)
    return "\n".join(
        [
            view.forecast(LEFT),
            view.forecast(LEFT._replace(seconds_per_evaluation=None)),
            view.long_warning(LEFT._replace(seconds=2 * 86_400.0)),
            *fitting.lines(fitted, Costs(0.5, 3.0)),
            *(scored.best_by(metric) for metric in ("bleu", "chrf", "loss")),
        ]
    )
