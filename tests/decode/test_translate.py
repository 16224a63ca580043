"""Tokens to translations, in order, whatever the batches."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.checkpoint import saved_model
from dragoman.checkpoint.saved_model import LoadedModel
from dragoman.config import Evaluate
from dragoman.data.store import DataSet
from dragoman.decode import translate as module
from dragoman.decode.translate import encode, length_limits, translate_tokens
from tests.train.conftest import Unbroken
from tests.train.runs import Task

GREEDY = Evaluate(beam=1)


@pytest.fixture
def loaded(unbroken: Unbroken) -> LoadedModel:
    return saved_model.load([Path(unbroken(1))], torch.device("cpu"))


def test_translations_come_in_the_order_of_the_sentences(
    task: Task, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = encode(loaded.tokenizer, DataSet(task.data).parts["dev"].text("source")[:20])
    one_by_one = [translate_tokens(loaded.model, [row], GREEDY)[0] for row in rows]
    monkeypatch.setattr(module, "_SENTENCES", 7)  # batches, the last of them not full
    assert translate_tokens(loaded.model, rows, GREEDY) == one_by_one
    assert len(set(map(tuple, one_by_one))) > 1


def test_no_sentences_have_no_translations(loaded: LoadedModel) -> None:
    assert translate_tokens(loaded.model, [], GREEDY) == []


def test_an_empty_sentence_is_translated_too(loaded: LoadedModel) -> None:
    assert len(translate_tokens(loaded.model, encode(loaded.tokenizer, ["", "red blue"]), GREEDY)) == 2


def test_a_translation_has_a_limit(loaded: LoadedModel) -> None:
    lengths = np.array([1, 5])
    assert length_limits(lengths) == [12, 20]
    rows = [np.arange(4, 4 + length) for length in lengths]
    found = translate_tokens(loaded.model, rows, GREEDY)
    assert all(len(tokens) <= limit for tokens, limit in zip(found, length_limits(lengths), strict=True))
