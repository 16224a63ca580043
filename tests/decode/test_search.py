import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.config import WIDEST_BEAM, Model
from dragoman.data.tokens import EOS
from dragoman.decode import Options
from dragoman.decode.sample import sample
from dragoman.decode.search import Hypothesis, search
from dragoman.model import Transformer
from tests.model import reference

SMALL = Model(width=16, heads=2, encoder_layers=1, decoder_layers=2, feedforward=32)


def build(vocabulary: int, seed: int = 1) -> Transformer:
    """Weights larger than at the start of training, so that sentences end at different lengths."""
    torch.manual_seed(seed)
    model = Transformer(SMALL, vocabulary).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    return model


def sentences(lengths: list[int], vocabulary: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randint(3, vocabulary, (length,), generator=generator) for length in lengths]


def several(
    model: Transformer, sources: list[Tensor], limits: list[int], options: Options
) -> list[list[Hypothesis]]:
    way = sample if options.is_sampling else search
    torch.manual_seed(1)
    return way(model, torch.cat(sources), np.array([len(s) for s in sources]), limits, options)


def translate(
    model: Transformer, sources: list[Tensor], limits: list[int], beam: int = 4, length_penalty: float = 0.6
) -> list[Hypothesis]:
    options = Options(beam=beam, length_penalty=length_penalty)
    return [best for (best,) in several(model, sources, limits, options)]


@torch.no_grad()
def slow_greedy(model: Transformer, source: Tensor, limit: int) -> tuple[list[int], float]:
    tokens: list[int] = []
    total = 0.0
    while len(tokens) < limit:
        log_p = reference.next_log_p(model, source, tokens)
        token = int(log_p.argmax())
        total += float(log_p[token])
        if token == EOS:
            break
        tokens.append(token)
    return tokens, total


@pytest.mark.parametrize("seed", range(4))
def test_greedy_search_equals_running_the_whole_decoder_each_step(seed: int) -> None:
    model = build(20, seed)
    sources = sentences([4, 7, 1, 5, 5, 2, 9, 6], 20)
    limits = [12, 12, 3, 12, 1, 12, 12, 12]
    found = translate(model, sources, limits, beam=1, length_penalty=0.0)
    for source, limit, hypothesis in zip(sources, limits, found, strict=True):
        tokens, total = slow_greedy(model, source, limit)
        assert hypothesis.tokens == tokens
        assert hypothesis.score == pytest.approx(total, abs=1e-4)


@torch.no_grad()
def test_a_beam_that_holds_everything_finds_the_best_sequence() -> None:
    vocabulary, limit, penalty = 5, 4, 0.6
    model = build(vocabulary, seed=3)
    for source in sentences([3, 5, 2], vocabulary):
        best: tuple[float, list[int]] = (-np.inf, [])
        after = functools.cache(
            lambda prefix, source=source: reference.next_log_p(model, source, list(prefix))
        )
        others = [token for token in range(vocabulary) if token != EOS]
        for length in range(1, limit + 1):
            for tokens in itertools.product(others, repeat=length):
                ended = (*tokens, EOS) if length < limit else tokens
                steps = [after(ended[:n])[ended[n]] for n in range(len(ended))]
                best = max(best, (float(sum(steps)) / len(ended) ** penalty, list(tokens)))
        (found,) = translate(model, [source], [limit], beam=WIDEST_BEAM, length_penalty=penalty)
        assert found.tokens == best[1]
        assert found.score == pytest.approx(best[0], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_sentences_translation_does_not_depend_on_its_company(beam: int) -> None:
    model = build(20)
    sources = sentences([4, 7, 1, 5, 9], 20)
    together = translate(model, sources, [10] * 5, beam=beam)
    for source, hypothesis in zip(sources, together, strict=True):
        (alone,) = translate(model, [source], [10], beam=beam)
        assert alone.tokens == hypothesis.tokens
        assert alone.score == pytest.approx(hypothesis.score, abs=1e-4)


def test_scores_are_those_of_the_whole_model() -> None:
    model = build(20)
    sources = sentences([4, 7, 3], 20)
    for source, found in zip(sources, translate(model, sources, [10] * 3, beam=4), strict=True):
        ended = [*found.tokens, EOS] if len(found.tokens) < 10 else found.tokens
        with torch.no_grad():
            steps = [reference.next_log_p(model, source, ended[:n])[ended[n]] for n in range(len(ended))]
        assert found.score == pytest.approx(float(sum(steps)) / len(ended) ** 0.6, abs=1e-4)


def test_cache_gives_the_logits_of_running_without_it() -> None:
    model = build(20)
    (source,) = sentences([5], 20)
    prefix = [7, 3, 9, 4]
    cache = model.start(source, np.array([5]))
    with torch.no_grad():
        for length, token in enumerate([2, *prefix]):
            log_p = model.next_logits(torch.tensor([token]), cache).log_softmax(-1)[0]
            torch.testing.assert_close(log_p, reference.next_log_p(model, source, prefix[:length]))


def test_search_refuses_a_model_in_training_mode() -> None:
    with pytest.raises(ValueError, match="eval"):
        translate(build(20).train(), sentences([3], 20), [5])


def test_of_several_translations_the_best_comes_first_and_none_comes_twice() -> None:
    model = build(20)
    sources = sentences([4, 7, 3], 20)
    alone = translate(model, sources, [10] * 3)
    for best, found in zip(alone, several(model, sources, [10] * 3, Options(best=3)), strict=True):
        assert found[0] == best
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert len({tuple(one.tokens) for one in found}) == len(found) == 3


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(
    "how", [Options(), Options(beam=1), Options(sample_top=5)], ids=["beam", "greedy", "sample"]
)
def test_guarded_translations_repeat_no_run_of_tokens(how: Options, size: int) -> None:
    model = build(20)
    sources = sentences([4, 7, 3, 9], 20)
    guarded, free = (
        [best.tokens for (best,) in several(model, sources, [30] * 4, replace(how, no_repeat_ngram=guard))]
        for guard in (size, 0)
    )
    assert not any(repeats(tokens, size) for tokens in guarded)
    assert any(repeats(tokens, size) for tokens in free)  # or the test shows nothing


def repeats(tokens: list[int], size: int) -> bool:
    runs = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    return len(set(runs)) < len(runs)


def test_scores_that_are_not_finite_give_empty_translations() -> None:
    """An evaluation in the middle of bad steps must end in a bad score, not in an error."""
    model = build(vocabulary=20)
    with torch.no_grad():
        model.decoder.norm.weight.fill_(torch.nan)
    found = translate(model, sentences([3, 5], 20), [4, 6])
    assert found == [Hypothesis([], -np.inf)] * 2
