"""At which addresses processes listen, also those in network namespaces of their own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_LISTENING = "0A"  # TCP_LISTEN in the fourth column of /proc/PID/net/tcp
_WORD = 4  # the kernel prints an address in words of this machine's byte order


def listening(pids: Iterable[int]) -> set[tuple[str, int]]:
    """Address and port of every listening TCP socket that one of these processes holds."""
    found = set()
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            inodes = _sockets(pid)
            for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
                for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                    columns = line.split()
                    if columns[3] == _LISTENING and columns[9] in inodes:
                        found.add(_address(columns[1], family))
    return found


def _sockets(pid: int) -> set[str]:
    """Their inode numbers."""
    inodes = set()
    for descriptor in os.scandir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            kind, _, number = os.readlink(descriptor.path).partition(":")
            if kind == "socket":
                inodes.add(number.strip("[]"))
    return inodes


def _address(text: str, family: socket.AddressFamily) -> tuple[str, int]:
    """0100007F:1F90 is 127.0.0.1, port 8080."""
    address, _, port = text.partition(":")
    raw = bytes.fromhex(address)
    swapped = b"".join(raw[place : place + _WORD][::-1] for place in range(0, len(raw), _WORD))
    return socket.inet_ntop(family, swapped), int(port, 16)
