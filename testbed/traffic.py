"""Another program's traffic: bytes over TCP from one host to another, at a rate or as fast as possible.

python traffic.py receive PORT
python traffic.py send HOST PORT [BYTES_PER_SECOND]
"""

from __future__ import annotations

import socket
import sys
import time

_PIECE_BYTES = 16_384


def main() -> None:
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        _send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]) if sys.argv[4:] else None)


def receive(port: int) -> None:
    """Read and discard what one connection sends."""
    with socket.create_server(("", port)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
        with connection:
            while connection.recv(1 << 20):
                pass


def _send(host: str, port: int, bytes_per_second: float | None) -> None:
    piece = bytes(_PIECE_BYTES)
    with socket.create_connection((host, port)) as connection:
        print("ready", flush=True)
        due = time.monotonic()
        while True:
            connection.sendall(piece)
            if bytes_per_second:
                # Delays on the link are not made up for later: this is a rate, not an average.
                due = max(due, time.monotonic() - 0.1) + _PIECE_BYTES / bytes_per_second
                time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main()
