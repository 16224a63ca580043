"""Copies a data set to other hosts with rsync and verifies its fingerprint: `dragoman launch copy`."""

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
    """Copies a data set to the same path on each host that does not have it yet, and reports with `say`."""
    data = data.absolute()
    if not shutil.which("rsync"):
        raise DragomanError("rsync is not installed on this machine", hint="install it here and on the hosts")
    store.DataSet(data)  # raises if the data set is damaged
    card = Card.load(data / "card.json")
    wanted = data_fingerprint(str(data))
    if wanted != card.fingerprint:
        raise DataError("the files do not match card.json", path=data, hint="prepare the data set again")
    with ExitStack() as stack:
        # start all agents at once
        remotes = {host.name: stack.enter_context(Remote(host.name)) for host in hosts}
        for name, remote in remotes.items():
            if is_this_machine(name):
                say(f"{name}: skipped, it is this machine")
            elif remote.call("data_fingerprint", path=str(data)) == wanted:
                say(f"{name}: skipped, it has the data set already")
            else:
                say(f"{name}: sending {sum(card.files.values()) / 1e9:,.2f} GB")
                remote.call("prepare_folder", path=str(data), files=card.files)
                _send(data, name)
                if remote.call("data_fingerprint", path=str(data)) != wanted:
                    raise DataError(
                        "the copy differs from the original",
                        path=f"{name}:{data}",
                        hint="check the disk of that host, and copy again",
                    )
                say(f"{name}: sent and verified")


def data_fingerprint(path: str) -> str | None:
    """The fingerprint of a data set's files as they are on this host; None if there is no data set.

    It is computed from the files, not taken from the card.
    """
    folder = Path(path)
    try:
        card = Card.load(folder / "card.json")
        return store.fingerprint(folder, list(card.files), card.corpora)
    except (FileNotFoundError, DataError):
        return None


def prepare_folder(path: str, files: dict[str, int]) -> None:
    """Creates the folder, and raises if its disk has no room for the missing files.

    rsync's own message about a full disk sometimes gets lost together with the connection.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    missing_bytes = sum(size for name, size in files.items() if not _has(folder / name, size))
    free_bytes = shutil.disk_usage(folder).free
    if missing_bytes > free_bytes:
        raise DragomanError(
            f"no room: {missing_bytes / 1e6:,.2f} MB to copy, {free_bytes / 1e6:,.2f} MB free",
            path=path,
            hint="free some space there",
        )


def _has(file: Path, size: int) -> bool:
    return file.exists() and file.stat().st_size == size


def _send(data: Path, host: str) -> None:
    # --checksum reads the files, because files of equal size and time may differ. --protect-args keeps the
    # remote shell from interpreting the path.
    options = ["--archive", "--checksum", "--protect-args", "--rsh=ssh -o BatchMode=yes"]
    if sys.stderr.isatty():
        options.append("--info=progress2")
    user, at, machine = host.rpartition("@")
    target = f"{user}{at}[{machine}]" if ":" in machine else host
    command = ["rsync", *options, "--", f"{data}/", f"{target}:{data}/"]
    done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        errors = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        if "rsync: command not found" in done.stderr:
            hint = "install rsync there"
        else:
            hint = f"check rsync by hand: ssh {host} rsync --version"
        raise DragomanError(f"rsync failed: {errors[0]}", path=host, hint=hint)
