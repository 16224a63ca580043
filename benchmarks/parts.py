"""Measures what each optimisation of a step gains: target tokens per CPU-second with and without it.

    python benchmarks/parts.py configs/transformer-tiny.toml --data WORK/tiny/data [--repeat 9] [--steps 2]

On one core: forward, backward and optimizer, without exchange and recording. Every variant has its own
process; in each repetition all variants compute the same steps in turn, and ratios are taken within it. The
data set is one that speed.py prepared (--folder WORK).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim import Adam, Optimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.peers import sides
from dragoman import config
from dragoman.config import Train, Training
from dragoman.data.batches import Batches, Microbatch, Position, StepSize
from dragoman.data.store import DataSet
from dragoman.data.tokens import PAD
from dragoman.model import Transformer, product
from dragoman.train import memory, optimizer
from dragoman.train.step import tensors

AS_IT_IS = "as it is"
HUGE_PAGES = "freed memory kept by glibc's tunables, in huge pages"
GIVEN_BACK = "freed memory returned to the system"
BY_MKL = "products by torch.mm (MKL)"
PADDED = "padded to the longest sentence of a microbatch"
BERNOULLI = "torch's dropout"
WHOLE_LOGITS = "projection and F.cross_entropy"
ADAM_BY_TENSOR = "Adam, one tensor at a time"
ADAM_FOREACH = "Adam with foreach"
VARIANTS = (
    AS_IT_IS,
    HUGE_PAGES,
    GIVEN_BACK,
    BY_MKL,
    PADDED,
    BERNOULLI,
    WHOLE_LOGITS,
    ADAM_BY_TENSOR,
    ADAM_FOREACH,
)


def environment(variant: str) -> dict[str, str]:
    return sides.environment(sides.MEMORY_REUSED if variant == HUGE_PAGES else None)


def patches(variant: str) -> dict[str, object]:
    """The functions that a variant replaces in the model."""
    if variant == BY_MKL:
        return {"dragoman.model.product._HAS_ONEDNN": False}
    if variant == WHOLE_LOGITS:
        return {"dragoman.model.transformer.cross_entropy_sum": _whole_logits}
    if variant == BERNOULLI:
        return {
            "dragoman.model.transformer.dropout": F.dropout,
            "dragoman.model.grid.dropout": F.dropout,
            "dragoman.model.transformer.add_dropped": lambda x, change, rate: x + F.dropout(change, rate),
            "dragoman.model.transformer.relu_dropped": lambda x, rate: F.dropout(
                F.relu(x, inplace=True), rate
            ),
        }
    return {}


def _whole_logits(hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float) -> Tensor:
    logits = product._Linear.apply(hidden, weight, None)
    return F.cross_entropy(logits[: len(target)], target, reduction="sum", label_smoothing=smoothing)


def build_optimizer(variant: str, model: Transformer, settings: Train) -> Optimizer:
    betas = settings.beta1, settings.beta2
    if variant == ADAM_BY_TENSOR:
        return Adam(model.parameters(), betas=betas, eps=settings.epsilon, foreach=False)
    if variant == ADAM_FOREACH:
        return Adam(model.parameters(), betas=betas, eps=settings.epsilon, foreach=True)
    return optimizer.build(model, settings)


def padded(microbatch: Microbatch) -> Microbatch:
    """Pad every sentence to the longest, which is what is computed if rows are not packed."""
    sides = []
    for tokens, lengths in (
        (microbatch.source, microbatch.source_lengths),
        (microbatch.target, microbatch.target_lengths),
    ):
        grid = np.full((len(lengths), lengths.max()), PAD, tokens.dtype)
        grid[np.arange(lengths.max()) < lengths[:, None]] = tokens
        sides += [grid.ravel(), np.full_like(lengths, lengths.max())]
    return Microbatch(*sides)


def work(variant: str, settings: Training, data: DataSet, steps: int) -> None:
    """Compute the steps once for every line on standard input; print tokens per CPU-second each time."""
    if variant not in (HUGE_PAGES, GIVEN_BACK):
        memory.keep_freed()
    torch.manual_seed(1)
    model = Transformer(settings.model, len(data.tokenizer)).train()
    adam = build_optimizer(variant, model, settings.train)
    optimizer.set_learning_rate(adam, 1e-4)
    batches = Batches(data, StepSize(settings.data.step, settings.data.microbatch_size), settings.train.seed)
    loaded = [
        [batches.load(rows) for rows in step.microbatches]
        for step in islice(batches.after(Position()), steps)
    ]
    shape = padded if variant == PADDED else lambda microbatch: microbatch
    print("ready", flush=True)
    for _ in sys.stdin:
        began, tokens = time.process_time(), 0
        for step in loaded:
            for microbatch in step:
                loss = model(*tensors(shape(microbatch), torch.device("cpu")), settings.train.label_smoothing)
                (loss / settings.data.step).backward()
                tokens += microbatch.target_tokens
            adam.step()
            model.zero_grad(set_to_none=False)
        print(tokens / (time.process_time() - began), flush=True)


def compare(command: Sequence[str], repeat: int) -> Iterator[str]:
    workers = {
        variant: subprocess.Popen(
            [*command, "--variant", variant],
            env=environment(variant),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for variant in VARIANTS
    }
    speeds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for worker in workers.values():
        assert worker.stdout and worker.stdout.readline() == "ready\n"
    for repetition in range(-1, repeat):  # the first round, which allocates memory, does not count
        for variant, worker in workers.items():
            assert worker.stdin and worker.stdout
            print(file=worker.stdin, flush=True)
            speed = float(worker.stdout.readline())
            if repetition >= 0:
                speeds[variant].append(speed)
    for worker in workers.values():
        worker.communicate()
    yield "| | target tokens per CPU-second | relative to as it is |"
    yield "| --- | --- | --- |"
    for variant, measured in speeds.items():
        ratios = sorted(speed / usual for speed, usual in zip(measured, speeds[AS_IT_IS], strict=True))
        spread = f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})" if variant != AS_IT_IS else ""
        yield f"| {variant} | {median(measured):,.0f} | {spread} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path, help="config of the model and the training")
    parser.add_argument("--data", type=Path, required=True, help="prepared data set")
    parser.add_argument("--repeat", type=int, default=9, help="number of repetitions (9)")
    parser.add_argument("--steps", type=int, default=2, help="steps per turn (2)")
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.variant:
        command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, *sys.argv]
        print("\n".join(compare(command, arguments.repeat)))
        return 0
    size = ("data.unit=tokens", "data.step=4096", "data.microbatch=1024")
    settings = config.load(Training, arguments.config, size)
    with ExitStack() as stack:
        for name, replacement in patches(arguments.variant).items():
            stack.enter_context(mock.patch(name, replacement))
        work(arguments.variant, settings, DataSet(arguments.data), arguments.steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
