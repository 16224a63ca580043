"""All checks that follow from the hosts' facts, in the order shown."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.config import Training
from dragoman.doctor import capacity, compare
from dragoman.doctor.check import Check
from dragoman.doctor.facts import HostFacts
from dragoman.plan import needs
from dragoman.plan.needs import Needs


def judge(
    hosts: Sequence[HostFacts], run_needs: Needs | None, settings: Training | None = None
) -> list[Check]:
    """Compares the hosts with each other and with the run's needs and settings."""
    return [
        *compare.versions(hosts),
        *compare.data(hosts),
        *compare.names(hosts),
        *compare.clocks(hosts),
        *compare.interfaces(hosts),
        *capacity.disk(hosts, run_needs),
        *capacity.memory(hosts, run_needs),
        *capacity.ranks(hosts),
        *capacity.gpus(hosts),
        *capacity.precision(hosts, settings.train.precision if settings else None),
        *capacity.speed(hosts),
        *capacity.cores(hosts),
    ]


def needs_of(hosts: Sequence[HostFacts], settings: Training | None) -> Needs | None:
    """What the run needs; None without a config, or if no host has the data."""
    data = next((host.data for host in hosts if host.data and host.data.fingerprint), None)
    return needs.of(settings, data.vocabulary, data.sentence_tokens) if settings and data else None
