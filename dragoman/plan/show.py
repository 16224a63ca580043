"""A plan for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from dragoman import format_units, terminal
from dragoman.explain.counterfactual import NEGLIGIBLE
from dragoman.plan import alternatives
from dragoman.plan.alternatives import WAYS, Alternative
from dragoman.plan.document import memory
from dragoman.plan.estimate import Estimate
from dragoman.plan.forecast import Forecast
from dragoman.plan.request import Plan

_BINDING = {
    "computing": "computing: faster or more devices would help",
    "exchange": "the exchange of gradients: see the table for what a faster link or fewer bytes would bring",
    "optimizer": "the optimizer",
    "data": "waiting for data",
    "evaluation": "evaluation: evaluate less often (evaluate.every), or with a smaller beam",
    "checkpoint": "checkpoints: save less often (checkpoint.every)",
    "startup": "start-up: the run is short",
}


_WIDE = 3.0  # times the least is the most: a range that decides little
# What measures a part of the run that is known too badly.
_NARROWING = {
    "computing": "--calibrate on one such machine, or --from a short run there, measures it",
    "exchange": "--from a short run on such machines measures the link",
    "evaluation": "--from a short run measures it",
}


def show(plan: Plan, console: Console | None = None) -> None:
    console = console or terminal.console()
    made = plan.forecast
    for line in (
        *_opening(made, plan.currency),
        *_narrowing(made),
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
    _table(made, console, plan.currency)


def _and_the_link(made: Forecast) -> str:
    """What a faster link would bring beside what binds."""
    if made.binds != "computing" or made.cluster.hosts == 1:
        return ""
    cost = made.costs["value"]
    gain = cost.speedup(cost.on_link(10 * cost.link_bits_per_second))
    if gain < NEGLIGIBLE:
        return ", a faster link would not"
    return f"; a link ten times as fast would make steps {gain:.1f} x faster"


def _opening(made: Forecast, currency: str) -> Iterator[str]:
    yield f"{made.cluster}, {made.pace.device}, {made.way}"
    steps = made.steps
    yield (
        f"About {interval(made.seconds, about)}"
        + (f", {_cost(made.money, currency)}" if made.money else "")
        + f": {format_units.count(steps.value)} steps of {interval(made.step_seconds, about)}"
    )


def _narrowing(made: Forecast) -> Iterator[str]:
    """Where the range decides little: which part makes it so wide, and what would measure that."""
    if made.seconds.high < _WIDE * made.seconds.low:
        return
    part = max(made.run_parts, key=lambda name: _width(made.run_parts[name]))
    if part == "training":
        part = max(made.step_parts, key=lambda name: _width(made.step_parts[name]))
    fold = made.seconds.high / made.seconds.low
    remedy = _NARROWING.get(part, "--from a short run measures it")
    yield f"The most is {fold:.0f} times the least, mainly for what is not known of {part}: {remedy}."


def _width(part: Estimate) -> float:
    return part.high - part.low


def _parts(made: Forecast) -> Iterator[str]:
    whole = made.step_seconds.value
    yield "A step:"
    for name, part in made.step_parts.items():
        share = format_units.share(part.value / whole) if whole else ""
        yield f"  {name:<11}{interval(part, about):<34}{share:>5}  {part.source}".rstrip()
    cost = made.costs["value"]
    if cost.wire_bytes:
        wire = (
            f"{format_units.size(cost.wire_bytes)} out of each host, {about(cost.wire_seconds)} on the link"
        )
        yield f"  {wire}; {about(cost.exposed_seconds)} not hidden behind computing"
    yield "The run:"
    for name, part in made.run_parts.items():
        yield f"  {name:<11}{interval(part, about):<34}       {part.source}".rstrip()


def _needs(made: Forecast) -> Iterator[str]:
    disk, used = made.work.disk_bytes, memory(made)
    yield f"Disk for checkpoints: {interval(disk, format_units.size)}: {disk.source}"
    has = made.pace.memory_bytes
    verdict = ""
    if has:
        fits = "fits" if used.high <= has else "may not fit" if used.low <= has else "does not fit"
        verdict = f" ({fits} into {format_units.size(has)}; data.split computes in smaller parts)"
    yield f"Memory of a rank: {interval(used, format_units.size)}{verdict}: {used.source}"


def interval(number: Estimate, shown: Callable[[float], str]) -> str:
    if number.low == number.high:
        return shown(number.value)
    return f"{shown(number.value)} ({shown(number.low)} to {shown(number.high)})"


def _table(made: Forecast, console: Console, currency: str) -> None:
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
    console.print(f"* fastest: {_said(fast, currency)}", markup=False, soft_wrap=True)
    console.print(f"$ cheapest: {_said(cheap, currency)}", markup=False, soft_wrap=True)
    console.print(
        "Marked among fp32 and bf16. Accumulation makes a quarter of the updates, and DiLoCo's replicas go "
        "ways of their own for a while: neither learns the same from as many tokens.",
        soft_wrap=True,
    )


def _cell(each: Alternative, found: list[Alternative]) -> str:
    marks = "*" * (each is alternatives.fastest(found)) + "$" * (each is alternatives.cheapest(found))
    return f"{marks}{about(each.forecast.seconds.value)}"


def _said(each: Alternative, currency: str) -> str:
    made = each.forecast
    text = f"{each.place}, {each.way}: {interval(made.seconds, about)}"
    if made.money:
        return f"{text}, {_cost(made.money, currency)}"
    return f"{text}, {each.host_hours:,.2g} host-hours"


def _cost(money: Estimate, currency: str) -> str:
    return f"{interval(money, _money)} {currency or '(in the unit of the price)'}"


def about(seconds: float) -> str:
    """To two digits, which is more than a plan knows: 3.5 s, 17 min, 6.1 d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if float(f"{seconds / size:.2g}") >= 1:
            return f"{float(f'{seconds / size:.2g}'):,g} {unit}"
    return f"{float(f'{seconds * 1e3:.2g}'):g} ms"


def _money(value: float) -> str:
    return f"{float(f'{value:.2g}'):,g}" if value < 1e6 else f"{value:,.0f}"
