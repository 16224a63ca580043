from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path
from shutil import _ntuple_diskusage as Usage

import pytest

from dragoman.data.archive import extract
from dragoman.errors import DownloadError
from tests.facts import raising

MEMBERS = {"LICENSE": b"free", "d/x.en": b"one\ntwo\n" * 9000, "d/x.de": b"eins\nzwei\n" * 9000}


def tar(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as out:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        *(tar(MEMBERS), gzip.compress(tar(MEMBERS)), bz2.compress(tar(MEMBERS))),
        *(lzma.compress(tar(MEMBERS)), zipped(MEMBERS)),
    ],
    ids=["tar", "gzip", "bzip2", "xz", "zip"],
)
def test_members_come_in_the_order_asked_for_and_nothing_else(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(content)
    paths = extract(tmp_path / "archive", ["*.de", "d/x.en"], tmp_path / "out")
    assert [path.read_bytes() for path in paths] == [MEMBERS["d/x.de"], MEMBERS["d/x.en"]]
    written = sorted(path.name for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert written == ["x.de", "x.en"]


def test_a_missing_member_is_named_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(zipped(MEMBERS))
    with raising(DownloadError, tmp_path / "archive", "x.fr", "LICENSE", "d/x.en", "d/x.de"):
        extract(tmp_path / "archive", ["x.fr"], tmp_path / "out")


def test_a_pattern_that_fits_two_members_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(zipped(MEMBERS))
    with raising(DownloadError, tmp_path / "archive", "d/*", "d/x.de"):
        extract(tmp_path / "archive", ["d/*"], tmp_path / "out")


@pytest.mark.parametrize("lost_bytes", [4, 60, 300])
@pytest.mark.parametrize("pack", [lambda members: gzip.compress(tar(members)), zipped], ids=["tgz", "zip"])
def test_an_archive_cut_short_is_noticed(pack, lost_bytes: int, tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(pack(MEMBERS)[:-lost_bytes])
    with raising(DownloadError, tmp_path / "archive") as caught:
        extract(tmp_path / "archive", ["d/x.en"], tmp_path / "out")
    assert caught.value.hint, "to fetch it again helps"


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"just text\n" * 100)
    with pytest.raises(DownloadError, match="damaged"):
        extract(tmp_path / "archive", ["d/x.en"], tmp_path / "out")


@pytest.mark.parametrize(
    "name",
    [
        "../x.en",
        "../../../x.en",
        "/x.en",
        "//x.en",
        "a/../../x.en",
        "./../x.en",
        "/etc/../x.en",
        "..//..//x.en",
    ],
)
@pytest.mark.parametrize("pack", [zipped, tar])
def test_a_member_cannot_be_written_outside_the_folder(pack, name: str, tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (inner / "archive").write_bytes(pack({name: b"a"}))
    (path,) = extract(inner / "archive", ["*x.en"], inner / "out")
    assert path.read_bytes() == b"a" and path.is_relative_to(inner / "out")
    files = {file for file in tmp_path.rglob("*") if file.is_file()}
    assert files == {inner / "archive", path}


def special(kind: bytes, **fields: object) -> bytes:
    """A tar whose only member is no regular file."""
    info = tarfile.TarInfo("x.en")
    info.type = kind
    for name, value in fields.items():
        setattr(info, name, value)
    return info.tobuf() + bytes(1024)


def encrypted(members: dict[str, bytes]) -> bytes:
    """With the flag of encryption set, in the local headers and in the directory at the end."""
    content = bytearray(zipped(members))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(signature)
        while place >= 0:
            content[place + flags] |= 1
            place = content.find(signature, place + 1)
    return bytes(content)


def packed_by(method: int) -> bytes:
    content = bytearray(zipped({"x.en": b"text"}))
    for signature, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = content.index(signature) + place
        content[start : start + 2] = method.to_bytes(2, "little")
    return bytes(content)


def twice(name: str) -> bytes:
    return tar({name: b"a"})[:1024] + tar({name: b"b"})


def sparse(size_bytes: int) -> bytes:
    """An old GNU sparse file: all of it a hole."""
    info = tarfile.TarInfo("x.en")
    buffer = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    buffer[156:157] = tarfile.GNUTYPE_SPARSE
    buffer[483:495] = b"\x80" + size_bytes.to_bytes(11, "big")
    buffer[148:156] = b" " * 8
    buffer[148:156] = b"%06o\0 " % sum(buffer[:512])
    return bytes(buffer) + bytes(1024)


HOSTILE = {
    "a link": special(tarfile.SYMTYPE, linkname="/etc/passwd"),
    "a hard link": special(tarfile.LNKTYPE, linkname="/etc/passwd"),
    "a device": special(tarfile.CHRTYPE, devmajor=1, devminor=5),
    "a disk": special(tarfile.BLKTYPE, devmajor=8),
    "a pipe": special(tarfile.FIFOTYPE),
    "a folder": special(tarfile.DIRTYPE),
    "the same name twice": twice("x.en"),
    "a header that never ends": special(tarfile.XHDTYPE, size=2**33),
    "a name that never ends": special(tarfile.GNUTYPE_LONGNAME, size=2**33),
    "a name of names": special(tarfile.GNUTYPE_LONGNAME, size=0) * 2000,
    "a member of many terabytes": special(tarfile.REGTYPE, size=2**50),
    "a hole of many terabytes": sparse(2**60),
    "encrypted": encrypted({"x.en": b"text"}),
    "packed by Deflate64": packed_by(9),
    "packed by AES": packed_by(99),
    "a pattern of two": zipped({"x.en": b"a", "a/x.en": b"b"}),
    "names that meet in one place": zipped({"x.en": b"a", "../x.en": b"b"}),
    "a name of nothing": zipped({"..": b"a"}),
    "a folder in place of a file": zipped({"x.en": b"a", "x.en/y/x.en": b"b"}),
    "a directory of another place": zipped({"x.en": b"a"}).replace(b"PK\x05\x06", b"PK\x05\x07"),
    "empty": b"",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused_and_leaves_nothing_half_done(case: str, tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(HOSTILE[case])
    with pytest.raises(DownloadError) as caught:
        extract(tmp_path / "archive", ["x.en", "../x.en"] if "meet" in case else ["*x.en"], tmp_path / "out")
    assert caught.value.path == str(tmp_path / "archive")
    left = [path for path in tmp_path.rglob("*") if not path.is_dir()]
    assert all(path.name in ("archive", "x.en") and not path.is_symlink() for path in left)


def test_an_encrypted_archive_says_so_and_what_is_not_encrypted_can_be_taken(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(encrypted(MEMBERS))
    with raising(DownloadError, tmp_path / "archive", "d/x.en") as caught:
        extract(tmp_path / "archive", ["d/x.en"], tmp_path / "out")
    with pytest.raises(DownloadError) as damaged:
        (tmp_path / "archive").write_bytes(zipped(MEMBERS)[:-60])
        extract(tmp_path / "archive", ["d/x.en"], tmp_path / "out")
    assert caught.value.hint not in ("", damaged.value.hint), "to fetch it again does not help"


def test_a_small_archive_of_a_large_text_is_unpacked_only_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(100, 90, 10))
    for content in (zipped(MEMBERS), tar(MEMBERS)):
        (tmp_path / "archive").write_bytes(content)
        with raising(DownloadError, tmp_path / "archive", "d/x.en", "0.00 GB", tmp_path / "out"):
            extract(tmp_path / "archive", ["d/x.en"], tmp_path / "out")


@pytest.mark.parametrize("pack", [zipped, tar, lambda members: gzip.compress(tar(members))])
def test_no_damage_ends_in_anything_but_our_error(pack, tmp_path: Path) -> None:
    draw, whole = random.Random(1), pack({"x.en": b"text\n" * 50, "d/y": b"more\n" * 50})
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        (tmp_path / "archive").write_bytes(content[: draw.randrange(len(content) // 2, len(content) + 1)])
        with suppress(DownloadError):
            extract(tmp_path / "archive", ["x.en"], tmp_path / "out")
