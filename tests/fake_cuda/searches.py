"""Real searches on the pretended GPU; prints what each token cost. Run by test_searches.py."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.config import Model
from dragoman.decode.engine import Options
from dragoman.decode.sample import sample
from dragoman.decode.search import search
from dragoman.model.packing import on_device
from tests.fake_cuda import card
from tests.fake_cuda.counting import Counts
from tests.fake_cuda.parts import microbatch, model

VOCABULARY, SENTENCES = 4_000, 16
LENGTHS = (4, 12)  # tokens of a translation
WAYS = {
    "greedy": Options(beam=1),
    "beam": Options(beam=4),
    "beam without repeats": Options(beam=4, no_repeat_ngram=2),
    "sample": Options(best=2, sample_top=10),
}


class Values:
    """What a search reads: falling scores of the best candidates, and random tokens."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(1)

    def __call__(self, ones: Tensor) -> Tensor:
        values = np.stack((-np.sort(self._random.random(ones.shape[1:])), self._tokens(ones.shape[1:])))
        return torch.from_numpy(values).to(ones.dtype)

    def _tokens(self, shape: tuple[int, ...]) -> np.ndarray:
        return self._random.integers(4, VOCABULARY, shape)


def translate(way: str, length: int, sentences: int = SENTENCES) -> Counts:
    options = WAYS[way]
    with card.pretended((8, 0), Values()) as counts:
        transformer = model(Model(encoder_layers=2, decoder_layers=2), VOCABULARY).eval()
        given = microbatch(sentences, vocabulary=VOCABULARY)
        source = on_device(given.source, card.DEVICE)
        counts.clear()
        find = sample if options.is_sampling else search
        found = find(transformer, source, given.source_lengths, [length] * sentences, options)
    assert all(len(each[0].tokens) == length for each in found)  # EOS is never drawn
    return counts


def cost(way: str) -> dict[str, Any]:
    """Per token of the longer translation that the shorter one lacks: launches, casts, waits by place."""
    short, long = (translate(way, length) for length in LENGTHS)
    tokens = LENGTHS[1] - LENGTHS[0]
    waits = {place: (count - short.waits[place]) / tokens for place, count in long.waits.items()}
    return {
        "launches": (long.launches - short.launches) / tokens,
        "casts": (long.casts - short.casts) / tokens,
        "waits": {place: count for place, count in waits.items() if count},
        "waits in all": long.waits.total(),
    }


if __name__ == "__main__":
    print(json.dumps({way: cost(way) for way in WAYS}))
