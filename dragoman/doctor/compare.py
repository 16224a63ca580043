"""Do the hosts agree where they must? Pure functions from their facts to checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dragoman import format_units
from dragoman.doctor.check import ALL, Check
from dragoman.doctor.facts import HostFacts, is_local

_CLOCK_SECONDS = 1.0  # records are matched by the second
_FINGERPRINT = 16  # characters shown


def versions(hosts: Sequence[HostFacts]) -> list[Check]:
    """Do all hosts have the same Python, torch and Dragoman?"""
    checks = []
    for package in ("python", "torch", "dragoman"):
        installed = [host.versions[package] for host in hosts]
        usual, others = _usual(installed)
        if not others:
            checks.append(Check(package, _everywhere(hosts), "ok", usual))
        for place in others:
            is_small = package == "python" and _minor(installed[place]) == _minor(usual)
            checks.append(
                Check(
                    package,
                    hosts[place].name,
                    "warning" if is_small else "error",
                    f"{installed[place]}; {hosts[installed.index(usual)].name} has {usual}",
                    f"install the same {package} on every host",
                )
            )
    return checks


def data(hosts: Sequence[HostFacts]) -> list[Check]:
    """Is the data set the same everywhere, by its fingerprint?"""
    checks = []
    sound: list[tuple[HostFacts, str]] = []
    for host in hosts:
        if host.data and host.data.fingerprint is not None:
            sound.append((host, host.data.fingerprint[:_FINGERPRINT]))
        elif host.data:
            checks.append(Check("data", host.name, "error", host.data.problem, _copy(hosts, host.data.hint)))
    if not sound:
        return checks
    fingerprints = [fingerprint for _, fingerprint in sound]
    usual, others = _usual(fingerprints)
    if not others:
        where = _everywhere(hosts) if len(sound) == len(hosts) else ", ".join(host.name for host, _ in sound)
        checks.append(Check("data", where, "ok", f"fingerprint {usual}"))
    for place in others:
        host_with_usual = sound[fingerprints.index(usual)][0].name
        value = f"fingerprint {fingerprints[place]}; {host_with_usual} has {usual}"
        checks.append(Check("data", sound[place][0].name, "error", value, _copy(hosts, "")))
    return checks


def names(hosts: Sequence[HostFacts]) -> list[Check]:
    """Does each host have its own name, and does it resolve to something other than loopback?"""
    if len(hosts) == 1:
        return []
    checks = []
    for name, count in Counter(host.name for host in hosts).items():
        if count > 1:
            advice = "give each machine its own name: hostnamectl set-hostname NAME"
            checks.append(Check("host name", name, "error", f"{count} machines have this name", advice))
    return [*checks, *map(_own_name, hosts)]


def clocks(hosts: Sequence[HostFacts]) -> list[Check]:
    """Does each clock agree with the first host's? The error of reading it does not count."""
    checks = []
    for host in hosts[1:]:
        if (offset := host.clock_offset_seconds) is None:
            continue
        if abs(offset) - host.clock_error_seconds < _CLOCK_SECONDS:
            within = format_units.seconds(max(abs(offset) + host.clock_error_seconds, 1e-4))
            checks.append(Check("clock", host.name, "ok", f"within {within} of {hosts[0].name}"))
        else:
            side = "ahead of" if offset > 0 else "behind"
            value = f"{format_units.seconds(abs(offset))} {side} {hosts[0].name}"
            advice = "set it over the network (timedatectl set-ntp true): records are matched by time"
            checks.append(Check("clock", host.name, "warning", value, advice))
    return checks


def interfaces(hosts: Sequence[HostFacts]) -> list[Check]:
    """The interface that carries gradients on each host, and the others."""
    return [Check("interface", host.name, "ok", _interface(host)) for host in hosts]


def peer_names(hosts: Sequence[HostFacts], resolved: Sequence[dict[str, list[str]]]) -> list[Check]:
    """Does each host resolve the others' names correctly? `resolved[i]` holds what host i resolves them to.

    Ranks connect by address, so a name that does not resolve matters only to those who use it. A name that
    resolves to loopback silently leads to the wrong machine.
    """
    checks = []
    for here, view in zip(hosts, resolved, strict=True):
        for other in hosts:
            addresses = view.get(other.name, [])
            if other is here or other.name == here.name:
                continue
            advice = f"write '{_address(other)} {other.name}' into /etc/hosts of {here.name}"
            if any(map(is_local, addresses)):
                value = f"{other.name} resolves to {addresses[0]} there"
                checks.append(Check("host name", here.name, "error", value, advice))
            elif addresses and other.addresses and not set(addresses) & set(other.addresses):
                value = f"{other.name} resolves to {addresses[0]} there, which is not one of its addresses"
                checks.append(Check("host name", here.name, "warning", value, advice))
    return checks


def _own_name(host: HostFacts) -> Check:
    addresses = host.own_name_addresses
    if addresses and not any(map(is_local, addresses)):
        return Check("host name", host.name, "ok", f"resolves to {', '.join(addresses)}")
    advice = f"in /etc/hosts of {host.name} write '{_address(host)} {host.name}'"
    if not addresses:
        return Check("host name", host.name, "warning", "does not resolve on its own host", advice)
    # Debian's installer leaves it so. We use addresses; torchrun --master-addr NAME would wait forever.
    value = f"resolves to {addresses[0]} on its own host: others cannot reach it there"
    return Check("host name", host.name, "warning", value, f"{advice} instead of {addresses[0]}")


def _interface(host: HostFacts) -> str:
    up = {each.name: f"{each.name} ({', '.join(each.addresses)})" for each in host.interfaces if each.is_up}
    if not host.interface:
        return f"up: {', '.join(up.values()) or 'none'}"
    used = up.pop(host.interface, host.interface)
    return f"{used}; not used: {', '.join(up.values())}" if up else used


def _usual(values: Sequence[str]) -> tuple[str, list[int]]:
    """The most common value (the first in a tie), and the places of all others."""
    usual = Counter(values).most_common(1)[0][0]
    return usual, [place for place, value in enumerate(values) if value != usual]


def _everywhere(hosts: Sequence[HostFacts]) -> str:
    return ALL if len(hosts) > 1 else hosts[0].name


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _copy(hosts: Sequence[HostFacts], hint: str) -> str:
    return "copy the same data set to every host: dragoman launch copy" if len(hosts) > 1 else hint


def _address(host: HostFacts) -> str:
    return next(iter(host.addresses), "ADDRESS")
