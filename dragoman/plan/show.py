"""A plan for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from dragoman import terminal
from dragoman.explain import words
from dragoman.explain.counterfactual import NEGLIGIBLE
from dragoman.plan import alternatives
from dragoman.plan.alternatives import WAYS, Alternative
from dragoman.plan.document import memory
from dragoman.plan.estimate import Estimate
from dragoman.plan.forecast import Forecast
from dragoman.plan.request import Plan

_WIDEST = 110
_BINDING = {
    "computing": "computing: faster or more devices would help",
    "exchange": "the exchange of gradients: see the table for what a faster link or fewer bytes would bring",
    "optimizer": "the optimizer",
    "data": "waiting for data",
    "evaluation": "evaluation: evaluate less often (evaluate.every), or with a smaller beam",
    "checkpoint": "checkpoints: save less often (checkpoint.every)",
    "startup": "start-up: the run is short",
}


def show(plan: Plan, console: Console | None = None) -> None:
    console = console or terminal.console()
    made = plan.forecast
    for line in (
        *_opening(made),
        "",
        *_parts(made),
        "",
        *_needs(made),
        "",
        f"Binds: {_BINDING[made.binds]}{_and_the_link(made)}.",
    ):
        console.print(line, soft_wrap=True, markup=False)
    if plan.assumptions:
        console.print("\nTaken for granted:")
        for assumption in plan.assumptions:
            console.print(f"  - {assumption}", soft_wrap=True, markup=False)
    console.print()
    _table(made, console)


def _and_the_link(made: Forecast) -> str:
    """What a faster link would bring beside what binds."""
    if made.binds != "computing" or made.cluster.hosts == 1:
        return ""
    cost = made.costs["value"]
    gain = cost.speedup(cost.on_link(10 * cost.link_bits_per_second))
    if gain < NEGLIGIBLE:
        return ", a faster link would not"
    return f"; a link ten times as fast would make steps {gain:.1f} x faster"


def _opening(made: Forecast) -> Iterator[str]:
    yield f"{made.cluster}, {made.pace.device}, {made.way}"
    steps = made.steps
    yield (
        f"{words.count(steps.value)} steps of {interval(made.step_seconds, words.seconds)}: "
        f"{interval(made.seconds, words.seconds)}"
        + (f", {interval(made.money, _money)}" if made.money else "")
    )


def _parts(made: Forecast) -> Iterator[str]:
    whole = made.step_seconds.value
    yield "A step:"
    for name, part in made.step_parts.items():
        share = words.share(part.value / whole) if whole else ""
        yield f"  {name:<11}{interval(part, words.seconds):<34}{share:>5}  {part.source}".rstrip()
    cost = made.costs["value"]
    if cost.wire_bytes:
        wire = (
            f"{words.size(cost.wire_bytes)} out of each host, {words.seconds(cost.wire_seconds)} on the link"
        )
        yield f"  {wire}; {words.seconds(cost.exposed_seconds)} not hidden behind computing"
    yield "The run:"
    for name, part in made.run_parts.items():
        yield f"  {name:<11}{interval(part, words.seconds):<34}       {part.source}".rstrip()


def _needs(made: Forecast) -> Iterator[str]:
    disk, used = made.work.disk_bytes, memory(made)
    yield f"Disk for checkpoints: {interval(disk, words.size)}: {disk.source}"
    has = made.pace.memory_bytes
    verdict = ""
    if has:
        fits = "fits" if used.high <= has else "may not fit" if used.low <= has else "does not fit"
        verdict = f" ({fits} into {words.size(has)}; data.split computes in smaller parts)"
    yield f"Memory of a rank: {interval(used, words.size)}{verdict}: {used.source}"


def interval(number: Estimate, shown: Callable[[float], str]) -> str:
    if number.low == number.high:
        return shown(number.value)
    return f"{shown(number.value)} ({shown(number.low)} to {shown(number.high)})"


def _table(made: Forecast, console: Console) -> None:
    """Hours by place and way; the interval of each is in the JSON."""
    found = alternatives.alternatives(made)
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("the same tokens on")
    for name in WAYS:
        table.add_column(name, justify="right")
    places = list(dict.fromkeys(each.place for each in found))
    for place in places:
        cells = {each.way: _cell(each, found) for each in found if each.place == place}
        table.add_row(place, *(cells.get(name, "") for name in WAYS))
    console.print(table)
    fast, cheap = alternatives.fastest(found), alternatives.cheapest(found)
    console.print(f"* fastest: {_said(fast)}", markup=False, soft_wrap=True)
    console.print(f"$ cheapest: {_said(cheap)}", markup=False, soft_wrap=True)
    console.print(
        "Marked among fp32 and bf16. Accumulation makes a quarter of the updates, and DiLoCo's replicas go "
        "ways of their own for a while: neither learns the same from as many tokens.",
        soft_wrap=True,
    )


def _cell(each: Alternative, found: list[Alternative]) -> str:
    marks = "*" * (each is alternatives.fastest(found)) + "$" * (each is alternatives.cheapest(found))
    return f"{marks}{words.seconds(each.forecast.seconds.value)}"


def _said(each: Alternative) -> str:
    made = each.forecast
    text = f"{each.place}, {each.way}: {interval(made.seconds, words.seconds)}"
    if made.money:
        return f"{text}, {interval(made.money, _money)}"
    return f"{text}, {each.host_hours:,.3g} host-hours"


def _money(value: float) -> str:
    return f"{value:,.2f}"
