"""A data set to other hosts: `dragoman launch copy`. Sent by rsync, believed only by its fingerprint."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from dragoman.data import store
from dragoman.data.card import Card
from dragoman.errors import DataError, DragomanError
from dragoman.launch.hosts import Host, is_this_machine
from dragoman.launch.remote import Remote


def copy(data: Path, hosts: Sequence[Host], say: Callable[[str], None]) -> None:
    """Brings a data set to the same path on the hosts. One that has it already is left alone."""
    data = data.absolute()
    if not shutil.which("rsync"):
        raise DragomanError("rsync is not installed on this machine", hint="install it here and on the hosts")
    store.DataSet(data)  # says what is wrong with it
    card = Card.load(data / "card.json")
    wanted = data_fingerprint(str(data))
    if wanted != card.fingerprint:
        raise DataError("the files are not those of the card", path=data, hint="prepare it again")
    with ExitStack() as stack:
        # all agents start, and look at what they have, at once
        remotes = {host.name: stack.enter_context(Remote(host.name)) for host in hosts}
        for name, remote in remotes.items():
            if is_this_machine(name):
                say(f"{name}: is this machine")
            elif remote.call("data_fingerprint", path=str(data)) == wanted:
                say(f"{name}: has it already")
            else:
                say(f"{name}: sending {sum(card.files.values()) / 1e9:,.2f} GB")
                remote.call("make_room", path=str(data), files=card.files)
                _send(data, name)
                if remote.call("data_fingerprint", path=str(data)) != wanted:
                    raise DataError(
                        "the copy differs from what was sent", path=f"{name}:{data}", hint="look at its disk"
                    )
                say(f"{name}: sent and checked")


def data_fingerprint(path: str) -> str | None:
    """Of a data set's files as they are on this host, whatever its card says; None where there is none."""
    folder = Path(path)
    try:
        card = Card.load(folder / "card.json")
        return store.fingerprint(folder, list(card.files), card.corpora)
    except (FileNotFoundError, DataError):
        return None


def make_room(path: str, files: dict[str, int]) -> None:
    """The folder, on a disk that has room for what is not there yet. What rsync says of a full disk is lost
    now and then, with the connection."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    lacking = sum(size for name, size in files.items() if not _has(folder / name, size))
    free = shutil.disk_usage(folder).free
    if lacking > free:
        raise DragomanError(
            f"no room: {lacking / 1e6:,.2f} MB to come, {free / 1e6:,.2f} MB free",
            path=path,
            hint="make room there",
        )


def _has(file: Path, size: int) -> bool:
    return file.exists() and file.stat().st_size == size


def _send(data: Path, host: str) -> None:
    # Equal size and time are no proof that a file is the same: --checksum reads it. --protect-args: the path
    # is not shown to the far shell.
    options = ["--archive", "--checksum", "--protect-args", "--rsh=ssh -o BatchMode=yes"]
    if sys.stderr.isatty():
        options.append("--info=progress2")
    user, at, machine = host.rpartition("@")
    target = f"{user}{at}[{machine}]" if ":" in machine else host
    command = ["rsync", *options, "--", f"{data}/", f"{target}:{data}/"]
    done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        missing = "install rsync there" if "rsync: command not found" in done.stderr else ""
        raise DragomanError(
            f"rsync failed: {said[0]}",
            path=host,
            hint=missing or f"the same by hand: ssh {host} rsync --version",
        )
