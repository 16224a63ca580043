"""Addresses of this machine: which one leads to another machine, and a socket that listens there alone.

Asked of the kernel, not guessed from names.
"""

from __future__ import annotations

import socket

import psutil

from dragoman.errors import DragomanError

LISTENER = "DRAGOMAN_LISTENER"  # environment of rank 0: the descriptor of a socket from `listen_at`
_BACKLOG = 1024  # ranks that may connect at once


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


def listen_at(address: str, port: int) -> socket.socket:
    """A socket that listens at this address of this machine and at no other; port 0 takes any free one."""
    try:
        family, kind, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((address, where[1]), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise DragomanError(
            f"rank 0 cannot listen at {address}:{port} ({error.strerror})",
            hint="ranks meet at an address of rank 0's own machine, at a port that is free there",
        ) from None
