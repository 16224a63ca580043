"""Did the ranks get the CPU cores they needed, and what used them instead?

Each rank counts how long its threads ran in a step, and how long they were ready to run but had no core. To a
clock, waiting for a core looks like computing; these counts separate the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman import format_units
from dragoman.explain.step_breakdown import StepParts, mean
from dragoman.explain.straggler import host_of
from dragoman.measure.records import Records, core_shares

BUSY_PHASES = ("forward", "backward", "optimizer")  # in these a rank needs its cores
WORTH_SAYING = 0.05  # share of the time; less is ordinary scheduling
NAMED = 3  # other programs named at most


@dataclass(frozen=True)
class CoreUser:
    name: str
    cores: float  # mean number it used while ranks waited for one
    host: str | None = None


@dataclass(frozen=True)
class Cores:
    share: float  # the part of the CPU time they needed that the ranks got
    waited: float  # seconds of a step in which computing waited for a core, mean over ranks
    lost: float  # seconds by which a step would be shorter if every rank had its cores
    behind: dict[str, float]  # the part of `lost` that shows as another wait: seconds by verdict
    ranks: dict[int, float]  # the share that each rank got


def cores(records: Records, parts: StepParts) -> Cores | None:
    """Returns the CPU time that the ranks got and missed; None if it was not counted."""
    busy, shares = _by_rank(records)
    if not shares:
        return None
    waited = {rank: busy[rank] * (1 - shares[rank]) for rank in shares}
    share, average = _mean(shares), min(_mean(waited), parts.computing or 0.0)
    hosts = {rank: host_of(records, rank) for rank in shares}
    if len(set(hosts.values())) > 1:
        # All lose what the least affected host loses; hosts that lose more count as slow ranks.
        least = min(_mean({r: waited[r] for r in waited if hosts[r] == host}) for host in hosts.values())
        return Cores(share, average, min(least, average), {}, shares)
    if average >= WORTH_SAYING * parts.seconds:
        # On one machine the rank without a core changes: the others wait for it, and their exchange needs
        # cores as well. Only time that a rank always computes longer counts as that of a slow rank.
        left = {rank: busy[rank] - waited[rank] for rank in busy}
        straggler = max(0.0, (parts.straggler or 0.0) - (max(left.values()) - _mean(left)))
        link = (1 - share) * (parts.link or 0.0)
        others = max(1, len(left) - 1)  # the slow rank does not wait, so the others' mean wait is longer
        behind = {"waiting_straggler": straggler * len(left) / others, "waiting_network": link}
        return Cores(share, average, min(average + straggler + link, parts.seconds), behind, shares)
    return Cores(share, average, average, {}, shares)


def _by_rank(records: Records) -> tuple[dict[int, float], dict[int, float]]:
    """Returns, by rank, the busy seconds of a step and the share of the needed CPU time that the rank got."""
    windows = records.windows
    seconds = np.sum([windows[phase] for phase in BUSY_PHASES], axis=0)
    steps = windows["last_step"] - windows["first_step"] + 1
    known = np.isfinite(windows["rank"]) & np.isfinite(windows["queued"]) & (windows["cpu"] > 0)
    known &= np.isfinite(seconds) & (steps > 0)
    kept, busy, shares = _not_stolen(records), {}, {}
    for rank in np.unique(windows["rank"][known]).astype(int).tolist():
        mine = known & (windows["rank"] == rank)
        ran, queued = (float(windows[name][mine].sum()) for name in ("cpu", "queued"))
        busy[rank] = float(seconds[mine].sum() / steps[mine].sum())
        shares[rank] = kept * ran / (ran + queued)
    return busy, shares


def _mean(values: dict[int, float]) -> float:
    return sum(values.values()) / len(values)


def _not_stolen(records: Records) -> float:
    """Returns the share of the CPU time counted by a virtual machine's kernel in which it really ran."""
    stolen, used = mean(records.hosts["stolen_share"]), mean(records.hosts["cpu_share"])
    return 1.0 if not stolen or not used else 1 - stolen / max(used, stolen)


def programs(records: Records) -> list[CoreUser]:
    """Returns the busiest other programs, from all samples of a host while ranks waited there."""
    table, facts = records.programs, records.facts
    users = []
    for number in np.unique(table["host"][np.isfinite(table["host"])]):
        mine = (table["host"] == number) & np.isfinite(table["cores"]) & (table["span"] > 0)
        samples = {time: span for time, span in zip(table["time"][mine], table["span"][mine], strict=True)}
        host = facts.hosts[int(number)] if 0 <= number < len(facts.hosts) and len(facts.hosts) > 1 else None
        for name in np.unique(table["name"][mine]):
            its = mine & (table["name"] == name)
            used = float((table["cores"][its] * table["span"][its]).sum() / sum(samples.values()))
            users.append(CoreUser(str(name), used, host))
    users = [program for program in users if program.cores >= WORTH_SAYING]
    return sorted(users, key=lambda program: -program.cores)[:NAMED]


def cause(records: Records) -> str:
    """Says what kept the ranks from their cores, or what may have if nothing was recorded."""
    causes = [
        f"{program.name} used {program.cores:.2g} cores" + (f" of {program.host}" if program.host else "")
        for program in programs(records)
    ]
    stolen, limited = mean(records.hosts["stolen_share"]), mean(records.hosts["throttled_share"])
    if limited and limited >= WORTH_SAYING:
        causes.append(
            f"the CPU limit of their group held them back {format_units.share(limited)} of the time"
        )
    if stolen and stolen >= WORTH_SAYING:
        causes.append(f"the virtual machine's host gave {format_units.share(stolen)} of the cores to others")
    if causes:
        return format_units.listed(causes)
    ranks, count = len(records.facts.rank_hosts), _cores_per_host(records)
    if count and len(set(records.facts.rank_hosts)) == 1 and ranks > count:
        return f"{ranks} ranks share {count} core{'s' * (count > 1)}"
    return "perhaps a CPU limit, more threads than cores or another container, as no other program was seen"


def numbers(records: Records, parts: StepParts, core_use: Cores | None) -> dict[str, object]:
    """Returns the numbers of a finding about cores; empty if nothing was counted."""
    if core_use is None:
        return {}
    named: dict[str, object] = {
        "cpu_share": core_use.share,
        "cpu_wait_share": core_use.waited / parts.seconds,
    }
    if others := programs(records):
        named["programs"] = [
            {"name": program.name, "cores": program.cores} | ({"host": program.host} if program.host else {})
            for program in others
        ]
    for name in ("stolen_share", "throttled_share"):
        if value := mean(records.hosts[name]):
            named[name] = value
    return named


def _cores_per_host(records: Records) -> int:
    packed = records.hosts["core_shares"]
    return max((len(core_shares(str(row))) for row in packed[-1:]), default=0)
