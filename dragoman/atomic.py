"""Writes files and folders that appear under their name complete, or not at all.

They are written as NAME.unfinished and renamed at the end. A replaced file or folder passes on its mode and
owner; a new one gets the mode that the umask leaves. A link stays, and the file it points at is replaced.
Devices, pipes and open descriptors (/dev/stdout) have no old content to keep, so they are written directly.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from dragoman.errors import UsageError, naming

UNFINISHED = ".unfinished"  # ending of the temporary name; a killed process leaves it behind


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A folder to fill. It gets its name only if the block ends without an error.

    The name must be free, or belong to an empty folder. The next attempt removes what a killed process left
    under the temporary name.
    """
    with naming(folder):
        folder = destination(folder)
        unfinished = folder.with_name(folder.name + UNFINISHED)
        remove(unfinished)
        make_folder(folder.parent)
        unfinished.mkdir(mode=0o700 if folder.exists() else 0o777)
        try:
            _pass_on(folder, unfinished)
            yield unfinished
            for path in [*unfinished.rglob("*"), unfinished]:
                sync(path)
            unfinished.rename(folder)
            sync(folder.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file to write. It replaces the old one only if the block ends without an error.

    A file that was not there before gets the mode that the umask leaves of `mode`.
    """
    with naming(path):
        path = destination(path)
        if _is_descriptor(path) or (path.exists() and not path.is_file()):
            with open(os.dup(int(path.name)) if _is_descriptor(path) else path, "wb") as file:
                yield file
            return
        unfinished = path.with_name(path.name + UNFINISHED)
        try:
            with _created(unfinished, path, mode) as file:
                yield file
            take_name(unfinished, path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise


def write(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Replaces a file's content at once: a reader sees the old or the new content, never a part."""
    with replacing(path, mode) as file:
        file.write(content)


def destination(path: Path) -> Path:
    """The path that a name leads to. It follows the user's own links; a link of another user is an error.

    Anyone who may write to a folder, such as /tmp, could put a link there that points at our user's files.
    """
    for _ in range(_MOST_LINKS):
        if _is_descriptor(path) or not path.is_symlink():
            return path.resolve() if path.name in ("", "..") else path
        if path.lstat().st_uid not in (0, os.geteuid()):
            raise UsageError("is a link of another user", path=path, hint=f"name {os.readlink(path)} itself")
        path = path.parent / os.readlink(path)
    raise UsageError("is a link that leads in a circle", path=path)


_MOST_LINKS = 40  # in a row; the kernel's own limit


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Makes a folder and those above it that are missing, and writes their names to the disk.

    A new folder gets the mode that the umask leaves of `mode`, those above it that of an ordinary folder.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    for folder in missing:
        with suppress(PermissionError):  # a folder in which one may make others, but not look
            sync(folder.parent)


def link(path: Path, target: str) -> None:
    """Makes or replaces a link: a reader finds the old target or the new one."""
    unfinished = path.with_name(path.name + UNFINISHED)
    remove(unfinished)
    unfinished.symlink_to(target)
    unfinished.replace(path)
    sync(path.parent)


def remove(path: Path) -> None:
    """Removes a file, a folder or a link (never what the link points at), if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def take_name(unfinished: Path, path: Path) -> None:
    """Renames a completely written file, which replaces any file of that name."""
    sync(unfinished)
    unfinished.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Writes a file or folder to the disk. Until then, a power cut may leave a renamed file empty."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _created(path: Path, before: Path, mode: int) -> BinaryIO:
    """A new file that will replace `before`. Other users cannot open it before it has its final mode."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW  # fails if somebody has put a link there
    descriptor = os.open(path, flags, 0o600 if before.exists() else mode)
    _pass_on(before, descriptor)
    return open(descriptor, "wb")


def _pass_on(before: Path, after: Path | int) -> None:
    """Copies owner and mode if possible: only root may give files away, some file systems have neither."""
    if before.exists():
        status = before.stat()
        with suppress(PermissionError):
            os.chown(after, status.st_uid, status.st_gid)
        with suppress(PermissionError):
            os.chmod(after, stat.S_IMODE(status.st_mode))


def _is_descriptor(path: Path) -> bool:
    """Is this an open descriptor in /proc/self/fd, where /dev/stdout and /dev/fd/3 lead?

    Opening it again would truncate the file behind it.
    """
    return path.name.isdigit() and os.path.realpath(path.parent) == os.path.realpath("/proc/self/fd")
