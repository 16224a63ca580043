"""A held-out part, translated and scored."""

import pytest
import sacrebleu
import torch

from dragoman.config import Evaluate
from dragoman.data.store import DataSet
from dragoman.decode.score import score_part
from dragoman.errors import UsageError
from dragoman.train import models
from tests.train.conftest import Unbroken
from tests.train.runs import Task


def test_a_part_is_scored_by_sacrebleu(task: Task, unbroken: Unbroken) -> None:
    data = DataSet(task.data)
    model = models.load([unbroken(1)], torch.device("cpu")).model
    scores = score_part(model, data, "dev", Evaluate(beam=1))
    references = data.parts["dev"].text("target")
    assert (scores.part, scores.sentences) == ("dev", len(references))
    assert scores.bleu.value == sacrebleu.corpus_bleu(scores.translations, [references]).score
    assert scores.chrf.value == sacrebleu.corpus_chrf(scores.translations, [references]).score


@pytest.mark.parametrize("part", ["train", "test", "nonsense"])
def test_a_part_that_is_not_held_out_is_wrong_use(task: Task, unbroken: Unbroken, part: str) -> None:
    model = models.load([unbroken(1)], torch.device("cpu")).model
    with pytest.raises(UsageError, match=f"no held-out part {part}") as error:
        score_part(model, DataSet(task.data), part, Evaluate())
    assert "--part dev" in str(error.value)
