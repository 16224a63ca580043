from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from dragoman.data.archive import extract, open_plain
from dragoman.errors import DownloadError

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


@pytest.mark.parametrize("pack", [zipped, tar])
def test_a_member_cannot_be_written_outside_the_folder(pack, tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(pack({"../../x.en": b"a", "/x.de": b"b"}))
    paths = extract(tmp_path / "archive", ["*.en", "*.de"], tmp_path / "out")
    assert paths == [tmp_path / "out/x.en", tmp_path / "out/x.de"]


def test_links_in_a_tar_are_not_followed(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as out:
        link = tarfile.TarInfo("x.en")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        out.addfile(link)
    (tmp_path / "archive").write_bytes(buffer.getvalue())
    with pytest.raises(DownloadError, match="holds no x.en"):
        extract(tmp_path / "archive", ["x.en"], tmp_path / "out")


def test_a_missing_member_is_named_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(zipped(MEMBERS))
    with pytest.raises(DownloadError, match="holds no x.fr, but LICENSE, d/x.en, d/x.de"):
        extract(tmp_path / "archive", ["x.fr"], tmp_path / "out")


def test_a_pattern_that_fits_two_members_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(zipped(MEMBERS))
    with pytest.raises(DownloadError, match="fits several files"):
        extract(tmp_path / "archive", ["d/*"], tmp_path / "out")


@pytest.mark.parametrize("lost_bytes", [4, 60, 300])
@pytest.mark.parametrize("pack", [lambda members: gzip.compress(tar(members)), zipped], ids=["tgz", "zip"])
def test_an_archive_cut_short_is_noticed(pack, lost_bytes: int, tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(pack(MEMBERS)[:-lost_bytes])
    with pytest.raises(DownloadError, match="damaged or cut short"):
        extract(tmp_path / "archive", ["d/x.en"], tmp_path / "out")


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"just text\n" * 100)
    with pytest.raises(DownloadError, match="damaged"):
        extract(tmp_path / "archive", ["d/x.en"], tmp_path / "out")


def test_a_file_is_opened_by_its_content_whatever_its_name(tmp_path: Path) -> None:
    for content in (b"text", gzip.compress(b"text"), lzma.compress(b"text"), bz2.compress(b"text")):
        (tmp_path / "file").write_bytes(content)
        with open_plain(tmp_path / "file") as file:
            assert file.read() == b"text"
