"""Something small learnt for real: a sentence copied token by token."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from dragoman.config import Model
from dragoman.data.tokens import EOS
from dragoman.decode import Options
from dragoman.decode.search import search
from dragoman.model import Transformer

VOCABULARY = 24


def sentences(pairs: int, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    generator = np.random.default_rng(seed)
    lengths = np.sort(generator.integers(3, 9, pairs))
    rows = [[*generator.integers(4, VOCABULARY, length - 1), EOS] for length in lengths]
    return torch.tensor(np.concatenate(rows)), lengths


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Two threads that wait for each other on a busy machine take ten times as long as one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_copying_is_learnt_and_found_by_search(one_thread: None) -> None:
    torch.manual_seed(1)
    config = Model(width=64, heads=4, encoder_layers=1, decoder_layers=1, feedforward=128)
    model = Transformer(config, VOCABULARY)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98), fused=True)
    for step in range(500):
        tokens, lengths = sentences(64, seed=step)
        optimizer.zero_grad()
        (model(tokens, lengths, tokens, lengths, 0.1) / len(tokens)).backward()
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min((step + 1) / 50, (500 - step) / 450)
        optimizer.step()
    tokens, lengths = sentences(200, seed=10_000)
    expected = [row[:-1].tolist() for row in tokens.split(lengths.tolist())]
    for beam in (1, 4):
        found = search(model.eval(), tokens, lengths, lengths + 3, Options(beam=beam))
        right = sum(best.tokens == row for (best,), row in zip(found, expected, strict=True))
        assert right >= 194
