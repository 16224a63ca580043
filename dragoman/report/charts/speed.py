"""Charts of speed: phases over the run, ranks by phase, and how busy the machines were."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dragoman import format_units
from dragoman.explain.details import phases_within
from dragoman.explain.finding import Finding
from dragoman.measure.records import PHASES, Records, Table
from dragoman.report.charts import thin
from dragoman.report.charts.figure import (
    FEW,
    SERIES,
    Chart,
    Missing,
    Trace,
    axis,
    line,
    literal,
    numbers,
    short,
)
from dragoman.report.charts.marks import marked

PHASE_NAMES = {
    "data": "waiting for data",
    "forward": "forward",
    "backward": "backward",
    "exchange": "exposed exchange",
    "optimizer": "clip and optimizer",
}


def phases_over_time(records: Records, finding: Finding) -> Chart | Missing:
    title = "Phases of a step over the run"
    phases = phases_within(records)  # as in the answers, so that they fit within the step
    present = [phase for phase in PHASES if thin.is_known(phases[phase])]
    if not present:
        return Missing(title, "phases were not timed")
    steps, *seconds = thin.means(records.steps["step"], *(phases[phase] for phase in present))
    traces = []
    for phase, values in zip(present, seconds, strict=True):
        color = f"--phase-{phase}"
        area = line(steps, np.nan_to_num(values), PHASE_NAMES[phase], color, width=0, stackgroup="step")
        traces.append({**area, "fillcolor": color, "hovertemplate": "%{y:.3~s}s"})
    layout = {"xaxis": axis("step"), "yaxis": axis("seconds per step", rangemode="tozero")}
    note = "Seconds of each phase, mean over ranks, stacked; the top edge is the whole step."
    return Chart(title, note, traces, layout, height=340)


def ranks_by_phase(records: Records, finding: Finding) -> Chart | Missing:
    title = "Phases by rank"
    windows = records.windows
    present = [phase for phase in PHASES if thin.is_known(windows[phase])]
    ranks = np.unique(windows["rank"][np.isfinite(windows["rank"])]).astype(int)
    steps = windows["last_step"] - windows["first_step"] + 1  # a window holds sums
    if not present or not len(ranks) or not (steps > 0).any():
        return Missing(title, "phases were not recorded for each rank")
    grid = np.array([[_per_step(windows, steps, rank, phase) for phase in present] for rank in ranks])
    names = [_rank_name(records, rank) for rank in ranks]
    trace: Trace = {
        "type": "heatmap",
        "x": list(present),
        "y": names,
        "z": [numbers(row) for row in grid],
        "colorscale": [[0, "--heat-low"], [1, "--heat-high"]],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": "%{y}, %{x}: %{z:.3~s}s<extra></extra>",
    }
    layout = {
        "xaxis": {"showgrid": False, "side": "top", "ticks": "", "tickangle": 0, "tickfont": {"size": 11}},
        "yaxis": {"showgrid": False, "autorange": "reversed", "ticks": "", "nticks": 0},
        "hovermode": "closest",
        "margin": {"t": 28, "b": 4},
        "annotations": _cell_labels(grid, trace) if len(ranks) <= 16 else [],
    }
    note = "Milliseconds per step. A slow rank computes longer; the others wait for it in the exchange."
    return Chart(title, note, [trace], layout, height=40 + min(34, 640 // len(ranks)) * len(ranks))


def _per_step(windows: Table, steps: np.ndarray, rank: int, phase: str) -> float:
    mine = (windows["rank"] == rank) & np.isfinite(windows[phase]) & (steps > 0)
    return float(windows[phase][mine].sum() / steps[mine].sum()) if mine.any() else float("nan")


def _rank_name(records: Records, rank: int) -> str:
    places, hosts = records.facts.rank_hosts, records.facts.hosts
    has_host = 0 <= rank < len(places) and 0 <= places[rank] < len(hosts)
    return literal(
        f"{rank} · {short(hosts[places[rank]].partition('.')[0], 12)}" if has_host else f"rank {rank}"
    )


def _cell_labels(grid: np.ndarray, trace: Trace) -> list[dict[str, object]]:
    most = float(np.nanmax(grid)) or 1.0
    return [
        {
            "x": x,
            "y": y,
            "text": f"{1e3 * value:,.3g}" if value < 1 else f"{1e3 * value:,.0f}",
            "showarrow": False,
            "font": {"color": "--heat-text-high" if value > 0.5 * most else "--text", "size": 12},
        }
        for y, row in zip(trace["y"], grid.tolist(), strict=True)
        for x, value in zip(trace["x"], row, strict=True)
        if np.isfinite(value)
    ]


def utilisation(records: Records, finding: Finding) -> Chart | Missing:
    """Draws the utilisation and power of GPUs or, without GPUs, the utilisation of CPUs."""
    if thin.is_known(records.gpus["utilisation"]):
        gpus = records.gpus
        numbered = np.where(np.isfinite(gpus["gpu"]), gpus["gpu"], 0)
        names = host_names(records, gpus)
        keys = [f"{name} GPU {int(gpu)}" for name, gpu in zip(names, numbered, strict=True)]
        limit = np.where(gpus["power_limit_watts"] > 0, gpus["power_limit_watts"], np.nan)
        power = gpus["power_watts"] / limit
        drawn = over_time(records, gpus, np.array(keys), gpus["utilisation"], "utilisation", few=1)
        traces = drawn.traces
        if thin.is_known(power):
            traces += over_time(records, gpus, np.array(keys), power, "power", few=1, color=SERIES[1]).traces
        title = "GPU utilisation and power"
        note = (
            "Utilisation is the share of time with a kernel running; power is a share of the power limit. "
            "Busy at low power means waiting."
        )
    elif thin.is_known(records.hosts["cpu_share"]):
        names = host_names(records, records.hosts)
        drawn = over_time(records, records.hosts, np.array(names), records.hosts["cpu_share"], "CPU")
        traces = drawn.traces
        title = "CPU utilisation"
        note = "Share of all cores of a host that were busy, whatever ran on them."
        share = finding.numbers.get("cpu_share")
        if isinstance(share, float):
            note += f" In steps, the ranks got {format_units.share(share)} of the CPU time they needed."
    else:
        return Missing("Utilisation over time", "neither GPUs nor CPUs were measured")
    marks, axes = marked(records, drawn.start, drawn.unit)
    layout = {"xaxis": axis(drawn.unit), "yaxis": axis("share", tickformat=".0%", range=[0, 1.05]), **axes}
    return Chart(title, note, traces + marks, layout)


class OverTime(NamedTuple):
    traces: list[Trace]
    unit: str  # of the time axis
    start: float  # its 0


def over_time(
    records: Records,
    table: Table,
    keys: np.ndarray,
    values: np.ndarray,
    what: str,
    few: int = FEW,
    color: str = SERIES[0],
) -> OverTime:
    """Returns a line per key or, for more than `few`, their mean within a band from least to most."""
    span = float(np.nanmax(table["span"])) if thin.is_known(table["span"]) else 1.0
    bins = thin.TimeBins(table["time"], span)
    start = records.attempts[0].started if records.attempts else bins.start
    start = min(start, bins.start)
    since, unit = thin.clock(bins.middles, start)
    names = sorted(set(keys.tolist()))
    curves = []
    for name in names:
        mine = keys == name
        curves.append(
            thin.binned(bins.of(table["time"][mine]), values[mine], bins.count, table["span"][mine])
        )
    if len(names) > few:
        return OverTime(_band(since, np.array(curves), what, color), unit, start)
    colors = [color] if len(names) == 1 else SERIES
    rows = zip(names, curves, colors, strict=False)
    lines = [line(since, curve, f"{name} {what}", paint, width=1.4) for name, curve, paint in rows]
    return OverTime(lines, unit, start)


def _band(since: np.ndarray, grid: np.ndarray, what: str, color: str) -> list[Trace]:
    alive = np.isfinite(grid).any(axis=0)
    since, grid = since[alive], grid[:, alive]
    hidden = {"showlegend": False, "hoverinfo": "skip", "width": 0}
    least = line(since, np.nanmin(grid, axis=0), f"{what}, least", color, **hidden)
    most = line(since, np.nanmax(grid, axis=0), f"{what}, most", color, **hidden)
    most |= {"fill": "tonexty", "fillcolor": f"{color}-band"}
    mean = line(since, np.nanmean(grid, axis=0), f"{what}, mean of {len(grid)}", color, width=1.6)
    return [least, most, mean]


def host_names(records: Records, table: Table) -> list[str]:
    """Returns the host's name for each row of a meter's table; hosts may change from attempt to attempt."""
    starts = [attempt.started for attempt in records.attempts]
    placed = [attempt.placement.get("hosts") or records.facts.hosts for attempt in records.attempts]
    if not starts:
        starts, placed = [0.0], [records.facts.hosts]
    under_way = np.searchsorted(np.maximum.accumulate(starts), table["time"], side="right") - 1
    names = []
    for number, attempt in zip(table["host"].tolist(), under_way.tolist(), strict=True):
        hosts = placed[max(0, attempt)]
        place = int(number) if np.isfinite(number) else -1
        names.append(hosts[place] if 0 <= place < len(hosts) else f"host {place}")
    return names
