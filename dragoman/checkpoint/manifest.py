"""manifest.json: the size, checksum and purpose of every file in a model's folder, so that damage is noticed.

Checkpoints and exported models have one. It also holds a checksum of itself, so that it cannot change
unnoticed; manifests of earlier versions do not.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from dragoman.errors import CheckpointError, reading

MANIFEST_FILE = "manifest.json"
_MOST_BYTES = 1 << 20  # of a manifest: a thousand times the size of ours


class ManifestFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    bytes: int
    sha256: str
    purpose: str


class Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = 1
    step: int | None = None  # of a checkpoint
    files: dict[str, ManifestFile]
    sha256: str | None = None  # of all fields above

    def checksum(self) -> str:
        return hashlib.sha256(self.model_dump_json(exclude={"sha256"}).encode()).hexdigest()


def write(folder: Path, purposes: Mapping[str, str], step: int | None = None) -> Manifest:
    """Writes the manifest of the named files, which must all exist."""
    files = {}
    for name, purpose in purposes.items():
        path = folder / name
        files[name] = ManifestFile(bytes=path.stat().st_size, sha256=_sha256(path), purpose=purpose)
    manifest = Manifest(step=step, files=files)
    manifest.sha256 = manifest.checksum()
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=1))
    return manifest


def read(folder: Path, known: Iterable[str]) -> Manifest:
    """Reads and checks a folder's manifest. It may only name known files: ../x, say, would lead elsewhere."""
    path = folder / MANIFEST_FILE
    with _readable(path):
        if _size(path) > _MOST_BYTES:
            raise CheckpointError(f"damaged: more than {_MOST_BYTES:,} bytes", path=path)
        manifest = Manifest.model_validate_json(path.read_bytes())
    if manifest.sha256 not in (None, manifest.checksum()):
        raise CheckpointError("damaged: not the content that was written", path=path)
    if unknown := sorted(manifest.files.keys() - set(known)):
        raise CheckpointError(f"names {unknown[0]!r}, which does not belong in such a folder", path=path)
    return manifest


def check(folder: Path, files: Mapping[str, ManifestFile]) -> None:
    """Raises unless all these files exist with the content that was written. Reads each file once."""
    for name, expected in files.items():
        path = folder / name
        with _readable(path):
            size = _size(path)
            if size != expected.bytes:
                raise CheckpointError(f"damaged: {size:,} bytes, {expected.bytes:,} were written", path=path)
            if _sha256(path) != expected.sha256:
                raise CheckpointError("damaged: not the content that was written", path=path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Reports a file that is missing or cannot be read from the disk as damage, like any other."""
    try:
        with reading(path, CheckpointError):
            yield
    except OSError as error:
        raise CheckpointError(f"damaged: {error.strerror}", path=path) from None


def _size(path: Path) -> int:
    """The size of a file, also through a link. Opening anything else, such as a pipe, could block."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointError("damaged: not a file", path=path)
    return status.st_size


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
