"""Archives as they are downloaded: is it one at all, and the members that are wanted."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO

from dragoman.errors import DownloadError

_FIRST_BYTES = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\0", "zip": b"PK\x03\x04"}
_SUFFIXES = {".gz": "gzip", ".tgz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip"}
_OPENERS: dict[str, Callable[..., IO[bytes]]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}  # type: ignore[dict-item]
_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)
_CHUNK_BYTES = 1 << 20


def check_kind(path: Path, name: str) -> None:
    """Refuse a file that is not what its name says, or is a web page: a login or error page, most often."""
    found, expected = _kind(path), _SUFFIXES.get(PurePosixPath(name).suffix.lower())
    if found == "an HTML page" or (expected and found != expected):
        raise DownloadError(
            f"expected {expected or 'a corpus'}, found {found}",
            path=path,
            hint="open the address in a browser to see what the server answers, or give a --mirror",
        )


def open_plain(path: Path) -> IO[bytes]:
    """A file for reading, decompressed if it is compressed, whatever its name."""
    return _OPENERS.get(_kind(path), open)(path, "rb")


def extract(archive: Path, members: Sequence[str], folder: Path) -> list[Path]:
    """Write the members (names, or patterns that fit one name each) into the folder, in the order asked for.

    The archive is read to its end, so one that was cut short is noticed even behind the last member.
    """
    written: dict[str, Path] = {}
    names: list[str] = []
    try:
        for name, opened in _members(archive):
            names.append(name)
            for wanted in (member for member in members if name == member or fnmatchcase(name, member)):
                if wanted in written:
                    raise DownloadError(f"{wanted} fits several files, among them {name}", path=archive)
                written[wanted] = _write(opened, folder / _inside(name))
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno:  # the disk's trouble, not the archive's
            raise DownloadError(f"cannot be unpacked: {error}", path=archive) from None
        raise DownloadError(
            f"damaged or cut short: {error}", path=archive, hint="remove the file to download it again"
        ) from None
    for member in members:
        if member not in written:
            held = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise DownloadError(f"holds no {member}, but {held or 'nothing'}", path=archive)
    return [written[member] for member in members]


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Each regular file of a zip or tar, open for reading until the next is asked for."""
    if _kind(archive) == "zip":
        with zipfile.ZipFile(archive) as container:
            for info in container.infolist():
                if not info.is_dir():
                    with container.open(info) as opened:
                        yield info.filename, opened
        return
    with open_plain(archive) as stream:
        with tarfile.open(fileobj=stream, mode="r|") as container:
            for member in container:
                content = container.extractfile(member) if member.isfile() else None
                if content:
                    yield member.name.removeprefix("./"), content
        while stream.read(_CHUNK_BYTES):  # the checksum stands behind the last byte
            pass


def _write(content: IO[bytes], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("wb") as out:
        shutil.copyfileobj(content, out, _CHUNK_BYTES)
    return part.replace(path)


def _inside(name: str) -> PurePosixPath:
    """A member's path with nothing in it that leads out of the folder."""
    return PurePosixPath(*(part for part in name.split("/") if part not in ("", ".", "..")))


def _kind(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(512)
    for kind, first_bytes in _FIRST_BYTES.items():
        if head.startswith(first_bytes):
            return kind
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "an HTML page"
    return "other content" if head else "an empty file"
