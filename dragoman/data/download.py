"""Downloads files from their address or from a mirror, resumes them, keeps them, and checks their checksums.

The file of `https://HOST/PATH/NAME` is kept at `HOST/PATH/NAME` in the downloads folder. A mirror (a folder
or a URL) is asked for `HOST/PATH/NAME` and then for `NAME`, so one machine's downloads folder can be the
mirror for another.

`checksums.json` in the downloads folder pins the checksum of each file at its first download. If the file
differs later, that is an error, so that no run trains on data that changed unnoticed. A file without a
published checksum is trusted at its first download, and the user is told so once.

Tested against a local server that breaks off, serves wrong files and answers 404.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from dragoman import atomic
from dragoman.content import read_whole
from dragoman.data import archive
from dragoman.data.transfer import CHUNK_BYTES, NotFound, Report, transfer, version_file
from dragoman.errors import DownloadError

Progress = Callable[[str, int, int | None], None]  # file name, bytes so far, bytes in all if known


def no_progress(name: str, done_bytes: int, total_bytes: int | None) -> None:
    """Shows nothing."""


@dataclass(frozen=True)
class Downloader:
    """Fetches files into one folder."""

    folder: Path
    mirror: str | None = None  # a folder, or a URL that begins with http
    progress: Progress = no_progress
    tell: Callable[[str], None] = lambda line: None
    pause_seconds: float = 1.0  # before the first retry, doubled for each further one

    def fetch(self, url: str, *, sha256: str | None = None, md5: str | None = None) -> Path:
        """The local path of a URL's file, downloaded if need be. The checksums given are published ones."""
        path = self.folder / place(url)
        self._pins()  # reports a damaged checksums.json before anything is downloaded
        if path.exists():
            self._check(url, path, sha256, md5)
            return path
        part = path.with_name(path.name + ".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        self._obtain(url, part)
        try:
            self._check(url, part, sha256, md5)
        except DownloadError as error:
            rejected = part.replace(path.with_name(path.name + ".rejected"))
            version_file(part).unlink(missing_ok=True)
            raise DownloadError(f"{url}: {error.what}", path=rejected, hint=error.hint) from None
        atomic.sync(part)
        part.replace(path)
        version_file(part).unlink(missing_ok=True)
        return path

    def _obtain(self, url: str, part: Path) -> None:
        def report(done_bytes: int, total_bytes: int | None) -> None:
            self.progress(place(url).name, done_bytes, total_bytes)

        if self.mirror is None:
            transfer(url, part, report, self.pause_seconds)
        elif self.mirror.startswith(("http://", "https://")):
            self._from_mirror_url(url, part, report)
        else:
            self._from_mirror_folder(url, part, report)

    def _from_mirror_url(self, url: str, part: Path, report: Report) -> None:
        base = str(self.mirror).rstrip("/")
        addresses = [f"{base}/{quote(str(name))}" for name in (place(url), place(url).name)]
        for address in addresses:
            try:
                return transfer(address, part, report, self.pause_seconds)
            except NotFound:
                continue
        raise self._not_in_mirror(url, addresses)

    def _from_mirror_folder(self, url: str, part: Path, report: Report) -> None:
        folder = Path(str(self.mirror))
        if not folder.is_dir():
            raise DownloadError(
                "the mirror is not a folder", path=folder, hint="give --mirror a folder or a URL"
            )
        files = [folder / name for name in (place(url), place(url).name)]
        for file in files:
            if file.is_file():
                return _copy(file, part, report)
        raise self._not_in_mirror(url, [str(file) for file in files])

    def _not_in_mirror(self, url: str, tried: list[str]) -> DownloadError:
        return DownloadError(
            f"the mirror {self.mirror} does not have {url}; looked for {' and '.join(tried)}",
            hint=f"download {url} on a machine with internet access and put it there",
        )

    def _check(self, url: str, path: Path, sha256: str | None, md5: str | None) -> None:
        """Raises unless the file has the right kind, the published checksums and the pinned checksum.

        Pins its checksum if it is new.
        """
        archive.check_kind(path, place(url).name)
        pins = self._pins()
        actual = {"sha256": _digest(path, "sha256")}
        if md5:
            actual["md5"] = _digest(path, "md5")
        published = {"sha256": sha256, "md5": md5}
        pinned = {"sha256": pins.get(url, {}).get("sha256")}
        for origin, expected in (("published", published), ("pinned at the first download", pinned)):
            for algorithm, checksum in expected.items():
                if checksum and checksum != actual[algorithm]:
                    what = f"not the file expected: {algorithm} {actual[algorithm]}, {origin}: {checksum}"
                    hint = "remove this file and run again"
                    if expected is pinned:
                        hint += f"; if its owner changed it on purpose, also remove it from {self._pins_path}"
                    raise DownloadError(what, path=path, hint=hint)
        if url not in pins:
            pins[url] = {"sha256": actual["sha256"], "bytes": path.stat().st_size}
            text = json.dumps(pins, indent=1, sort_keys=True) + "\n"
            atomic.write(self._pins_path, text.encode())
            if not (sha256 or md5):
                self.tell(
                    f"{place(url).name}: trusted at first download, because no checksum is published; "
                    f"from now on it must have sha256 {actual['sha256']} ({self._pins_path})"
                )

    @property
    def _pins_path(self) -> Path:
        return self.folder / "checksums.json"

    def _pins(self) -> dict[str, dict[str, object]]:
        try:
            pins = json.loads(read_whole(self._pins_path, DownloadError))
            if not isinstance(pins, dict) or not all(isinstance(pin, dict) for pin in pins.values()):
                raise ValueError("expected an object for each address")
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError) as error:
            raise DownloadError(
                f"not a list of checksums: {error}",
                path=self._pins_path,
                hint="remove it; the files downloaded so far are then trusted as they are",
            ) from None
        return pins


def place(url: str) -> PurePosixPath:
    """The path of this URL's file inside the downloads folder: HOST/PATH/NAME."""
    parts = urlsplit(url)
    segments = [part for part in unquote(parts.path).split("/") if part not in ("", ".", "..")]
    if parts.scheme not in ("http", "https") or not parts.hostname or not segments:
        raise DownloadError(f"{url} is not the http or https address of a file")
    if parts.query:
        segments[-1] += "@" + quote(parts.query, safe="=&")
    return PurePosixPath(parts.hostname, *segments)


def _copy(file: Path, part: Path, report: Report) -> None:
    version_file(part).unlink(missing_ok=True)  # an earlier download's part is overwritten
    total_bytes, done_bytes = file.stat().st_size, 0
    if total_bytes > shutil.disk_usage(part.parent).free:
        raise DownloadError(f"needs {total_bytes / 1e9:.2f} GB, more than is free", path=part.parent)
    with file.open("rb") as source, part.open("wb") as out:
        report(0, total_bytes)
        while chunk := source.read(CHUNK_BYTES):
            out.write(chunk)
            done_bytes += len(chunk)
            report(done_bytes, total_bytes)


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
