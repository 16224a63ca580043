"""This machine's address and interface towards another machine, and a socket that listens at one address.

The kernel gives the answers; nothing is guessed from names.
"""

from __future__ import annotations

import socket

import psutil

from dragoman.errors import DragomanError

LISTENER = "DRAGOMAN_LISTENER"  # environment of rank 0: the descriptor of a socket from `listen_at`
_BACKLOG = 1024  # ranks that may connect at once


def own_address_towards(address: str) -> str:
    """The source address that the kernel would use; connecting a UDP socket sends nothing."""
    family = socket.getaddrinfo(address, 9, type=socket.SOCK_DGRAM)[0][0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return str(probe.getsockname()[0])


def interface_towards(address: str) -> str:
    """The name of the interface with that source address, or an empty string."""
    source = own_address_towards(address)
    for name, addresses in psutil.net_if_addrs().items():
        if any(entry.address.split("%")[0] == source for entry in addresses):
            return name
    return ""


def listen_at(address: str, port: int) -> socket.socket:
    """A socket that listens at this address of this machine and no other; port 0 takes any free port."""
    try:
        family, kind, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((address, where[1]), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise DragomanError(
            f"rank 0 cannot listen at {address}:{port} ({error.strerror})",
            hint="give an address of rank 0's own machine and a port that is free there",
        ) from None
