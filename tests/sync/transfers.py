"""What the tests of transfers run as one of three ranks: `python -m tests.sync.transfers FOLDER WHAT...`."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman import atomic
from dragoman.errors import DataError, DragomanError
from dragoman.sync import transfer
from dragoman.sync import world as worlds
from dragoman.sync.failures import explained
from dragoman.sync.transfer import Chain
from dragoman.sync.world import World

BYTES = 9_000_001  # three chunks, the last one not full
SMALL_CHUNK = 1000


def content(length: int) -> bytes:
    return (bytes(range(251)) * (length // 251 + 1))[:length]


def sending(world: World, folder: Path) -> None:
    """From rank 1 to rank 2 and on to rank 0."""
    own = folder / str(world.rank) / "sent"
    if world.rank == 1:
        own.mkdir(parents=True)
        (own / "large").write_bytes(content(BYTES))
        (own / "empty").write_bytes(b"")
    assert Chain(world, 1, [2, 0]).folder(own, lambda arrived: None) == BYTES


def sending_past_one(world: World, folder: Path) -> None:
    """From rank 0 to rank 1, in so many chunks that rank 2 is asked in between."""
    transfer._CHUNK_BYTES = SMALL_CHUNK
    own = folder / str(world.rank)
    own.mkdir(parents=True)
    if world.rank == 0:
        (own / "file").write_bytes(content(100 * SMALL_CHUNK))
    if world.rank == 1:
        (folder / "another's").write_text("untouched")
        (own / f"file{atomic.UNFINISHED}").symlink_to(folder / "another's")
    assert Chain(world, 0, [1]).files(own, ["file"]) == 100 * SMALL_CHUNK


def arriving_damaged(world: World, folder: Path) -> None:
    own = folder / str(world.rank) / "sent"
    if world.rank == 0:
        own.mkdir(parents=True)
        (own / "file").write_bytes(content(10))

    def refuse(arrived: Path) -> None:
        raise DataError("not what was sent", path=arrived)

    Chain(world, 0, [1, 2]).folder(own, refuse)


def without_room(world: World, folder: Path) -> None:
    """Rank 1 is in the middle of the row and cannot write; rank 2 waits for what it passes on."""
    transfer._CHUNK_BYTES = SMALL_CHUNK
    own = folder / str(world.rank)
    own.mkdir(parents=True)
    if world.rank == 0:
        (own / "file").write_bytes(content(100 * SMALL_CHUNK))
    to = Path("/dev/full") if world.rank == 1 else own / "file"
    Chain(world, 0, [1, 2]).file(own / "file", to)


def owners(world: World, folder: Path) -> None:
    """Ranks 0 and 2 see one folder, each under its own name."""
    (folder / "shared").mkdir(parents=True, exist_ok=True)
    if world.rank == 0:
        (folder / "link").symlink_to("shared")
    world.sum([0.0])  # collective: the link is there
    names = [folder / "shared", folder / "apart", folder / "link"]
    found = transfer.owners(world, [0, 1, 2], names[world.rank])
    (folder / f"found-{world.rank}").write_text(str(found))


if __name__ == "__main__":
    try:
        with explained(), worlds.join(60) as world:
            for what in sys.argv[2:]:
                globals()[what](world, Path(sys.argv[1]) / what)
    except (DragomanError, OSError) as error:
        print(f"error: {error}\n", end="", file=sys.stderr, flush=True)
        sys.exit(1)
