"""By which interface this machine reaches an address: asked of the kernel, not guessed from names."""

from __future__ import annotations

import socket

import psutil


def own_address_towards(address: str) -> str:
    """The kernel's choice of source address; connecting a UDP socket sends nothing."""
    family = socket.getaddrinfo(address, 9, type=socket.SOCK_DGRAM)[0][0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return str(probe.getsockname()[0])


def interface_towards(address: str) -> str:
    """The interface that holds that source address, or nothing."""
    own = own_address_towards(address)
    for name, addresses in psutil.net_if_addrs().items():
        if any(entry.address.split("%")[0] == own for entry in addresses):
            return name
    return ""
