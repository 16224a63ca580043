"""Downloads one file over HTTP, and resumes where it broke off, within one call or in a later one."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import ssl
import string
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from dragoman.errors import DownloadError

CHUNK_BYTES = 1 << 18
TIMEOUT_SECONDS = 60.0  # without a single byte
ATTEMPTS = 5  # in a row without a new byte

Report = Callable[[int, int | None], None]  # bytes so far, total bytes if the server gives them

_RETRYABLE = (ConnectionError, TimeoutError, http.client.HTTPException, ssl.SSLError)
_PERMANENT = (socket.gaierror, ConnectionRefusedError, ssl.SSLCertVerificationError)
_BUSY = (408, 429)  # and all of 5xx


class NotFound(DownloadError):
    """The server answered that it does not have the file."""


class _BrokenOff(Exception):
    """This attempt ended early; the next may continue."""


@dataclass(frozen=True)
class _Version:
    """A version of a file on a server. A partial file may be continued only with the same version."""

    url: str
    validator: str | None  # a strong ETag or a date, for If-Range
    total_bytes: int | None


def transfer(url: str, part: Path, report: Report, pause_seconds: float = 1.0) -> None:
    """Downloads `url` into `part`, after the bytes already there. Returns when the file is complete.

    On failure the bytes received stay in `part`, and `version_file` beside it says which version they belong
    to. That file also stays after success: the caller removes it after renaming `part`.
    """
    furthest_bytes, failures = _size(part), 0
    while True:
        try:
            return _attempt(url, part, report)
        except _BrokenOff as error:
            # Only bytes beyond the furthest point count as progress. Otherwise a server that breaks off and
            # cannot continue would be asked for ever.
            failures = 0 if _size(part) > furthest_bytes else failures + 1
            furthest_bytes = max(furthest_bytes, _size(part))
            if failures >= ATTEMPTS:
                raise DownloadError(
                    f"{url} broke off {ATTEMPTS} times in a row: {error}",
                    hint=f"run the command again to continue from byte {_size(part):,}, or give a --mirror",
                ) from None
            time.sleep(pause_seconds * 2**failures)
        except OSError as error:
            raise DownloadError(f"cannot be written: {error}", path=part) from None


def _attempt(url: str, part: Path, report: Report) -> None:
    before = _read_version(part, url)
    offset = _size(part) if before else 0
    if before and offset and offset == before.total_bytes:  # stopped between the last byte and the renaming
        return
    request = Request(quote(url, safe=string.punctuation), headers={"User-Agent": "dragoman"})
    if before and offset:
        request.add_header("Range", f"bytes={offset}-")
        if before.validator:
            request.add_header("If-Range", before.validator)
    with _open(request, part) as response:
        now = _version(url, response)
        if response.status != 206:
            offset = 0  # no ranges here, or another version: the server sends the whole file
        elif before is None or not _continues(response, offset, before, now):
            part.unlink(missing_ok=True)
            raise _BrokenOff("the file has changed on the server")
        _check_space(part, url, (now.total_bytes or 0) - offset)
        version_file(part).write_text(json.dumps(asdict(now)), encoding="utf-8")
        done = _append(response, part, offset, now.total_bytes, report)
    if now.total_bytes is not None and done != now.total_bytes:
        raise _BrokenOff(f"received {done:,} of {now.total_bytes:,} bytes")


def _open(request: Request, part: Path) -> http.client.HTTPResponse:
    url = request.full_url
    try:
        return urlopen(request, timeout=TIMEOUT_SECONDS)
    except HTTPError as error:
        error.close()
        if error.code in (404, 410):
            raise NotFound(
                f"{url} was not found (HTTP {error.code})", hint="give a --mirror that has the file"
            ) from None
        if error.code == 416:  # `part` is longer than the file, so it belongs to another version
            part.unlink(missing_ok=True)
        elif error.code not in _BUSY and error.code < 500:
            raise DownloadError(
                f"{url} was refused (HTTP {error.code} {error.reason})", hint="give a --mirror"
            ) from None
        raise _BrokenOff(f"HTTP {error.code} {error.reason}") from None
    except URLError as error:
        if isinstance(error.reason, _PERMANENT):
            raise DownloadError(
                f"{url} cannot be reached: {error.reason}",
                hint="check the connection, or give a --mirror folder or URL that has the file",
            ) from None
        raise _BrokenOff(str(error.reason)) from None
    except _RETRYABLE as error:
        raise _BrokenOff(str(error) or type(error).__name__) from None


def _append(
    response: http.client.HTTPResponse, part: Path, offset: int, total: int | None, report: Report
) -> int:
    """Writes the response after `offset`; returns the bytes in the file then."""
    done = offset
    with part.open("ab" if offset else "wb") as out:
        while True:
            report(done, total)
            try:
                chunk = response.read(CHUNK_BYTES)
            except _RETRYABLE as error:
                raise _BrokenOff(str(error) or type(error).__name__) from None
            if not chunk:
                return done
            out.write(chunk)
            done += len(chunk)


def _version(url: str, response: http.client.HTTPResponse) -> _Version:
    etag = response.headers.get("ETag")
    strong = etag if etag and not etag.startswith("W/") else None
    if response.status == 206:
        match = re.fullmatch(r"bytes \d+-\d+/(\d+)", response.headers.get("Content-Range", ""))
        total = match[1] if match else None
    else:
        total = response.headers.get("Content-Length")
    return _Version(url, strong or response.headers.get("Last-Modified"), int(total) if total else None)


def _continues(response: http.client.HTTPResponse, offset: int, before: _Version, now: _Version) -> bool:
    starts_there = response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")
    same_length = now.total_bytes is not None and now.total_bytes == before.total_bytes
    return starts_there and same_length and now.validator in (None, before.validator)


def _check_space(part: Path, url: str, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(part.parent).free
    if needed_bytes > free_bytes:
        raise DownloadError(
            f"{url} needs {needed_bytes / 1e9:.2f} GB, but only {free_bytes / 1e9:.2f} GB are free",
            path=part.parent,
            hint="free some space, or choose a folder on another disk",
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def version_file(part: Path) -> Path:
    """The file that records which version `part` belongs to."""
    return part.with_name(part.name + ".json")


def _read_version(part: Path, url: str) -> _Version | None:
    """The version that `part` belongs to; None if that is unknown, or it came from another URL."""
    try:
        version = _Version(**json.loads(version_file(part).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return version if version.url == url else None
