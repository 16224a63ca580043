"""Finds an address of the first host at which all other hosts can reach it, by trying its addresses.

Names and addresses alone prove nothing: a host name may resolve to loopback on its own machine and to nothing
on others, and the same virtual network may exist on every host. So the first host listens, the others connect
to its addresses, and an address counts only if it answers with this listener's password.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

from dragoman.launch.hosts import own_addresses

_ANSWER_SECONDS = 3.0
_FIRST_JOB_PORT, _JOB_PORTS = 20_000, 10_000  # below the kernel's ports for outgoing connections
_listener: socket.socket | None = None


def listen_for_hosts() -> dict[str, object]:
    """Listens at a free port until `stop_listening`; returns the port, a password and our addresses."""
    global _listener
    stop_listening()
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    _listener = socket.create_server(
        ("", 0), family=family, backlog=128, dualstack_ipv6=family == socket.AF_INET6
    )
    password = secrets.token_hex(8)
    threading.Thread(target=_send_password, args=(_listener, password), daemon=True).start()
    addresses = [str(address) for address in own_addresses()]
    return {"port": _listener.getsockname()[1], "password": password, "addresses": addresses}


def stop_listening() -> None:
    """Frees the port, so that the ranks can meet there."""
    global _listener
    if _listener:
        _listener.shutdown(socket.SHUT_RDWR)  # otherwise the thread waiting in accept would keep the port
        _listener.close()
        _listener = None


def reachable_addresses(names: Sequence[str], port: int, password: str) -> list[str]:
    """The addresses of these names at which this host reaches the listener, in the order of the names."""
    addresses: list[str] = []
    for name in names:
        # OSError: the name does not resolve here, or nothing listens or answers there
        with suppress(OSError), socket.create_connection((name, port), timeout=_ANSWER_SECONDS) as connection:
            if connection.recv(100).decode(errors="replace") == password:
                addresses.append(str(connection.getpeername()[0]))
    return list(dict.fromkeys(addresses))


def port_of_job(number: int) -> str:
    """The port that all ranks of a job derive from its number, as none can tell the others a free one."""
    return str(_FIRST_JOB_PORT + number % _JOB_PORTS)


def _send_password(listener: socket.socket, password: str) -> None:
    with suppress(OSError):  # raised once the listener is closed
        while True:
            connection, _ = listener.accept()
            with suppress(OSError), connection:
                connection.settimeout(_ANSWER_SECONDS)
                connection.sendall(password.encode())
                connection.recv(1)  # lets the caller close first, so that our port is free at once
