"""The downloader against a real server on this machine that misbehaves as told."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dragoman.data import transfer
from dragoman.data.download import Downloader, place
from dragoman.errors import DownloadError
from tests.facts import lacking, raising

TEXT = bytes(range(256)) * 4000  # 1 MB: several chunks
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


@dataclass
class Server:
    """What is served, and how badly."""

    files: dict[str, bytes] = field(default_factory=dict)
    break_off_after: list[int] = field(default_factory=list)  # bytes of each of the next answers
    has_ranges: bool = True
    has_length: bool = True
    etag: str | None = '"1"'
    announced_extra_bytes: int = 0  # Content-Length says this many more than there are
    statuses: list[int] = field(default_factory=list)  # of the next answers, before normal service
    url: str = ""
    requests: list[tuple[str, str | None]] = field(default_factory=list)  # path and range asked for

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        asked = handler.headers.get("Range")
        self.requests.append((handler.path, asked))
        content = self.files.get(handler.path)
        status = self.statuses.pop(0) if self.statuses else 200 if content is not None else 404
        if status != 200 or content is None:
            handler.send_response(status)
            handler.send_header("Content-Length", "0")
            return handler.end_headers()
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.has_ranges else 0
        if handler.headers.get("If-Range") not in (None, self.etag):
            start = 0
        if start and start >= len(content):
            handler.send_response(416)
            return handler.end_headers()
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if self.etag:
            handler.send_header("ETag", self.etag)
        if self.has_length:
            announced_bytes = len(content) - start + self.announced_extra_bytes
            handler.send_header("Content-Length", str(announced_bytes))
        handler.end_headers()
        limit = self.break_off_after.pop(0) if self.break_off_after else len(content)
        handler.wfile.write(content[start : start + limit])


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.answer(self)
            self.close_connection = True

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        http.shutdown()
        thread.join()


@pytest.fixture
def downloader(tmp_path: Path) -> Downloader:
    return Downloader(tmp_path / "downloads", pause_seconds=0)


def test_a_file_comes_whole_and_shows_its_progress(server: Server, tmp_path: Path) -> None:
    server.files["/corpus/a.txt"] = TEXT
    seen: list[tuple[str, int, int | None]] = []
    downloader = Downloader(tmp_path, progress=lambda *call: seen.append(call))
    path = downloader.fetch(f"{server.url}/corpus/a.txt")
    assert path == tmp_path / "127.0.0.1/corpus/a.txt"
    assert path.read_bytes() == TEXT
    assert seen[0] == ("a.txt", 0, len(TEXT)) and seen[-1] == ("a.txt", len(TEXT), len(TEXT))
    assert len(seen) > 2
    assert sorted(file.name for file in path.parent.iterdir()) == ["a.txt"]


def test_a_file_that_is_here_is_not_fetched_again(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    downloader.fetch(f"{server.url}/a.txt")
    downloader.fetch(f"{server.url}/a.txt")
    assert len(server.requests) == 1


def test_a_broken_connection_is_continued_where_it_was(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    server.break_off_after = [300_000, 200_000]
    assert downloader.fetch(f"{server.url}/a.txt").read_bytes() == TEXT
    assert [asked for _, asked in server.requests] == [None, "bytes=300000-", "bytes=500000-"]


def test_a_later_run_continues_from_what_an_earlier_one_left(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    server.break_off_after = [300_000] + [0] * transfer.ATTEMPTS
    with raising(DownloadError, f"{server.url}/a.txt", transfer.ATTEMPTS, "1,024,000") as caught:
        downloader.fetch(f"{server.url}/a.txt")
    assert not lacking(caught.value.hint, "300,000")
    server.requests.clear()
    assert downloader.fetch(f"{server.url}/a.txt").read_bytes() == TEXT
    assert server.requests == [("/a.txt", "bytes=300000-")]


def test_a_whole_part_is_not_fetched_again(server: Server, downloader: Downloader) -> None:
    url = f"{server.url}/a.txt"
    server.files["/a.txt"] = TEXT
    part = downloader.folder / "127.0.0.1/a.txt.part"
    part.parent.mkdir(parents=True)
    transfer.transfer(url, part, lambda done, total: None)  # ended before the file was renamed
    assert downloader.fetch(url).read_bytes() == TEXT
    assert len(server.requests) == 1


def test_without_ranges_the_file_starts_again(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    server.has_ranges = False
    server.break_off_after = [300_000]
    assert downloader.fetch(f"{server.url}/a.txt").read_bytes() == TEXT


def test_a_server_without_ranges_that_always_breaks_off_is_given_up(
    server: Server, downloader: Downloader
) -> None:
    server.files["/a.txt"] = TEXT
    server.has_ranges = False
    server.break_off_after = [300_000] * 50
    with raising(DownloadError, f"{server.url}/a.txt", transfer.ATTEMPTS):
        downloader.fetch(f"{server.url}/a.txt")
    assert len(server.requests) == 1 + transfer.ATTEMPTS


@pytest.mark.parametrize("etag", ['"2"', None])
def test_a_file_that_changed_between_attempts_starts_again(
    server: Server, downloader: Downloader, etag: str | None
) -> None:
    server.files["/a.txt"] = TEXT
    server.etag = '"1"' if etag else None  # without an ETag the length alone tells
    server.break_off_after = [300_000] + [0] * transfer.ATTEMPTS
    with pytest.raises(DownloadError):
        downloader.fetch(f"{server.url}/a.txt")
    server.files["/a.txt"] = changed = TEXT[::-1] + b"longer"
    server.etag = etag
    assert downloader.fetch(f"{server.url}/a.txt").read_bytes() == changed


def test_a_part_longer_than_the_file_starts_again(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    server.etag = None
    server.break_off_after = [300_000] + [0] * transfer.ATTEMPTS
    with pytest.raises(DownloadError):
        downloader.fetch(f"{server.url}/a.txt")
    server.files["/a.txt"] = b"short"
    assert downloader.fetch(f"{server.url}/a.txt").read_bytes() == b"short"


def test_a_content_length_that_is_too_long_is_an_error(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    server.announced_extra_bytes = 10
    with raising(DownloadError, f"{server.url}/a.txt", transfer.ATTEMPTS):
        downloader.fetch(f"{server.url}/a.txt")
    assert not (downloader.folder / "127.0.0.1/a.txt").exists()


def test_a_file_of_unknown_length_comes_whole(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    server.has_length = False
    assert downloader.fetch(f"{server.url}/a.txt").read_bytes() == TEXT


def test_a_busy_server_is_asked_again(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    server.statuses = [503, 429]
    assert downloader.fetch(f"{server.url}/a.txt").read_bytes() == TEXT


def test_a_missing_file_names_its_address_and_the_way_out(server: Server, downloader: Downloader) -> None:
    with raising(DownloadError, f"{server.url}/gone.tgz", "HTTP 404") as caught:
        downloader.fetch(f"{server.url}/gone.tgz")
    assert "--mirror" in caught.value.hint
    assert len(server.requests) == 1


def test_a_refused_file_is_not_asked_for_again(server: Server, downloader: Downloader) -> None:
    server.statuses = [403]
    with pytest.raises(DownloadError, match="HTTP 403"):
        downloader.fetch(f"{server.url}/a.txt")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "corpora.invalid"])
def test_no_connection_points_to_the_mirror(downloader: Downloader, host: str) -> None:
    with raising(DownloadError, f"http://{host}/a.txt", "--mirror") as caught:
        downloader.fetch(f"http://{host}/a.txt")
    assert lacking(str(caught.value), transfer.ATTEMPTS), "it is not tried again"


def test_the_first_download_pins_the_checksum(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    url = f"{server.url}/a.txt"
    downloader.fetch(url)
    pins = json.loads((downloader.folder / "checksums.json").read_text())
    assert pins == {url: {"sha256": hashlib.sha256(TEXT).hexdigest(), "bytes": len(TEXT)}}


def test_a_file_without_a_published_checksum_is_trusted_once_and_said_to_be(
    server: Server, tmp_path: Path
) -> None:
    server.files = {"/a.txt": TEXT, "/b.txt": TEXT}
    said: list[str] = []
    downloader = Downloader(tmp_path, tell=said.append)
    downloader.fetch(f"{server.url}/b.txt", md5=hashlib.md5(TEXT).hexdigest())
    assert said == []
    for _ in range(2):
        downloader.fetch(f"{server.url}/a.txt")
    assert len(said) == 1
    assert "a.txt" in said[0] and hashlib.sha256(TEXT).hexdigest() in said[0]


@pytest.mark.parametrize("content", [b"", b"[]", b"[1]", b"{", b'{"x": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_list_of_checksums_is_named(server: Server, downloader: Downloader, content: bytes) -> None:
    server.files["/a.txt"] = TEXT
    downloader.folder.mkdir()
    (downloader.folder / "checksums.json").write_bytes(content)
    with pytest.raises(DownloadError, match=r"checksums\.json"):
        downloader.fetch(f"{server.url}/a.txt")


def test_a_download_that_differs_from_its_pin_is_refused(server: Server, downloader: Downloader) -> None:
    url = f"{server.url}/a.txt"
    server.files["/a.txt"] = TEXT
    downloader.fetch(url).unlink()
    server.files["/a.txt"] = b"something else"
    with pytest.raises(DownloadError) as caught:
        downloader.fetch(url)
    for content in (TEXT, b"something else"):
        assert hashlib.sha256(content).hexdigest() in caught.value.what
    assert str(caught.value.path).endswith("a.txt.rejected") and "checksums.json" in caught.value.hint
    assert not (downloader.folder / "127.0.0.1/a.txt").exists()
    server.files["/a.txt"] = TEXT
    assert downloader.fetch(url).read_bytes() == TEXT


def test_a_file_changed_on_disk_is_refused_and_left_alone(server: Server, downloader: Downloader) -> None:
    server.files["/a.txt"] = TEXT
    path = downloader.fetch(f"{server.url}/a.txt")
    path.write_bytes(b"changed")
    expected, found = (hashlib.sha256(content).hexdigest() for content in (TEXT, b"changed"))
    with raising(DownloadError, path, expected, found):
        downloader.fetch(f"{server.url}/a.txt")
    assert path.read_bytes() == b"changed"


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_a_published_checksum_is_checked(server: Server, downloader: Downloader, algorithm: str) -> None:
    server.files["/a.txt"] = TEXT
    url = f"{server.url}/a.txt"
    with raising(DownloadError, algorithm, "00", hashlib.new(algorithm, TEXT).hexdigest()):
        downloader.fetch(url, **{algorithm: "00"})
    assert not (downloader.folder / "checksums.json").exists()  # the wrong file is not pinned
    right = hashlib.new(algorithm, TEXT).hexdigest()
    assert downloader.fetch(url, **{algorithm: right}).read_bytes() == TEXT


@pytest.mark.parametrize("name", ["a.tgz", "a.zip", "a.gz", "a.xz", "corpus"])
def test_a_web_page_in_place_of_a_file_is_recognised(
    server: Server, downloader: Downloader, name: str
) -> None:
    server.files[f"/{name}"] = PAGE
    with raising(DownloadError, f"{server.url}/{name}", "HTML"):
        downloader.fetch(f"{server.url}/{name}")
    assert not (downloader.folder / "checksums.json").exists()


def test_an_archive_of_another_kind_is_recognised(server: Server, downloader: Downloader) -> None:
    server.files["/a.zip"] = gzip.compress(TEXT)
    with raising(DownloadError, "zip", "gzip"):
        downloader.fetch(f"{server.url}/a.zip")


def test_a_full_disk_is_noticed_before_the_download(
    server: Server, downloader: Downloader, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/a.txt"] = TEXT
    usage = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with raising(DownloadError, f"{server.url}/a.txt", "0.00 GB"):
        downloader.fetch(f"{server.url}/a.txt")


def test_a_mirror_url_is_asked_by_path_and_then_by_name(server: Server, tmp_path: Path) -> None:
    server.files["/m/statmt.org/x/a.txt"] = b"by path"
    server.files["/m/b.txt"] = b"by name"
    downloader = Downloader(tmp_path, mirror=f"{server.url}/m")
    assert downloader.fetch("https://statmt.org/x/a.txt").read_bytes() == b"by path"
    assert downloader.fetch("https://statmt.org/x/b.txt").read_bytes() == b"by name"
    with raising(DownloadError, f"{server.url}/m", "https://statmt.org/c.txt"):
        downloader.fetch("https://statmt.org/c.txt")


def test_a_mirror_folder_is_searched_by_path_and_then_by_name(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    (mirror / "statmt.org/x").mkdir(parents=True)
    (mirror / "statmt.org/x/a.txt").write_bytes(b"by path")
    (mirror / "b.txt").write_bytes(b"by name")
    downloader = Downloader(tmp_path / "downloads", mirror=str(mirror))
    assert downloader.fetch("https://statmt.org/x/a.txt").read_bytes() == b"by path"
    assert downloader.fetch("https://statmt.org/x/b.txt").read_bytes() == b"by name"
    with raising(DownloadError, mirror / "statmt.org/c.txt", mirror / "c.txt"):
        downloader.fetch("https://statmt.org/c.txt")


def test_a_mirror_that_is_not_there_is_named(tmp_path: Path) -> None:
    with raising(DownloadError, "nowhere:", "--mirror"):
        Downloader(tmp_path, mirror="nowhere").fetch("https://statmt.org/a.txt")


def test_a_downloads_folder_is_a_mirror(server: Server, downloader: Downloader, tmp_path: Path) -> None:
    server.files["/corpus/a.txt"] = TEXT
    downloader.fetch(f"{server.url}/corpus/a.txt")
    offline = Downloader(tmp_path / "offline", mirror=str(downloader.folder))
    assert offline.fetch(f"{server.url}/corpus/a.txt").read_bytes() == TEXT


def test_a_mirror_is_held_to_the_pinned_checksum(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}/a.txt"
    server.files["/a.txt"] = TEXT
    Downloader(tmp_path / "downloads").fetch(url).unlink()
    (tmp_path / "a.txt").write_bytes(b"another")
    with raising(DownloadError, *(hashlib.sha256(each).hexdigest() for each in (TEXT, b"another"))):
        Downloader(tmp_path / "downloads", mirror=str(tmp_path)).fetch(url)


def test_an_address_cannot_lead_out_of_the_folder() -> None:
    assert str(place("https://host/../../%2e%2e/etc/passwd")) == "host/etc/passwd"
    assert str(place("https://user:secret@host:8080/a//b.gz?x=1/2")) == "host/a/b.gz@x=1%2F2"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/a", "https://host/", "a.txt"])
def test_only_http_addresses_of_files_are_fetched(downloader: Downloader, url: str) -> None:
    with raising(DownloadError, url, "http", "https"):
        downloader.fetch(url)
