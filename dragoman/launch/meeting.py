"""Where ranks meet: an address of the first host that the other hosts really reach, found by knocking.

A host name may resolve to loopback on its own machine and to nothing on others, and an address of a
virtual network exists on every host, so none is believed: the first host opens a door, the others try its
addresses, and whoever opens must know the password of this door.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

from dragoman.launch.hosts import own_addresses

_ANSWER_SECONDS = 3.0
_FIRST_JOB_PORT, _JOB_PORTS = 20_000, 10_000  # below those that the kernel gives to outgoing connections
_door: socket.socket | None = None


def open_door() -> dict[str, object]:
    """Listens at a free port of this host until `close_door`; where, and the password."""
    global _door
    close_door()
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    _door = socket.create_server(
        ("", 0), family=family, backlog=128, dualstack_ipv6=family == socket.AF_INET6
    )
    password = secrets.token_hex(8)
    threading.Thread(target=_answer, args=(_door, password), daemon=True).start()
    addresses = [str(address) for address in own_addresses()]
    return {"port": _door.getsockname()[1], "password": password, "addresses": addresses}


def close_door() -> None:
    """The port is free again: the ranks meet there."""
    global _door
    if _door:
        _door.shutdown(socket.SHUT_RDWR)  # else the thread that waits in accept would keep the port
        _door.close()
        _door = None


def knock(names: Sequence[str], port: int, password: str) -> list[str]:
    """The addresses of these names at which that door is reached from here, in their order."""
    found: list[str] = []
    for name in names:
        # no such name here, or nobody there, or nobody who answers
        with suppress(OSError), socket.create_connection((name, port), timeout=_ANSWER_SECONDS) as connection:
            if connection.recv(100).decode(errors="replace") == password:
                found.append(str(connection.getpeername()[0]))
    return list(dict.fromkeys(found))


def port_of_job(number: int) -> str:
    """Where no rank can tell the others of a free port, all derive the same one from their job's number."""
    return str(_FIRST_JOB_PORT + number % _JOB_PORTS)


def _answer(door: socket.socket, password: str) -> None:
    with suppress(OSError):  # closed
        while True:
            connection, _ = door.accept()
            with suppress(OSError), connection:
                connection.settimeout(_ANSWER_SECONDS)
                connection.sendall(password.encode())
                connection.recv(1)  # the caller hangs up first: the port is then free at once
