"""Chooses and builds the exchange of a run before its first step."""

from __future__ import annotations

from dragoman.config import Training
from dragoman.cost.flops import backward_share
from dragoman.measure import clock
from dragoman.measure.phases import Phases
from dragoman.sync import auto, choice
from dragoman.sync.choice import Choice, MeasuredLink
from dragoman.sync.exchange import Exchange
from dragoman.sync.topology import Placement
from dragoman.sync.world import World
from dragoman.train.begin import Beginning
from dragoman.train.outputs import Outputs
from dragoman.train.step import Stepper


def build(
    beginning: Beginning, placement: Placement, link: MeasuredLink | None, outputs: Outputs
) -> Exchange:
    """The exchange of this run, as before, as configured or by measuring; logs and records it. Collective."""
    state, world, topology = beginning.state, placement.world, placement.topology
    settings, kept = state.config.sync, state.choice

    def measured() -> Choice:
        return _measured(beginning, placement, outputs)

    if beginning.is_from_memory and kept:
        chosen = kept.for_other_hosts(settings, topology)
    else:
        chosen = state.choice = choice.decide(settings, topology, link, kept, measured)  # collective
        if len(topology.hosts) > 1 or settings.mode == "auto":
            outputs.view.say(f"exchange{', as before' if chosen is kept else ''}: {chosen}")
    exchange = choice.build(  # collective
        state.model, world, topology, chosen.way, settings, weights_agree=beginning.is_from_memory
    )
    for line in () if beginning.is_from_memory else _about_rounds(state.config, exchange):
        outputs.view.say(line)
    exchange.restore(state.outer, state.round_start)
    state.outer, state.round_start = dict(exchange.outer), exchange.round_start
    state.replicas = list(exchange.replicas)
    parameters = sum(parameter.numel() for parameter in state.model.parameters())
    outputs.recorder.placement(**exchange.way.facts(parameters), exchange_why=chosen.why)
    outputs.recorder.event("exchange", state.step, clock.seconds(), 0.0, str(exchange.way))
    return exchange


def _measured(beginning: Beginning, placement: Placement, outputs: Outputs) -> Choice:
    """The way with the shortest step, by trying those that the settings leave open. Collective."""
    state, world, topology = beginning.state, placement.world, placement.topology
    settings, began = state.config.sync, clock.seconds()
    computed = _computed_step(beginning, world, outputs.phases)  # collective
    gradient_bytes = sum(computed.gradient_bytes)
    tried = auto.measure(world, topology, settings, gradient_bytes)  # collective
    picked, why = auto.pick(computed, tried, auto.bucket_sizes(settings, gradient_bytes))
    numbers = {"compute_seconds": computed.compute_seconds, "step_seconds": picked.step_seconds}
    outputs.recorder.probe("auto", state.step, began, clock.seconds() - began, **numbers)
    return Choice.of(picked.way, why, settings, topology)


def _about_rounds(settings: Training, exchange: Exchange) -> list[str]:
    """Lines for the log if ranks do not have the same weights after every step."""
    way = exchange.way
    if way.steps_per_round == 1:
        return []
    replicas, sync = len(set(exchange.replicas)), settings.sync
    exchange_words = "replicas exchange" if replicas > 1 else "replica exchanges"
    lines = [
        f"diloco: {replicas} {exchange_words} every {way.steps_per_round} steps, in {way.wire}; "
        f"outer rate {sync.outer_rate:g}, momentum {sync.outer_momentum:g}"
    ]
    for key, every in (
        ("evaluate.every", settings.evaluate.every),
        ("checkpoint.every", settings.checkpoint.every),
    ):
        if (rounded := way.whole_rounds(every)) != every:
            lines.append(f"{key} = {every:,} is rounded to {rounded:,}, a multiple of sync.inner_steps")
    return lines


def _computed_step(beginning: Beginning, world: World, phases: Phases) -> auto.ComputedStep:
    """The time of a step without its exchange: computes the next one and discards the result. Collective."""
    state, batches = beginning.state, beginning.batches
    batch = next(batches.after(state.position))
    stepper = Stepper(state, Exchange(state.model), batches, world, phases)
    # The first run allocates memory; the second counts. Collective: every rank gets the same numbers.
    seconds = [world.most([stepper.seconds_without_exchange(batch)])[0] for _ in range(2)][-1]
    microbatches = max(len(batch.share(rank, world.size)) for rank in range(world.size))
    tensors = [parameter.numel() * 4 for parameter in state.model.parameters()]
    backward = backward_share(state.config.train.recompute) * seconds / max(1, microbatches)
    return auto.ComputedStep(seconds, backward, tensors[::-1])
