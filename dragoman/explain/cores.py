"""Did the ranks get the cores that they wanted, and who got them instead?

The threads of a rank tell how long they ran in a step and how long they were ready to run and did not.
Computing that waits for a core looks like computing to every clock: here it is taken apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman import format_units
from dragoman.explain.step_breakdown import StepParts, mean
from dragoman.explain.straggler import host_of
from dragoman.measure.records import Records, core_shares

BUSY_PHASES = ("forward", "backward", "optimizer")  # in which a rank wants its cores
WORTH_SAYING = 0.05  # of the time: below that it is the scheduler's own
NAMED = 3


@dataclass(frozen=True)
class CoreUser:
    name: str
    cores: float  # that it used while ranks waited for one, on average
    host: str | None = None


@dataclass(frozen=True)
class Cores:
    share: float  # of the CPU time that the ranks wanted, what they got
    waited: float  # seconds of a step in which computing waited for a core, mean over ranks
    lost: (
        float  # seconds by which a step would be shorter if all ranks had got theirs, whoever waited for whom
    )
    behind: dict[str, float]  # of it, what was counted as another wait: seconds by verdict
    ranks: dict[int, float]  # the share of each


def cores(records: Records, parts: StepParts) -> Cores | None:
    """None where nobody counted."""
    busy, shares = _by_rank(records)
    if not shares:
        return None
    waited = {rank: busy[rank] * (1 - shares[rank]) for rank in shares}
    share, average = _mean(shares), min(_mean(waited), parts.computing or 0.0)
    hosts = {rank: host_of(records, rank) for rank in shares}
    if len(set(hosts.values())) > 1:
        # What the host loses that loses least; that others lose more makes their ranks the slow ones.
        least = min(_mean({r: waited[r] for r in waited if hosts[r] == host}) for host in hosts.values())
        return Cores(share, average, min(least, average), {}, shares)
    if average >= WORTH_SAYING * parts.seconds:
        # On one machine now this rank and now that one has no core: the others wait for it, and their
        # exchange needs cores as well. Only what a rank computes longer by nature is a slow rank's.
        left = {rank: busy[rank] - waited[rank] for rank in busy}
        straggler = max(0.0, (parts.straggler or 0.0) - (max(left.values()) - _mean(left)))
        link = (1 - share) * (parts.link or 0.0)
        others = max(1, len(left) - 1)  # the slow rank does not wait: the mean of the others' waiting is more
        behind = {"waiting_straggler": straggler * len(left) / others, "waiting_network": link}
        return Cores(share, average, min(average + straggler + link, parts.seconds), behind, shares)
    return Cores(share, average, average, {}, shares)


def _by_rank(records: Records) -> tuple[dict[int, float], dict[int, float]]:
    """Busy seconds of a step, and the share of the wanted CPU time that was got, of each rank."""
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
    """Of the time that the kernel counts as run, the part in which a virtual machine really ran."""
    stolen, used = mean(records.hosts["stolen_share"]), mean(records.hosts["cpu_share"])
    return 1.0 if not stolen or not used else 1 - stolen / max(used, stolen)


def programs(records: Records) -> list[CoreUser]:
    """The busiest others, over all looks at a host while ranks waited there."""
    table, facts = records.programs, records.facts
    found = []
    for number in np.unique(table["host"][np.isfinite(table["host"])]):
        mine = (table["host"] == number) & np.isfinite(table["cores"]) & (table["span"] > 0)
        looks = {time: span for time, span in zip(table["time"][mine], table["span"][mine], strict=True)}
        host = facts.hosts[int(number)] if 0 <= number < len(facts.hosts) and len(facts.hosts) > 1 else None
        for name in np.unique(table["name"][mine]):
            its = mine & (table["name"] == name)
            used = float((table["cores"][its] * table["span"][its]).sum() / sum(looks.values()))
            found.append(CoreUser(str(name), used, host))
    found = [program for program in found if program.cores >= WORTH_SAYING]
    return sorted(found, key=lambda program: -program.cores)[:NAMED]


def who(records: Records) -> str:
    """What had the cores instead, in words; what can be said where nothing was seen."""
    said = [
        f"{program.name} used {program.cores:.2g} cores" + (f" of {program.host}" if program.host else "")
        for program in programs(records)
    ]
    stolen, limited = mean(records.hosts["stolen_share"]), mean(records.hosts["throttled_share"])
    if limited and limited >= WORTH_SAYING:
        said.append(f"a limit on their group's CPU held them back {format_units.share(limited)} of the time")
    if stolen and stolen >= WORTH_SAYING:
        said.append(f"the virtual machine's host kept {format_units.share(stolen)} of the cores for others")
    if said:
        return format_units.listed(said)
    ranks, count = len(records.facts.rank_hosts), _cores_per_host(records)
    if count and len(set(records.facts.rank_hosts)) == 1 and ranks > count:
        return f"{ranks} ranks share {count} core{'s' * (count > 1)}"
    return "no other program was seen: a limit on their CPU, more threads than cores, or another container"


def numbers(records: Records, parts: StepParts, found: Cores | None) -> dict[str, object]:
    if found is None:
        return {}
    named: dict[str, object] = {"cpu_share": found.share, "cpu_wait_share": found.waited / parts.seconds}
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
