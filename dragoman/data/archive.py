"""Checks that a download is the archive it should be, and extracts members from it."""

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
_LONGEST_HEADER_BYTES = 1 << 20  # long names and extended attributes, which tarfile holds in memory


class _Member(NamedTuple):
    """A regular file in an archive."""

    name: str
    size_bytes: int  # the most it unpacks to
    open: Callable[[], IO[bytes]]


def check_kind(path: Path, name: str) -> None:
    """Raises if a file is not what its name says, or is a web page: most often a login or error page."""
    actual, expected = _kind(path), _SUFFIXES.get(PurePosixPath(name).suffix.lower())
    if actual == "an HTML page" or (expected and actual != expected):
        raise DownloadError(
            f"expected {expected or 'a corpus'}, found {actual}",
            path=path,
            hint="open the address in a browser to see what the server answers, or give a --mirror",
        )


def extract(archive: Path, members: Sequence[str], folder: Path) -> list[Path]:
    """Writes the wanted members into the folder and returns their paths in the order asked for.

    A member is named exactly or by a pattern that fits one name. The archive is read to its end, so that a
    truncated one is noticed even after the last member.
    """
    written: dict[str, Path] = {}
    names: list[str] = []
    try:
        for member in _members(archive):
            names.append(member.name)
            for wanted in members:
                if member.name != wanted and not fnmatchcase(member.name, wanted):
                    continue
                if wanted in written:
                    raise DownloadError(
                        f"{wanted} fits several files, among them {member.name}", path=archive
                    )
                written[wanted] = _write(member, folder, archive)
    except DownloadError:
        raise
    except Exception as error:  # on bad content zipfile and tarfile raise ValueError, RuntimeError, ...
        if isinstance(error, OSError) and error.errno:  # a failure of the disk, not of the archive
            raise DownloadError(f"cannot be unpacked: {error}", path=archive) from None
        raise DownloadError(
            f"damaged or cut short: {error}", path=archive, hint="remove the file to download it again"
        ) from None
    for wanted in members:
        if wanted not in written:
            contents = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise DownloadError(f"has no {wanted}; it contains {contents or 'nothing'}", path=archive)
    if len(set(written.values())) < len(written):
        raise DownloadError(f"two of {', '.join(members)} are the same file in it", path=archive)
    return [written[wanted] for wanted in members]


def _members(archive: Path) -> Iterator[_Member]:
    """Each regular file of a zip or tar, in order. It can be opened until the next one is requested."""
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
        while stream.read(_CHUNK_BYTES):  # the checksum follows the last byte
            pass


class _Decompressed(io.RawIOBase):
    """The decompressed content of a file, as a stream for tarfile."""

    def __init__(self, file: io.BufferedReader):
        self._blocks = compression.blocks(file)
        self._unread = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stubs want any buffer
        self._unread = self._unread or next(self._blocks, b"")
        count = min(len(buffer), len(self._unread))
        buffer[:count], self._unread = self._unread[:count], self._unread[count:]
        return count


class _Header(tarfile.TarInfo):
    def _proc_member(self, container: tarfile.TarFile) -> tarfile.TarInfo:
        if not self.isfile() and self.size > _LONGEST_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        return super()._proc_member(container)  # type: ignore[misc]  # not in the stubs


def _open_tarred(container: tarfile.TarFile, header: tarfile.TarInfo) -> IO[bytes]:
    content = container.extractfile(header)
    assert content is not None  # it never is for a regular file
    return content


def _open_zipped(container: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    if entry.flag_bits & 1:
        raise DownloadError(
            f"{entry.filename} is encrypted",
            path=container.filename,
            hint="unpack the archive with its password, then give the files to dragoman prepare",
        )
    try:
        return container.open(entry)
    except NotImplementedError as error:  # for example deflate64
        raise DownloadError(
            f"{entry.filename} uses a compression that dragoman cannot read: {error}",
            path=container.filename,
            hint="unpack the archive yourself, then give the files to dragoman prepare",
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
    """A member's path without parts that lead out of the folder."""
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
