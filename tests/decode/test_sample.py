"""Translations drawn at random: the model's own probabilities, and nothing outside the bounds."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.data.tokens import EOS
from dragoman.decode import Options
from dragoman.decode.sample import sample
from dragoman.decode.search import search
from tests.decode.test_search import build, sentences
from tests.model import reference

VOCABULARY = 12
SOURCE: Tensor = sentences([5], VOCABULARY)[0]


def first_tokens(options: Options, draws: int) -> Counter[int]:
    """The first token of many translations of one sentence; EOS if there is none."""
    torch.manual_seed(1)
    source = SOURCE.repeat(draws)
    found = sample(build(VOCABULARY), source, np.full(draws, len(SOURCE)), [3] * draws, options)
    return Counter(one.tokens[0] if one.tokens else EOS for (one,) in found)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_tokens_are_drawn_as_often_as_the_model_says(temperature: float) -> None:
    draws = 4_000
    with torch.no_grad():
        log_p = reference.next_log_p(build(VOCABULARY), SOURCE, [])
    expected = (log_p / temperature).softmax(-1)
    counts = first_tokens(Options(sample_top=0, sample_temperature=temperature), draws)
    for token in range(VOCABULARY):
        p = float(expected[token])
        assert counts[token] / draws == pytest.approx(p, abs=5 * (p * (1 - p) / draws) ** 0.5 + 1e-3)


def test_only_the_likeliest_are_drawn() -> None:
    with torch.no_grad():
        likeliest = reference.next_log_p(build(VOCABULARY), SOURCE, []).topk(3).indices.tolist()
    assert set(first_tokens(Options(sample_top=3), 500)) == set(likeliest)


def test_a_low_temperature_is_greedy_search() -> None:
    model = build(VOCABULARY)
    sources = sentences([4, 7, 1, 5], VOCABULARY)
    packed, lengths = torch.cat(sources), np.array([len(source) for source in sources])
    tame = sample(model, packed, lengths, [9] * 4, Options(sample_top=0, sample_temperature=1e-3))
    greedy = search(model, packed, lengths, [9] * 4, Options(beam=1))
    for (drawn,), (found,) in zip(tame, greedy, strict=True):
        assert drawn.tokens == found.tokens
        assert drawn.score == pytest.approx(found.score, abs=1e-4)


def test_several_draws_of_a_sentence_differ_and_stay_within_their_limit() -> None:
    torch.manual_seed(1)
    (found,) = sample(build(VOCABULARY), SOURCE, np.array([len(SOURCE)]), [6], Options(best=8, sample_top=0))
    assert len(found) == 8
    assert len({tuple(one.tokens) for one in found}) > 4
    assert all(len(one.tokens) <= 6 for one in found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
