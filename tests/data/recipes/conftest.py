from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.data.corpus import Corpus
from dragoman.data.download import Downloader, place


class Mirror:
    """A folder that stands in for the internet."""

    def __init__(self, folder: Path):
        self.folder = folder

    def put(self, url: str, content: bytes) -> None:
        path = self.folder / place(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def put_tgz(self, url: str, members: dict[str, str]) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as out:
            for name, text in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(text.encode())
                out.addfile(info, io.BytesIO(text.encode()))
        self.put(url, buffer.getvalue())


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    (tmp_path / "mirror").mkdir()
    return Mirror(tmp_path / "mirror")


@pytest.fixture
def downloader(mirror: Mirror, tmp_path: Path) -> Downloader:
    return Downloader(tmp_path / "downloads", mirror=str(mirror.folder))


@pytest.fixture
def pairs() -> Callable[[Corpus], list[tuple[str, str]]]:
    """The pairs of a corpus as our own reader sees them."""
    from collections import Counter

    from dragoman.data.corpus import read

    def read_all(corpus: Corpus) -> list[tuple[str, str]]:
        return [
            (pair.source.decode(), pair.target.decode())
            for files in corpus.files
            for pair in read(corpus, files, Counter())
        ]

    return read_all
