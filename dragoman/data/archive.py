"""Archives as they are downloaded: is it one at all, and the members that are wanted."""

from __future__ import annotations

import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from dragoman.data import compression
from dragoman.errors import DownloadError

_SUFFIXES = {".gz": "gzip", ".tgz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
_CHUNK_BYTES = 1 << 20
_LONGEST_HEADER_BYTES = 1 << 20  # a long name, extended attributes: tarfile holds them in memory


class _Member(NamedTuple):
    """A regular file in an archive."""

    name: str
    size_bytes: int  # no more than this comes out
    open: Callable[[], IO[bytes]]


def check_kind(path: Path, name: str) -> None:
    """Refuse a file that is not what its name says, or is a web page: a login or error page, most often."""
    found, expected = _kind(path), _SUFFIXES.get(PurePosixPath(name).suffix.lower())
    if found == "an HTML page" or (expected and found != expected):
        raise DownloadError(
            f"expected {expected or 'a corpus'}, found {found}",
            path=path,
            hint="open the address in a browser to see what the server answers, or give a --mirror",
        )


def extract(archive: Path, members: Sequence[str], folder: Path) -> list[Path]:
    """Write the members (names, or patterns that fit one name each) into the folder, in the order asked for.

    The archive is read to its end, so one that was cut short is noticed even behind the last member.
    """
    written: dict[str, Path] = {}
    names: list[str] = []
    try:
        for member in _members(archive):
            names.append(member.name)
            for wanted in (
                asked for asked in members if member.name == asked or fnmatchcase(member.name, asked)
            ):
                if wanted in written:
                    raise DownloadError(
                        f"{wanted} fits several files, among them {member.name}", path=archive
                    )
                written[wanted] = _write(member, folder, archive)
    except DownloadError:
        raise
    except (
        Exception
    ) as error:  # zipfile and tarfile let ValueError, RuntimeError and others out on bad content
        if isinstance(error, OSError) and error.errno:  # the disk's trouble, not the archive's
            raise DownloadError(f"cannot be unpacked: {error}", path=archive) from None
        raise DownloadError(
            f"damaged or cut short: {error}", path=archive, hint="remove the file to download it again"
        ) from None
    for asked in members:
        if asked not in written:
            held = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise DownloadError(f"holds no {asked}, but {held or 'nothing'}", path=archive)
    if len(set(written.values())) < len(written):
        raise DownloadError(f"two of {', '.join(members)} are one and the same file in it", path=archive)
    return [written[asked] for asked in members]


def _members(archive: Path) -> Iterator[_Member]:
    """Each regular file of a zip or tar, in order; it can be opened until the next is asked for."""
    if _kind(archive) == "zip":
        with zipfile.ZipFile(archive) as container:
            for entry in container.infolist():
                if not entry.is_dir():
                    yield _Member(entry.filename, entry.file_size, partial(_open_zipped, container, entry))
        return
    with archive.open("rb") as file:
        stream = io.BufferedReader(_Decompressed(file), _CHUNK_BYTES)
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as container:
            for header in container:
                if header.isfile():
                    yield _Member(
                        header.name.removeprefix("./"), header.size, partial(_open_tarred, container, header)
                    )
        while stream.read(_CHUNK_BYTES):  # the checksum stands behind the last byte
            pass


class _Decompressed(io.RawIOBase):
    """The content of a file, decompressed, as tarfile reads it."""

    def __init__(self, file: io.BufferedReader):
        self._blocks = compression.blocks(file)
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer, say the stubs
        self._waiting = self._waiting or next(self._blocks, b"")
        count = min(len(buffer), len(self._waiting))
        buffer[:count], self._waiting = self._waiting[:count], self._waiting[count:]
        return count


class _Header(tarfile.TarInfo):
    def _proc_member(self, container: tarfile.TarFile) -> tarfile.TarInfo:
        if not self.isfile() and self.size > _LONGEST_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        return super()._proc_member(container)  # type: ignore[misc]  # not in the stubs


def _open_tarred(container: tarfile.TarFile, header: tarfile.TarInfo) -> IO[bytes]:
    content = container.extractfile(header)
    assert content is not None  # as for every regular file
    return content


def _open_zipped(container: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    if entry.flag_bits & 1:
        raise DownloadError(
            f"{entry.filename} is encrypted",
            path=container.filename,
            hint="unpack the archive with its password, and give the files to prepare",
        )
    try:
        return container.open(entry)
    except NotImplementedError as error:  # deflate64, for one
        raise DownloadError(
            f"{entry.filename} is packed in a way that is not read here: {error}",
            path=container.filename,
            hint="unpack the archive yourself, and give the files to prepare",
        ) from None


def _write(member: _Member, folder: Path, archive: Path) -> Path:
    path = folder / _inside(member.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.size_bytes > shutil.disk_usage(path.parent).free:
        raise DownloadError(
            f"{member.name} needs {member.size_bytes / 1e9:,.2f} GB, more than is free in {folder}",
            path=archive,
        )
    part = path.with_name(path.name + ".part")
    try:
        with member.open() as content, part.open("wb") as out:
            shutil.copyfileobj(content, out, _CHUNK_BYTES)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part.replace(path)


def _inside(name: str) -> PurePosixPath:
    """A member's path with nothing in it that leads out of the folder."""
    return PurePosixPath(*(part for part in name.split("/") if part not in ("", ".", "..")))


def _kind(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith(b"PK\x03\x04"):
        return "zip"
    if name := compression.kind(head):
        return name
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "an HTML page"
    return "other content" if head else "an empty file"
