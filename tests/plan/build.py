"""Work, paces and links with round numbers."""

from dragoman.config import Data, Model, Train, Training
from dragoman.plan.cluster import PlannedLink
from dragoman.plan.estimate import Estimate
from dragoman.plan.pace import Pace
from dragoman.plan.work import CorpusSize, Work

TINY = Model(width=64, heads=4, encoder_layers=1, decoder_layers=1, feedforward=128)


def corpus(pairs: int | None = 10_000) -> CorpusSize:
    return CorpusSize(1_000, Estimate.exactly(20.0), Estimate.exactly(20.0), pairs, dev_pairs=100)


def work(step: int = 8_000, microbatch: int = 1_000, steps: int = 1_000) -> Work:
    settings = Training(
        model=TINY, data=Data(step=step, microbatch=microbatch), train=Train(steps=steps, warmup_steps=10)
    )
    return Work(settings, corpus())


def pace(step_seconds: float = 8.0, doubt: float = 0.0) -> Pace:
    """With which one rank computes a step of `work()` in so many seconds, and does nothing else."""
    nothing = Estimate.exactly(0.0)
    per_flop = Estimate.within(step_seconds / work().flops_per_step(), doubt, "made up")
    return Pace("cpu", per_flop, nothing, nothing, nothing, nothing, nothing, nothing)


def link(bits_per_second: float, round_trip_seconds: float = 0.0) -> PlannedLink:
    return PlannedLink(Estimate.exactly(bits_per_second), Estimate.exactly(round_trip_seconds), "made up")
