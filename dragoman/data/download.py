"""Downloads: kept, resumed, checked against the checksum of the first time, or taken from a mirror.

A file of `https://HOST/PATH/NAME` is kept at `HOST/PATH/NAME` in the downloads folder. A mirror (a folder
or a URL) is asked for `HOST/PATH/NAME` and then for `NAME`. So the downloads folder of one machine is a
mirror for another.

`checksums.json` in the downloads folder pins each file at its first download. A file that differs later is
an error: nothing is trained on data that changed unnoticed. A file without a published checksum is trusted
when it first comes, and the user is told so that one time.

Tested against a server on the same machine that breaks off, serves wrong files and answers 404.
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
from dragoman.data.transfer import CHUNK_BYTES, NotFound, Report, note, transfer
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
    pause_seconds: float = 1.0  # before the first new attempt, doubled for each further one

    def fetch(self, url: str, *, sha256: str | None = None, md5: str | None = None) -> Path:
        """The file of this address, downloaded if it is not here yet. Checksums given are its owner's."""
        path = self.folder / place(url)
        self._pins()  # a damaged list is its own error, before anything is fetched
        if path.exists():
            self._check(url, path, sha256, md5)
            return path
        part = path.with_name(path.name + ".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        self._bring(url, part)
        try:
            self._check(url, part, sha256, md5)
        except DownloadError as error:
            rejected = part.replace(path.with_name(path.name + ".rejected"))
            note(part).unlink(missing_ok=True)
            raise DownloadError(f"{url}: {error.what}", path=rejected, hint=error.hint) from None
        atomic.sync(part)
        part.replace(path)
        note(part).unlink(missing_ok=True)
        return path

    def _bring(self, url: str, part: Path) -> None:
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
        looked_at = [f"{base}/{quote(str(name))}" for name in (place(url), place(url).name)]
        for address in looked_at:
            try:
                return transfer(address, part, report, self.pause_seconds)
            except NotFound:
                continue
        raise self._not_in_mirror(url, looked_at)

    def _from_mirror_folder(self, url: str, part: Path, report: Report) -> None:
        folder = Path(str(self.mirror))
        if not folder.is_dir():
            raise DownloadError("the mirror is not a folder", path=folder, hint="--mirror FOLDER or URL")
        looked_at = [folder / name for name in (place(url), place(url).name)]
        for file in looked_at:
            if file.is_file():
                return _copy(file, part, report)
        raise self._not_in_mirror(url, [str(file) for file in looked_at])

    def _not_in_mirror(self, url: str, looked_at: list[str]) -> DownloadError:
        return DownloadError(
            f"the mirror {self.mirror} does not have {url}; looked for {' and '.join(looked_at)}",
            hint=f"download {url} on a machine with internet and put it there",
        )

    def _check(self, url: str, path: Path, sha256: str | None, md5: str | None) -> None:
        """The file is of its kind, has the published checksums, and is the one that came the first time."""
        archive.check_kind(path, place(url).name)
        pins = self._pins()
        found = {"sha256": _digest(path, "sha256")}
        if md5:
            found["md5"] = _digest(path, "md5")
        published = {"sha256": sha256, "md5": md5}
        pinned = {"sha256": pins.get(url, {}).get("sha256")}
        for origin, expected in (("published", published), ("pinned at the first download", pinned)):
            for algorithm, checksum in expected.items():
                if checksum and checksum != found[algorithm]:
                    what = f"not the file expected: {algorithm} {found[algorithm]}, {origin}: {checksum}"
                    hint = "remove this file and run again"
                    if expected is pinned:
                        hint += f"; if its owner changed it on purpose, its entry in {self._pins_path} too"
                    raise DownloadError(what, path=path, hint=hint)
        if url not in pins:
            pins[url] = {"sha256": found["sha256"], "bytes": path.stat().st_size}
            text = json.dumps(pins, indent=1, sort_keys=True) + "\n"
            atomic.write(self._pins_path, text.encode())
            if not (sha256 or md5):
                self.tell(
                    f"{place(url).name}: trusted at first download, as no checksum is published; "
                    f"from now on it must have sha256 {found['sha256']} ({self._pins_path})"
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
                hint="remove the file; what was downloaded is then trusted as it is",
            ) from None
        return pins


def place(url: str) -> PurePosixPath:
    """Where a file of this address is kept below the downloads folder: HOST/PATH/NAME."""
    parts = urlsplit(url)
    segments = [part for part in unquote(parts.path).split("/") if part not in ("", ".", "..")]
    if parts.scheme not in ("http", "https") or not parts.hostname or not segments:
        raise DownloadError(f"{url} is not the http or https address of a file")
    if parts.query:
        segments[-1] += "@" + quote(parts.query, safe="=&")
    return PurePosixPath(parts.hostname, *segments)


def _copy(file: Path, part: Path, report: Report) -> None:
    note(part).unlink(missing_ok=True)  # what a download left here is written over
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
