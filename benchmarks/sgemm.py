"""Measures how fast this core multiplies matrices of the shapes in a model's step, and nothing else.

    python benchmarks/sgemm.py configs/transformer-base.toml --vocabulary 32768

It multiplies with every weight, once in the forward and twice in the backward pass, for a microbatch with
equal numbers of source and target rows; the output projection runs in the chunks of the loss. The library and
the memory settings are those of a step. Prints FLOP/s: all FLOPs divided by all seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dragoman import config
from dragoman.config import Model, Training
from dragoman.model.loss import CPU_CHUNK_ROWS
from dragoman.model.product import multiply
from dragoman.train.memory import keep_freed

_TRIES = 9


class Product(NamedTuple):
    """A weight of `outer` x `inner`, used `times` times for each row."""

    inner: int
    outer: int
    times: int


def products(model: Model) -> list[Product]:
    width, encoder, decoder = model.width, model.encoder_layers, model.decoder_layers
    return [
        Product(width, 3 * width, encoder + decoder),  # queries, keys and values
        Product(width, 2 * width, decoder),  # keys and values of the source
        Product(width, width, encoder + 3 * decoder),  # outputs, and queries to the source
        Product(width, model.feedforward, encoder + decoder),
        Product(model.feedforward, width, encoder + decoder),
    ]


def _layer_seconds(product: Product, rows: int) -> float:
    x, gradient = torch.rand(rows, product.inner), torch.rand(rows, product.outer)
    weight = torch.rand(product.outer, product.inner)

    def multiply_all() -> None:
        multiply(x, weight.t())
        multiply(gradient, weight)
        multiply(gradient.t(), x)

    return _cpu_seconds(multiply_all)


def _projection_seconds(width: int, vocabulary: int, rows: int) -> float:
    hidden, weight = torch.rand(rows, width), torch.rand(vocabulary, width)

    def multiply_all() -> None:
        logits = multiply(hidden, weight.t())
        multiply(logits, weight)
        multiply(hidden.t(), logits)

    return _cpu_seconds(multiply_all)


def _cpu_seconds(work: Callable[[], None]) -> float:
    def tries() -> Iterator[float]:
        for _ in range(_TRIES):
            began = time.process_time()
            work()
            yield time.process_time() - began

    work()
    return median(tries())


def rate(model: Model, vocabulary: int, rows: int) -> float:
    """FLOP/s on one thread."""
    torch.set_num_threads(1)
    keep_freed()
    chunk = min(CPU_CHUNK_ROWS, rows)
    seconds = _projection_seconds(model.width, vocabulary, chunk) * rows / chunk
    weights = model.width * vocabulary
    for product in products(model):
        seconds += product.times * _layer_seconds(product, rows)
        weights += product.times * product.inner * product.outer
    return 3 * 2 * weights * rows / seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path, help="config of the model")
    parser.add_argument("--vocabulary", type=int, required=True, help="pieces in the vocabulary")
    parser.add_argument("--rows", type=int, default=1024, help="rows of a microbatch on either side (1024)")
    arguments = parser.parse_args()
    print(rate(config.load(Training, arguments.config).model, arguments.vocabulary, arguments.rows))


if __name__ == "__main__":
    main()
