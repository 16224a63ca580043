"""Prints a plan for people."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from dragoman import format_units, terminal
from dragoman.explain.counterfactual import NEGLIGIBLE
from dragoman.plan import alternatives
from dragoman.plan.alternatives import AlternativePlan
from dragoman.plan.document import memory
from dragoman.plan.estimate import Estimate
from dragoman.plan.forecast import Forecast
from dragoman.plan.needs import less_memory
from dragoman.plan.request import Plan

_BINDING = {
    "computing": "computing: faster or more devices would help",
    "exchange": "the exchange of gradients: the table shows the gain from a faster link or fewer bytes",
    "optimizer": "the optimizer",
    "data": "waiting for data",
    "evaluation": "evaluation: evaluate less often (evaluate.every), or with a smaller beam",
    "checkpoint": "checkpoints: save less often (checkpoint.every)",
    "startup": "start-up: the run is short",
}


_WIDE = 3.0  # the most over the least: from here on the range is too wide to decide by
# How to measure the part of the run that is least certain.
_NARROWING = {
    "computing": "measure it with --calibrate on one such machine, or --from RUN after a short run there",
    "exchange": "measure the link with --from RUN after a short run on such machines",
}
_MARKS = (
    "Only fp32 and bf16 are compared for the marks. Accumulation makes a quarter of the updates, and "
    "DiLoCo's replicas train apart between exchanges: the same tokens teach the model something else."
)
_SHARDED_MARKS = (
    "Accumulation is not compared for the marks: it makes a quarter of the updates, so the same tokens teach "
    "the model something else."
)
_SHORT_RUN = "measure it with --from RUN after a short run"


def show(plan: Plan, console: Console | None = None) -> None:
    console = console or terminal.console()
    forecast = plan.forecast
    for line in (
        *_opening(forecast, plan.currency),
        *_narrowing(forecast),
        "",
        *_parts(forecast),
        "",
        *_needs(forecast),
        "",
        f"Limited by: {_BINDING[forecast.binds]}{_and_the_link(forecast)}.",
    ):
        _print(console, line)
    if plan.assumptions:
        console.print("\nAssumptions:")
        for assumption in plan.assumptions:
            _print(console, f"  - {assumption}")
    console.print()
    _table(forecast, console, plan.currency)


def _and_the_link(forecast: Forecast) -> str:
    """What a faster link would gain if computing binds."""
    if forecast.binds != "computing" or forecast.cluster.hosts == 1:
        return ""
    cost = forecast.costs["value"]
    gain = cost.speedup(cost.on_link(10 * cost.link_bits_per_second))
    if gain < NEGLIGIBLE:
        return "; a faster link would not"
    return f"; a link ten times as fast would make steps {gain:.1f} times as fast"


def _opening(forecast: Forecast, currency: str) -> Iterator[str]:
    yield f"{forecast.cluster}, {forecast.pace.device}, {forecast.way}"
    steps = forecast.steps
    yield (
        f"About {interval(forecast.seconds, about)}"
        + (f", {_cost(forecast.money, currency)}" if forecast.money else "")
        + f": {format_units.count(steps.value)} steps of {interval(forecast.step_seconds, about)}"
    )


def _narrowing(forecast: Forecast) -> Iterator[str]:
    """If the range is wide: the least certain part, and how to measure it."""
    if forecast.seconds.high < _WIDE * forecast.seconds.low:
        return
    part = max(forecast.run_parts, key=lambda name: _width(forecast.run_parts[name]))
    if part == "training":
        part = max(forecast.step_parts, key=lambda name: _width(forecast.step_parts[name]))
    fold = forecast.seconds.high / forecast.seconds.low
    remedy = _NARROWING.get(part, _SHORT_RUN)
    cause = f"mainly because the time for {part} is uncertain"
    yield f"The most is {fold:.0f} times the least, {cause}: {remedy}."


def _width(part: Estimate) -> float:
    return part.high - part.low


def _parts(forecast: Forecast) -> Iterator[str]:
    whole = forecast.step_seconds.value
    yield "A step:"
    for name, part in forecast.step_parts.items():
        share = format_units.share(part.value / whole) if whole else ""
        yield f"  {name:<11}{interval(part, about):<34}{share:>5}  {part.source}".rstrip()
    cost = forecast.costs["value"]
    if cost.wire_bytes:
        wire = (
            f"{format_units.size(cost.wire_bytes)} sent by each host, {about(cost.wire_seconds)} on the link"
        )
        yield f"  {wire}; {about(cost.exposed_seconds)} not hidden behind computing"
    yield "The run:"
    for name, part in forecast.run_parts.items():
        yield f"  {name:<11}{interval(part, about):<34}       {part.source}".rstrip()


def _needs(forecast: Forecast) -> Iterator[str]:
    disk, used = forecast.work.disk_bytes, memory(forecast)
    yield f"Disk for checkpoints: {interval(disk, format_units.size)}: {disk.source}"
    has = forecast.pace.memory_bytes
    verdict = ""
    if has:
        fits = "fits" if used.high <= has else "may not fit" if used.low <= has else "does not fit"
        verdict = f" ({fits} in {format_units.size(has)}; less with {less_memory(forecast.work.settings)})"
    yield f"Memory per rank: {interval(used, format_units.size)}{verdict}: {used.source}"


def interval(number: Estimate, shown: Callable[[float], str]) -> str:
    """The value and its range: `3.5 h (2.8 h to 4.4 h)`."""
    if number.low == number.high:
        return shown(number.value)
    return f"{shown(number.value)} ({shown(number.low)} to {shown(number.high)})"


def _table(forecast: Forecast, console: Console, currency: str) -> None:
    """Time by cluster and way of exchanging. `plan --json` has the interval of each."""
    rows = alternatives.alternatives(forecast)
    table = Table(box=None, pad_edge=False, title_justify="left")
    _print(console, "Time for the same tokens, by number of hosts and by how gradients are sent:")
    table.add_column("")
    names = list(dict.fromkeys(each.way for each in rows))
    for name in names:
        table.add_column(name, justify="right")
    places = list(dict.fromkeys(each.place for each in rows))
    for place in places:
        cells = {each.way: _cell(each, rows) for each in rows if each.place == place}
        table.add_row(place, *(cells.get(name, "") for name in names))
    console.print(table)
    fast, cheap = alternatives.fastest(rows), alternatives.cheapest(rows)
    _print(console, f"* fastest: {_summary(fast, currency)}")
    _print(console, f"+ cheapest: {_summary(cheap, currency)}")
    _print(console, _SHARDED_MARKS if forecast.way.is_sharded else _MARKS)


def _print(console: Console, line: str) -> None:
    """Prints a line, wrapped at words to the console's width; what wraps is indented."""
    wrapped = textwrap.wrap(line, console.width, subsequent_indent="    ", break_on_hyphens=False) or [""]
    console.print("\n".join(wrapped), markup=False, soft_wrap=True)


def _cell(each: AlternativePlan, rows: list[AlternativePlan]) -> str:
    marks = "*" * (each is alternatives.fastest(rows)) + "+" * (each is alternatives.cheapest(rows))
    return f"{marks}{about(each.forecast.seconds.value)}"


def _summary(each: AlternativePlan, currency: str) -> str:
    forecast = each.forecast
    text = f"{each.place}, {each.way}: {interval(forecast.seconds, about)}"
    if forecast.money:
        return f"{text}, {_cost(forecast.money, currency)}"
    return f"{text}, {each.host_hours:,.2g} host-hours"


def _cost(money: Estimate, currency: str) -> str:
    return f"{interval(money, _money)}{f' {currency}' if currency else ', in the currency of the price'}"


def about(seconds: float) -> str:
    """A time to two digits: 3.5 s, 17 min, 6.1 d. A plan is less certain than that."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if float(f"{seconds / size:.2g}") >= 1:
            return f"{float(f'{seconds / size:.2g}'):,g} {unit}"
    return f"{float(f'{seconds * 1e3:.2g}'):g} ms"


def _money(value: float) -> str:
    return f"{float(f'{value:.2g}'):,g}" if value < 1e6 else f"{value:,.0f}"
