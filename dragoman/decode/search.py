"""Batched beam search in PyTorch; greedy search is a beam of 1.

Shape letters: B sentences still searched, K hypotheses of each, M candidates of each, V vocabulary, T tokens.

It follows CTranslate2's rules, so that a run and its exported model get the same scores. Of the best 2 x beam
continuations, those among the first `beam` that end are finished, and the best `beam` that do not end
continue. A sentence is done when `beam` hypotheses are finished or its length limit is reached. The best
hypothesis has the highest log-probability / length^penalty, both including EOS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.data.tokens import BOS, EOS
from dragoman.decode.engine import Options
from dragoman.decode.repeats import forbid_repeats
from dragoman.model import Cache, Transformer
from dragoman.model.packing import Lengths, on_device, on_host


@dataclass(frozen=True)
class Hypothesis:
    tokens: list[int]  # without EOS
    score: float  # log-probability / length^penalty

    @classmethod
    def of(cls, tokens: list[int], log_p: float, length_penalty: float) -> Hypothesis:
        """A hypothesis from tokens that end in EOS or reached their limit."""
        score = log_p / len(tokens) ** length_penalty
        return cls(tokens[:-1] if tokens[-1] == EOS else tokens, score)


@torch.no_grad()
def search(
    model: Transformer,
    source_N: Tensor,
    source_lengths: Lengths,
    limits: Sequence[int],
    options: Options,
) -> list[list[Hypothesis]]:
    """The best translations of each packed source sentence, each within its limit of tokens, including EOS.

    Each sentence gets `options.best` translations, seldom fewer. Fastest when the sentences of a call have
    similar lengths. The model must be in evaluation mode.
    """
    if model.training:
        raise ValueError("search needs model.eval(): dropout would make translations random")
    cache = model.start(source_N, source_lengths)
    live = _Live.begin(cache.sentences)
    finished: list[list[Hypothesis]] = [[] for _ in range(cache.sentences)]
    beam = options.beam
    while len(live.sentences):
        candidates = _extend(model, cache, live, beam, options.no_repeat_ngram)
        is_last = live.length + 1 >= np.asarray(limits)[live.sentences]
        for row, column in zip(*np.nonzero(candidates.ends(beam, is_last)), strict=True):
            hypothesis = candidates.hypothesis(row, column, options.length_penalty)
            finished[live.sentences[row]].append(hypothesis)
        is_full = np.array([len(finished[sentence]) >= beam for sentence in live.sentences])
        live = _advance(cache, live, candidates, ~(is_last | is_full), beam)
    # If the model's scores are not finite, no hypothesis ever finishes, and the translation is empty.
    return [best_first(ended)[: options.best] or [Hypothesis([], -np.inf)] for ended in finished]


def best_first(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


@dataclass(frozen=True)
class _Live:
    """The unfinished hypotheses, kept on the host: K for each sentence listed in `sentences`."""

    sentences: np.ndarray  # [B]
    scores_BK: np.ndarray  # log-probabilities; -inf marks an empty slot
    tokens_BKT: np.ndarray

    @classmethod
    def begin(cls, sentences: int) -> _Live:
        return cls(
            np.arange(sentences), np.zeros((sentences, 1), np.float32), np.full((sentences, 1, 1), BOS)
        )

    @property
    def length(self) -> int:
        return self.tokens_BKT.shape[2] - 1  # without BOS


@dataclass(frozen=True)
class _Candidates:
    """The best continuations of each sentence, best first."""

    scores_BM: np.ndarray
    parents_BM: np.ndarray  # which of the K hypotheses each one continues
    tokens_BMT: np.ndarray

    def ends(self, beam: int, is_last: np.ndarray) -> np.ndarray:
        """Which candidates are finished: those that end in EOS, or all at the length limit."""
        is_end = (self.tokens_BMT[:, :beam, -1] == EOS) | is_last[:, None]
        return is_end & np.isfinite(self.scores_BM[:, :beam])

    def hypothesis(self, row: int, column: int, length_penalty: float) -> Hypothesis:
        return Hypothesis.of(
            self.tokens_BMT[row, column, 1:].tolist(), float(self.scores_BM[row, column]), length_penalty
        )


def _extend(model: Transformer, cache: Cache, live: _Live, beam: int, no_repeat_ngram: int) -> _Candidates:
    """Run the model for one token; returns the best 2 x beam continuations by summed log-probability."""
    device = model.embedding.weight.device
    tokens_R = on_device(live.tokens_BKT[:, :, -1].flatten(), device)
    logits_RV = model.next_logits(tokens_R, cache).float()
    if no_repeat_ngram:
        forbid_repeats(logits_RV, live.tokens_BKT.reshape(len(logits_RV), -1)[:, 1:], no_repeat_ngram)
    sums_RV = logits_RV.log_softmax(-1).add_(on_device(live.scores_BK.reshape(-1, 1), device))
    vocabulary = sums_RV.shape[1]
    sums_BM = sums_RV.view(len(live.sentences), -1)
    best = sums_BM.topk(min(2 * beam, sums_BM.shape[1]))
    scores_BM, indices_BM = on_host(best.values, best.indices)  # host-device wait
    parents_BM, next_BM = np.divmod(indices_BM, vocabulary)
    kept_BMT = np.take_along_axis(live.tokens_BKT, parents_BM[:, :, None], 1)
    return _Candidates(scores_BM, parents_BM, np.concatenate((kept_BMT, next_BM[:, :, None]), 2))


def _advance(cache: Cache, live: _Live, candidates: _Candidates, continues: np.ndarray, beam: int) -> _Live:
    """Keep the best unfinished candidates of the sentences that continue, and reorder the cache to match."""
    alive_BM = np.where(candidates.tokens_BMT[:, :, -1] == EOS, -np.inf, candidates.scores_BM)
    continues = continues & np.isfinite(alive_BM).any(1)
    order_BK = np.argsort(-alive_BM, axis=1, kind="stable")[continues, :beam]
    parents_BK = np.take_along_axis(candidates.parents_BM[continues], order_BK, 1)
    rows_R = (np.flatnonzero(continues)[:, None] * live.scores_BK.shape[1] + parents_BK).flatten()
    device = cache.memory[0][0].device
    if not continues.all():
        cache.keep_sentences(on_device(np.flatnonzero(continues), device))
    if not np.array_equal(rows_R, np.arange(live.scores_BK.size)):  # greedy search never reorders
        cache.keep_rows(on_device(rows_R, device))
    return _Live(
        live.sentences[continues],
        np.take_along_axis(alive_BM[continues], order_BK, 1).astype(np.float32),
        np.take_along_axis(candidates.tokens_BMT[continues], order_BK[:, :, None], 1),
    )
