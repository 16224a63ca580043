"""A stranger who reaches the ports of a run: `python -m tests.launch.stranger look|join ADDRESS:PORT ...`.

`look` prints what each store among these ports holds, as JSON: names and values. `join` takes the place of
rank 1 with the key that it finds in the store there, and prints what rank 0 broadcasts. `await ADDRESS` is
its victim: a rank 0 that prints where it listens, and then broadcasts `STATE` to the first who joins.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import torch.distributed as dist

from dragoman.sync import world as worlds
from dragoman.sync.failures import LostRank
from dragoman.sync.route import listen_at
from dragoman.sync.world import RankPlace

SECONDS = 3.0  # for a store to answer; torch would wait for ever where none listens
JOIN_SECONDS = 8
STATE = b"the weights"


def store_at(place: str) -> dist.TCPStore:
    address, _, port = place.rpartition(":")
    return dist.TCPStore(
        address, int(port), timeout=timedelta(seconds=SECONDS), is_master=False, wait_for_workers=False
    )


def within(seconds: float, work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)


def look(place: str, found: dict[str, dict[str, str]]) -> None:
    with suppress(RuntimeError):  # nothing listens there any more, or it is no store
        store = store_at(place)
        values = {}
        for name in store.list_keys():
            with suppress(RuntimeError):
                values[name] = store.get(name.removeprefix("/")).decode("latin-1")
        found[place] = values


def key_at(place: str) -> str:
    """The secret with which all names of this world begin, as its store lists them."""
    address, _, port = place.rpartition(":")
    # as a rank would: rank 0 writes nothing until as many as it waits for have connected
    store = dist.TCPStore(address, int(port), 2, is_master=False, timeout=timedelta(seconds=JOIN_SECONDS))
    deadline = time.monotonic() + JOIN_SECONDS
    while time.monotonic() < deadline:
        for name in store.list_keys():
            if "/dragoman/" in name:
                return name.partition("/dragoman/")[0]
        time.sleep(0.05)
    return ""


def join(place: str) -> None:
    address, _, port = place.rpartition(":")
    stranger = RankPlace(1, 2, 1, 2, address, int(port), key=key_at(place))
    with worlds.join(JOIN_SECONDS, stranger) as world:
        world.gather_text("0" * 64)  # as long as a proof
        print(world.broadcast_bytes(b"").decode("latin-1"), flush=True)


def await_rank_1(address: str) -> None:
    listener = listen_at(address, 0)
    port = listener.getsockname()[1]
    print(f"{address}:{port}", flush=True)
    place = RankPlace(
        rank=0,
        size=2,
        local_rank=0,
        local_size=2,
        address=address,
        port=port,
        listener=listener.detach(),
        key=secrets.token_hex(16),
        secret=secrets.token_hex(32),
    )
    with suppress(LostRank), worlds.join(2 * JOIN_SECONDS, place) as world:
        world.broadcast_bytes(STATE)


def main(what: str, *places: str) -> None:
    if what == "look":
        found: dict[str, dict[str, str]] = {}
        for place in places:
            within(SECONDS, lambda place=place: look(place, found))  # type: ignore[misc]
        print(json.dumps(found), flush=True)
    else:
        work = {"join": join, "await": await_rank_1}[what]
        within(2 * JOIN_SECONDS, lambda: work(places[0]))
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
