"""Draws translations at random, one token at a time, from the model's probabilities.

Shape letters: B sentences, K translations of each, R = B x K rows, V vocabulary, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.data.tokens import BOS, EOS
from dragoman.decode.engine import Options
from dragoman.decode.repeats import forbid_repeats
from dragoman.decode.search import Hypothesis, best_first
from dragoman.model import Transformer
from dragoman.model.packing import Lengths, on_device, on_host


@torch.no_grad()
def sample(
    model: Transformer,
    source_N: Tensor,
    source_lengths: Lengths,
    limits: Sequence[int],
    options: Options,
) -> list[list[Hypothesis]]:
    """`options.best` random translations of each packed source sentence, the likeliest first.

    Scores are the model's own: the temperature changes what is drawn, not how it is scored. A finished row
    runs on until all rows are finished; its tokens after EOS are ignored.
    """
    best = options.best
    cache = model.start(source_N, source_lengths)
    rows = cache.sentences * best
    cache.keep_sentences(torch.arange(cache.sentences, device=source_N.device).repeat_interleave(best))
    limits_R = np.repeat(np.asarray(limits), best)
    tokens_RT = np.full((rows, 1), BOS, np.int64)
    totals_R, is_done_R = np.zeros(rows), np.zeros(rows, bool)
    ends_R = np.zeros(rows, np.int64)
    while not is_done_R.all():
        newest_R = on_device(tokens_RT[:, -1], source_N.device)
        logits_RV = model.next_logits(newest_R, cache).float()
        if options.no_repeat_ngram:
            forbid_repeats(logits_RV, tokens_RT[:, 1:], options.no_repeat_ngram)
        log_p_RV = logits_RV.log_softmax(-1)
        drawn_R = _draw(log_p_RV, options.sample_top, options.sample_temperature)
        log_p_R = log_p_RV.gather(1, drawn_R[:, None])[:, 0]
        scores_R, next_R = on_host(log_p_R, drawn_R)  # host-device wait
        totals_R += np.where(is_done_R, 0, scores_R)
        tokens_RT = np.concatenate((tokens_RT, next_R[:, None]), 1)
        ends_R += ~is_done_R
        is_done_R |= (tokens_RT[:, -1] == EOS) | (ends_R >= limits_R)
    drawn = [
        Hypothesis.of(
            tokens_RT[row, 1 : 1 + ends_R[row]].tolist(), float(totals_R[row]), options.length_penalty
        )
        for row in range(rows)
    ]
    return [best_first(drawn[first : first + best]) for first in range(0, rows, best)]


def _draw(log_p_RV: Tensor, top: int, temperature: float) -> Tensor:
    """Draw one token per row: an arbitrary one if a row is not finite, which its score will show."""
    if top == 0 or top >= log_p_RV.shape[1]:
        return (log_p_RV / temperature).softmax(-1).nan_to_num(1.0).multinomial(1)[:, 0]
    likeliest = log_p_RV.topk(top)
    drawn = (likeliest.values / temperature).softmax(-1).nan_to_num(1.0).multinomial(1)
    return likeliest.indices.gather(1, drawn)[:, 0]
