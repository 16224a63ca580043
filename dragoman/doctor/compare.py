"""Are the hosts alike where they must be? Pure functions from their facts to checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dragoman import format_units
from dragoman.doctor.check import ALL, Check
from dragoman.doctor.facts import HostFacts, is_local

_CLOCK_SECONDS = 1.0  # records are kept by the second
_FINGERPRINT = 16  # characters that are shown


def versions(hosts: Sequence[HostFacts]) -> list[Check]:
    checks = []
    for package in ("python", "torch", "dragoman"):
        found = [host.versions[package] for host in hosts]
        usual, others = _usual(found)
        if not others:
            checks.append(Check(package, _everywhere(hosts), "ok", usual))
        for place in others:
            is_small = package == "python" and _minor(found[place]) == _minor(usual)
            checks.append(
                Check(
                    package,
                    hosts[place].name,
                    "warning" if is_small else "error",
                    f"{found[place]}; {hosts[found.index(usual)].name} has {usual}",
                    f"install the same {package} on every host",
                )
            )
    return checks


def data(hosts: Sequence[HostFacts]) -> list[Check]:
    """The same data set everywhere, by its fingerprint."""
    checks = []
    sound: list[tuple[HostFacts, str]] = []
    for host in hosts:
        if host.data and host.data.fingerprint is not None:
            sound.append((host, host.data.fingerprint[:_FINGERPRINT]))
        elif host.data:
            checks.append(Check("data", host.name, "error", host.data.problem, _copy(hosts, host.data.hint)))
    if not sound:
        return checks
    found = [fingerprint for _, fingerprint in sound]
    usual, others = _usual(found)
    if not others:
        where = _everywhere(hosts) if len(sound) == len(hosts) else ", ".join(host.name for host, _ in sound)
        checks.append(Check("data", where, "ok", f"fingerprint {usual}"))
    for place in others:
        value = f"fingerprint {found[place]}; {sound[found.index(usual)][0].name} has {usual}"
        checks.append(Check("data", sound[place][0].name, "error", value, _copy(hosts, "")))
    return checks


def names(hosts: Sequence[HostFacts]) -> list[Check]:
    """No two hosts have the same name, and no host's own name means loopback."""
    if len(hosts) == 1:
        return []
    checks = []
    for name, count in Counter(host.name for host in hosts).items():
        if count > 1:
            advice = "give each its own: hostnamectl set-hostname NAME"
            checks.append(Check("host name", name, "error", f"{count} machines have this name", advice))
    return [*checks, *map(_own_name, hosts)]


def clocks(hosts: Sequence[HostFacts]) -> list[Check]:
    """Against the first host's, with the time that asking took taken off."""
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
            advice = "set it by the network (timedatectl set-ntp true): records are put together by time"
            checks.append(Check("clock", host.name, "warning", value, advice))
    return checks


def interfaces(hosts: Sequence[HostFacts]) -> list[Check]:
    """The one that carries gradients, and which others there are."""
    return [Check("interface", host.name, "ok", _interface(host)) for host in hosts]


def peer_names(hosts: Sequence[HostFacts], resolved: Sequence[dict[str, list[str]]]) -> list[Check]:
    """What each host takes the others' names for: `resolved[i]` is host i's view.

    Ranks meet by address, so a name that means nothing only matters to who uses it. One that means loopback
    sends whoever uses it to the wrong machine without a word.
    """
    checks = []
    for here, view in zip(hosts, resolved, strict=True):
        for other in hosts:
            found = view.get(other.name, [])
            if other is here or other.name == here.name:
                continue
            line = f"write '{_address(other)} {other.name}' into /etc/hosts of {here.name}"
            if any(map(is_local, found)):
                value = f"{other.name} resolves to {found[0]} there"
                checks.append(Check("host name", here.name, "error", value, line))
            elif found and other.addresses and not set(found) & set(other.addresses):
                value = f"{other.name} resolves to {found[0]} there, which is none of its addresses"
                checks.append(Check("host name", here.name, "warning", value, line))
    return checks


def _own_name(host: HostFacts) -> Check:
    found = host.own_name_addresses
    if found and not any(map(is_local, found)):
        return Check("host name", host.name, "ok", f"resolves to {', '.join(found)}")
    line = f"in /etc/hosts of {host.name} write '{_address(host)} {host.name}'"
    if not found:
        return Check("host name", host.name, "warning", "does not resolve on its own host", line)
    # As Debian's installer leaves it. We go by address; torchrun --master-addr NAME would wait for ever.
    value = f"resolves to {found[0]} on its own host: others cannot reach it there"
    return Check("host name", host.name, "warning", value, f"{line} in place of {found[0]}")


def _interface(host: HostFacts) -> str:
    up = {each.name: f"{each.name} ({', '.join(each.addresses)})" for each in host.interfaces if each.is_up}
    if not host.interface:
        return f"up: {', '.join(up.values()) or 'none'}"
    used = up.pop(host.interface, host.interface)
    return f"{used}; not used: {', '.join(up.values())}" if up else used


def _usual(values: Sequence[str]) -> tuple[str, list[int]]:
    """The value that most hosts have, of equally many the first one's; and where another one stands."""
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
