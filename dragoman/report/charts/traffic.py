"""Charts of the network: traffic over time, against step time, and within one step."""

from __future__ import annotations

import numpy as np

from dragoman import format_units
from dragoman.explain.details import bytes_of_steps, is_one_machine, link_rate
from dragoman.explain.finding import Finding
from dragoman.measure.records import PHASES, Records, Table
from dragoman.report.charts import thin
from dragoman.report.charts.figure import Chart, Key, Missing, axis, bars_layout, dots, line, numbers
from dragoman.report.charts.marks import marked
from dragoman.report.charts.speed import PHASE_NAMES, host_names, over_time

_FAR_ABOVE = 8  # drawing a link this many times the traffic would flatten the traffic
_FEWEST_SAMPLES = 60  # shown; short steps are shown together with their neighbours
ONE_MACHINE = "all ranks ran on one machine, so their gradients crossed no network"


def with_and_without(records: Records, finding: Finding) -> Chart | Missing:
    title = "The same step with and without the exchange"
    names = {"step_seconds": "as trained", "step_seconds_without_exchange": "without exchange"}
    values = [finding.numbers.get(name) for name in names]
    seconds = [float(value) for value in values if isinstance(value, int | float) and np.isfinite(value)]
    if len(seconds) < len(names):
        return Missing(title, "the time of a step without the exchange is not known")
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": list(names.values())[::-1],
        "x": numbers(seconds[::-1]),
        "text": [format_units.seconds(value) for value in seconds[::-1]],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": ["--phase-forward", "--phase-exchange"]},
        "hovertemplate": "%{y}: %{text}<extra></extra>",
    }
    trained, without = map(format_units.seconds, seconds[:2])
    note = f"{trained} as trained, {without} without the exchange"
    prefix = "step_seconds_without_exchange: "
    how = [text.removeprefix(prefix) for text in finding.evidence if text.startswith(prefix)]
    note += f": {how[0]}." if how else "."
    return Chart(title, note, [trace], bars_layout(max(seconds)), height=74)


def traffic_over_time(records: Records, finding: Finding) -> Chart | Missing:
    title = "Traffic over time"
    nics = gradient_rows(records)
    if is_one_machine(records):
        return Missing(title, ONE_MACHINE)
    if not thin.is_known(nics["sent_bytes"], nics["time"]):
        return Missing(title, "no network interface was watched")
    keys = np.array(host_names(records, nics))
    sent_bits = 8 * nics["sent_bytes"]
    traces, unit, start = over_time(records, nics, keys, sent_bits, "sent")
    note = "Bits per second sent by each host over the interface that carries its gradients."
    capacity = link_rate(records)
    if capacity is not None:
        most = float(np.nanmax(sent_bits))
        note += f" The link was measured at {format_units.rate(capacity)}."
        if 0 < capacity < _FAR_ABOVE * most and len(traces[0]["x"]):
            ends = [traces[0]["x"][0], traces[0]["x"][-1]]
            traces.append(line(ends, [capacity] * 2, "link, measured", "--muted", dash="dash"))
    marks, axes = marked(records, start, unit)
    yaxis = axis("bits per second", rangemode="tozero", tickformat="~s")
    return Chart(title, note, traces + marks, {"xaxis": axis(unit), "yaxis": yaxis, **axes})


def traffic_against_step_time(records: Records, finding: Finding) -> Chart | Missing:
    title = "Traffic against step time"
    if is_one_machine(records):
        return Missing(title, ONE_MACHINE)
    seconds, sent = bytes_of_steps(records)  # the values behind the answer's correlation
    known = np.isfinite(seconds) & np.isfinite(sent) & (seconds > 0)
    if not known.any():
        return Missing(title, "traffic and step times were not both recorded")
    seconds, sent = thin.means(seconds[known], sent[known])
    rates = sent / seconds
    each = finding.numbers.get("bytes_per_step_per_host") or float(np.median(sent))
    traces = [dots(8 * rates, seconds, "a few steps", "--series-1", size=6, opacity=0.55)]
    if each > 0 and rates.max() > 0:
        some = np.linspace(max(rates.min(), rates.max() / 50), rates.max(), 60)
        traces.append(
            line(8 * some, each / some, f"{format_units.size(each)} per step", "--muted", dash="dash")
        )
    layout = {
        "xaxis": axis("bits per second sent by a host", tickformat="~s"),
        "yaxis": axis("seconds per step", range=[0, float(seconds.max()) * 1.1]),
        "hovermode": "closest",
    }
    note = (
        "Each point is a few neighbouring steps. Along the dashed line every step sends the same bytes, so "
        "slower steps mean a slower link, not more traffic."
    )
    return Chart(title, note, traces, layout)


def traffic_within_a_step(records: Records, finding: Finding) -> Chart | Missing:
    title = "Traffic within a step"
    rows = _samples_of_a_step(records.lens)
    if is_one_machine(records):
        return Missing(title, ONE_MACHINE)
    if rows is None:
        return Missing(title, "no second was sampled at a high rate")
    times, rates, phases = rows
    since = (times - times[0]) * 1e3
    traces = [line(since, 8 * rates, "sent", "--text", width=1.6, hovertemplate="%{y:.3~s}bit/s")]
    traces[0]["line"]["shape"] = "hv"  # a rate holds until the next sample
    shapes, seen = [], []
    for first, last, phase in _spans(phases):
        if phase in range(len(PHASES)):
            end = since[min(last + 1, len(since) - 1)]
            shapes.append(_shade(since[first], end, f"--phase-{PHASES[phase]}"))
            seen.append(PHASES[phase])
    keys = [Key(PHASE_NAMES[phase], f"--phase-{phase}", "shade") for phase in PHASES if phase in seen]
    layout = {
        "xaxis": axis("milliseconds"),
        "yaxis": axis("bits per second", rangemode="tozero", tickformat="~s"),
        "shapes": shapes,
    }
    note = "Bits per second sent by one host, sampled many times a second; shades show the phases."
    return Chart(title, note, traces, layout, keys=keys)


def _samples_of_a_step(samples: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Returns times, rates and phases of one whole step and its surroundings, from the longest series."""
    known = np.isfinite(samples["time"]) & np.isfinite(samples["sent_bytes"]) & np.isfinite(samples["host"])
    if known.sum() < 3:
        return None
    host = np.unique(samples["host"][known])[0]
    mine = np.flatnonzero(known & (samples["host"] == host))
    mine = mine[np.argsort(samples["time"][mine], kind="stable")]
    if len(mine) < 3:
        return None
    gaps = np.diff(samples["time"][mine])
    usual = float(np.median(gaps))
    series = np.split(mine, np.flatnonzero(gaps > 5 * usual) + 1)
    longest = max(series, key=len)
    if len(longest) < 3:
        return None
    chosen = _around_one_step(samples["step"][longest])
    rows = longest[chosen]
    times = samples["time"][rows]
    spans = np.maximum(np.diff(times), 1e-6)
    rates = np.maximum(np.diff(samples["sent_bytes"][rows]), 0) / spans
    return times[:-1], rates, np.nan_to_num(samples["phase"][rows][:-1], nan=-1).astype(int)


def _around_one_step(steps: np.ndarray) -> slice:
    """Selects the middle step with a margin; a short step comes with its neighbours, to show enough."""
    middle = steps[len(steps) // 2]
    inside = np.flatnonzero(steps == middle)
    if not len(inside):
        return slice(0, min(len(steps), _FEWEST_SAMPLES))
    margin = max(2, len(inside) // 8, (_FEWEST_SAMPLES - len(inside)) // 2)
    return slice(max(0, inside[0] - margin), min(len(steps), inside[-1] + margin + 1))


def _spans(phases: np.ndarray) -> list[tuple[int, int, int]]:
    """Returns first and last place and value of each stretch of equal phases."""
    starts = [0, *(np.flatnonzero(np.diff(phases)) + 1).tolist()]
    ends = [*(start - 1 for start in starts[1:]), len(phases) - 1]
    return [(first, last, int(phases[first])) for first, last in zip(starts, ends, strict=True)]


def _shade(start: float, end: float, color: str) -> dict[str, object]:
    x0, x1 = numbers([start, end])
    box = {"type": "rect", "xref": "x", "yref": "paper", "x0": x0, "x1": x1, "y0": 0, "y1": 1}
    return {**box, "fillcolor": color, "opacity": 0.3, "line": {"width": 0}, "layer": "below"}


def gradient_rows(records: Records) -> Table:
    """Returns the rows of each host's gradient interface, or of its busiest if that is not known."""
    nics, known = records.nics, records.facts.gradient_interfaces
    keep = np.zeros(len(nics["host"]), dtype=bool)
    for host in np.unique(nics["host"][np.isfinite(nics["host"])]).astype(int):
        mine = nics["host"] == host
        name = known[host] if host < len(known) else ""
        keep |= mine & (nics["interface"] == (name or _busiest(nics, mine)))
    return {column: values[keep] for column, values in nics.items()}


def _busiest(nics: Table, mine: np.ndarray) -> str:
    names = np.unique(nics["interface"][mine])
    names = names[names != "lo"] if (names != "lo").any() else names
    totals = [np.nansum(nics["sent_bytes"][mine & (nics["interface"] == name)]) for name in names]
    return str(names[int(np.argmax(totals))])
