"""Files and folders that appear under their name whole, or not at all.

They are written as NAME.unfinished and renamed when they are done. What is replaced passes on its mode and
owner; what is new gets the mode that the umask leaves. A link stays, and the file it points at is replaced.
Devices, pipes and open descriptors (/dev/stdout) have no old content to keep: they are written to directly.
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

UNFINISHED = ".unfinished"  # ending of what is still being written, or was when its writer was killed


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A folder to fill; it takes its name only when the block ends well.

    The name must be free, or an empty folder. What a killed process left
    under the temporary name is removed by the next attempt.
    """
    with naming(folder):
        folder = destination(folder)
        unfinished = folder.with_name(folder.name + UNFINISHED)
        remove(unfinished)
        unfinished.mkdir(mode=0o700 if folder.exists() else 0o777, parents=True)
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
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write; it takes its name only when the block ends well, and until then the old one stays."""
    with naming(path):
        path = destination(path)
        if _is_descriptor(path) or (path.exists() and not path.is_file()):
            with open(os.dup(int(path.name)) if _is_descriptor(path) else path, "wb") as file:
                yield file
            return
        unfinished = path.with_name(path.name + UNFINISHED)
        try:
            with _created(unfinished, path) as file:
                yield file
            take_name(unfinished, path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise


def write(path: Path, content: bytes) -> None:
    """Replaces a file's content in one move: a reader sees the old or the new, never a part."""
    with replacing(path) as file:
        file.write(content)


def destination(path: Path) -> Path:
    """The place that a name stands for. A user's own links are followed; those of other users are an error.

    Whoever may write to a folder, such as /tmp, could put a link there that points at our user's files.
    """
    for _ in range(_MOST_LINKS):
        if _is_descriptor(path) or not path.is_symlink():
            return path.resolve() if path.name in ("", "..") else path
        if path.lstat().st_uid not in (0, os.geteuid()):
            raise UsageError("is a link of another user", path=path, hint=f"name {os.readlink(path)} itself")
        path = path.parent / os.readlink(path)
    raise UsageError("is a link that leads in a circle", path=path)


_MOST_LINKS = 40  # one after the other, as the kernel's


def remove(path: Path) -> None:
    """A file, a link (never what it points at) or a folder; or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def take_name(unfinished: Path, path: Path) -> None:
    """A file that is written to its end replaces the one of that name."""
    sync(unfinished)
    unfinished.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Until this returns, a power cut may leave a renamed file empty."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _created(path: Path, before: Path) -> BinaryIO:
    """A new file in place of `before`, closed to others until it has its mode."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW  # a link put there meanwhile is an error
    descriptor = os.open(path, flags, 0o600 if before.exists() else 0o666)
    _pass_on(before, descriptor)
    return open(descriptor, "wb")


def _pass_on(before: Path, after: Path | int) -> None:
    """Owner and mode of what is replaced. Only root may give files away; some file systems know neither."""
    if before.exists():
        status = before.stat()
        with suppress(PermissionError):
            os.chown(after, status.st_uid, status.st_gid)
        with suppress(PermissionError):
            os.chmod(after, stat.S_IMODE(status.st_mode))


def _is_descriptor(path: Path) -> bool:
    """A number in /proc/self/fd: where /dev/stdout and /dev/fd/3 lead. To open it again would truncate it."""
    return path.name.isdigit() and os.path.realpath(path.parent) == os.path.realpath("/proc/self/fd")
