"""The exchange of a run, settled and built before its first step."""

from __future__ import annotations

from dragoman.config import Training
from dragoman.cost.flops import BACKWARD_SHARE
from dragoman.data.batches import Batches
from dragoman.measure import clock
from dragoman.measure.phases import Phases
from dragoman.measure.recorder import Recorder
from dragoman.sync import auto, choice
from dragoman.sync.choice import Choice, MeasuredLink
from dragoman.sync.exchange import Exchange
from dragoman.sync.topology import Topology
from dragoman.sync.world import World
from dragoman.train.state import State
from dragoman.train.step import Stepper
from dragoman.train.view import View


def build(
    state: State,
    batches: Batches,
    world: World,
    topology: Topology,
    link: MeasuredLink | None,
    phases: Phases,
    recorder: Recorder,
    shown: View,
) -> Exchange:
    """The exchange for the way that was kept, asked for or measured. Logs and records the way. Collective."""
    settings = state.config.sync

    def measured() -> Choice:
        began = clock.seconds()
        around = _around(state, batches, world, phases)
        gradient_bytes = sum(around.gradient_bytes)
        tried = auto.measure(world, topology, settings, gradient_bytes)
        picked, why = auto.pick(around, tried, auto.bucket_sizes(settings, gradient_bytes))
        numbers = {"compute_seconds": around.compute_seconds, "step_seconds": picked.step_seconds}
        recorder.probe("auto", state.step, began, clock.seconds() - began, **numbers)
        return Choice.of(picked.way, why, settings, topology)

    kept = state.choice
    state.choice = choice.decide(settings, topology, link, kept, measured)
    if len(topology.hosts) > 1 or settings.mode == "auto":
        shown.say(f"exchange{', as before' if state.choice is kept else ''}: {state.choice}")
    exchange = choice.build(state.model, world, topology, state.choice.way, settings)
    for line in _about_rounds(state.config, exchange):
        shown.say(line)
    exchange.restore_outer(state.outer)
    state.outer, state.replicas = dict(exchange.outer), list(exchange.replicas)
    parameters = sum(parameter.numel() for parameter in state.model.parameters())
    recorder.placement(**exchange.way.facts(parameters), exchange_why=state.choice.why)
    recorder.event("exchange", state.step, clock.seconds(), 0.0, str(exchange.way))
    return exchange


def _about_rounds(settings: Training, exchange: Exchange) -> list[str]:
    """Lines for the log where ranks do not have the same weights after every step."""
    way = exchange.way
    if way.steps_per_round == 1:
        return []
    replicas, sync = len(set(exchange.replicas)), settings.sync
    meet = "replicas meet" if replicas > 1 else "replica meets"
    lines = [
        f"diloco: {replicas} {meet} every {way.steps_per_round} steps, in {way.wire}; "
        f"outer rate {sync.outer_rate:g}, momentum {sync.outer_momentum:g}"
    ]
    for key, every in (
        ("evaluate.every", settings.evaluate.every),
        ("checkpoint.every", settings.checkpoint.every),
    ):
        if (rounded := way.whole_rounds(every)) != every:
            lines.append(f"{key} = {every:,} is taken as {rounded:,}, a multiple of sync.inner_steps")
    return lines


def _around(state: State, batches: Batches, world: World, phases: Phases) -> auto.ComputedStep:
    """What a step takes without its exchange, by computing the next one for nothing. Collective."""
    batch = next(batches.after(state.position))
    stepper = Stepper(state, Exchange(state.model), batches, world, phases)
    # The first time memory is allocated, the second time counts. Collective: every rank has the same numbers.
    seconds = [world.most([stepper.seconds_without_exchange(batch)])[0] for _ in range(2)][-1]
    microbatches = max(len(batch.share(rank, world.size)) for rank in range(world.size))
    tensors = [parameter.numel() * 4 for parameter in state.model.parameters()]
    return auto.ComputedStep(seconds, BACKWARD_SHARE * seconds / max(1, microbatches), tensors[::-1])
