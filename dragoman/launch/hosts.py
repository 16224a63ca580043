"""Parses `--hosts a:2,b:2`: the machines of a run, and how many ranks each one gets."""

from __future__ import annotations

import getpass
import ipaddress
import re
import socket
from dataclasses import dataclass

import psutil

from dragoman.bounds import MOST_RANKS
from dragoman.errors import UsageError

# Allows nothing that ssh could take for an option, or a shell for a command. [..] is an IPv6 address.
_HOST = re.compile(
    r"(?P<user>[A-Za-z0-9_][\w.-]*@)?(?:(?P<name>[A-Za-z0-9_][\w.-]*)|\[(?P<v6>[0-9A-Fa-f:.]+)\])(?::(?P<workers>.*))?"
)
_EXAMPLE = "for example --hosts a:2,b:2 (host:ranks) or --hosts 10.0.0.1,ann@10.0.0.2"


@dataclass(frozen=True)
class Host:
    """A machine and its number of ranks."""

    name: str  # as given to ssh: a, ann@a, 10.0.0.1
    workers: int = 1

    @property
    def machine(self) -> str:
        """The name without the user."""
        return self.name.rpartition("@")[2]


def parse(text: str) -> list[Host]:
    """`a:2,b` as Host(a, 2), Host(b, 1). The first host gets rank 0."""
    hosts = [_parse_one(word.strip(), text) for word in text.split(",")]
    machines = [host.machine for host in hosts]
    for machine in machines:
        if machines.count(machine) > 1:
            raise UsageError(
                f"--hosts {text}: {machine} is named twice",
                hint=f"name it once, with all its ranks: {machine}:2",
            )
    return hosts


def _parse_one(word: str, text: str) -> Host:
    match = _HOST.fullmatch(word)
    if not match:
        raise UsageError(f"--hosts {text}: {word!r} is not a valid host", hint=_EXAMPLE)
    workers = match["workers"] if match["workers"] is not None else "1"
    if not re.fullmatch(r"[0-9]{1,5}", workers) or not 1 <= int(workers) <= MOST_RANKS:
        brackets = f"; write an IPv6 address in brackets: [{word}]" if word.count(":") > 1 else ""
        raise UsageError(
            f"--hosts {text}: {workers!r} is not a number of ranks from 1 to {MOST_RANKS}",
            hint=f"{_EXAMPLE}{brackets}",
        )
    return Host(f"{match['user'] or ''}{match['name'] or match['v6']}", int(workers))


def is_this_machine(name: str) -> bool:
    """Whether this host is this machine and needs no ssh.

    A name that only ssh's own configuration knows counts as another machine.
    """
    user, _, machine = name.rpartition("@")
    if user and user != getpass.getuser():
        return False
    if machine in ("localhost", socket.gethostname()):
        return True
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(machine, None)}
    except OSError:
        return False
    own = {str(address) for address in own_addresses()}
    return all(ipaddress.ip_address(address).is_loopback or address in own for address in addresses)


def own_addresses() -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The addresses at which other machines may reach this one: IPv4 first, in the order of interfaces."""
    entries = [entry for entries in psutil.net_if_addrs().values() for entry in entries]
    families = (socket.AF_INET, socket.AF_INET6)
    texts = [entry.address for family in families for entry in entries if entry.family == family]
    addresses = [ipaddress.ip_address(text.split("%")[0]) for text in texts]
    return [address for address in addresses if not address.is_loopback and not address.is_link_local]
