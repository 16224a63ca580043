"""Scenarios that nobody wrote: two causes at random rates, and what the report must say of them.

The bench removes each cause in turns and measures what that saves, so the largest cause is known afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from benchmarks.causes import Setting
from benchmarks.ratios import Speed
from benchmarks.scenarios import DATA, EXPOSED, MISMATCH, STRAGGLER, Scenario, Share
from benchmarks.trainings import Outcome

CLEARLY = 1.3  # times the next cause, and more than half of what is not computing: the report must name it
LARGE, SMALL = 0.45, 0.1  # shares of a step
BOTTLENECK, NO_BOTTLENECK = 0.3, 0.05  # of a step: 1.4 x and 1.05 x faster without the exchange


@dataclass(frozen=True)
class Cause:
    """A hindrance of two hosts with one core each."""

    words: str
    verdict: str  # of device_utilisation
    share: Share
    setting: Callable[[float, Speed], Mapping[str, Any]]
    least: float  # of its ratio, which is drawn evenly on a logarithmic scale
    most: float


CAUSES = {
    "rate": Cause(
        "a link on which the exchange takes {:.2g} x the computing",
        "waiting_network",
        EXPOSED,
        lambda ratio, speed: {"rate": speed.rate(ratio)},
        least=0.2,
        most=5,
    ),
    "slow-reader": Cause(
        "reading takes {:.2g} x the computing",
        "waiting_data",
        DATA,
        lambda ratio, speed: {"hindrances": (speed.reader(ratio),)},
        least=0.1,
        most=3,
    ),
    "slow_host": Cause(
        "h1 has {:.2g} of a core",
        "waiting_straggler",
        STRAGGLER,
        lambda ratio, speed: {"slow_host": round(ratio, 2)},
        least=0.3,
        most=0.85,
    ),
}


def mixes(count: int, seed: int) -> dict[str, Scenario]:
    """This many scenarios, the same for the same seed."""
    return {f"mix-{seed}-{number}": _mix(Random(f"{seed} {number}")) for number in range(count)}


def _mix(random: Random) -> Scenario:
    chosen = random.sample(sorted(CAUSES), 2)
    ratios = {
        name: CAUSES[name].least * (CAUSES[name].most / CAUSES[name].least) ** random.random()
        for name in chosen
    }
    wire = random.choice(("fp32", "bf16"))
    words = ", ".join(CAUSES[name].words.format(ratio) for name, ratio in ratios.items())

    def where(speed: Speed) -> Setting:
        changes = {
            key: value for name in chosen for key, value in CAUSES[name].setting(ratios[name], speed).items()
        }
        return Setting(hosts=2, **changes, reliefs=3 * tuple(chosen))

    return Scenario(
        f"{words}; {wire}",
        {"network": "", "device_utilisation": ""},
        where,
        lambda speed: (f"sync.wire={wire}",),
        lacks=MISMATCH,
        shares={name: CAUSES[name].share for name in chosen},
        also=partial(misjudged, causes={name: CAUSES[name].verdict for name in chosen}),
    )


def misjudged(outcome: Outcome, causes: Mapping[str, str]) -> str:
    """What is wrong with the verdicts, by what the removal of each cause saved; else nothing."""
    saved = outcome.saved
    first, second = sorted(causes, key=lambda name: -saved[name])
    found = outcome.findings["device_utilisation"].verdict
    if saved[first] > LARGE and saved[first] > CLEARLY * saved[second] and found != causes[first]:
        return f"device_utilisation is {found}, not {causes[first]}"
    if saved[first] < SMALL and found != "computing":
        return f"device_utilisation is {found}, not computing"
    found, by_link = outcome.findings["network"].verdict, saved.get("rate", 0.0)
    if by_link > BOTTLENECK and found != "bottleneck":
        return f"network is {found}, not bottleneck"
    if by_link < NO_BOTTLENECK and found == "bottleneck":
        return f"network is {found}"
    return ""
