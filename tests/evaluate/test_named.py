"""Test sets of sacreBLEU, taken from a mirror."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest
from sacrebleu import DATASETS
from sacrebleu.dataset.plain_text import PlainTextDataset

from dragoman.errors import DownloadError, UsageError
from dragoman.evaluate import named
from tests.facts import lacking, raising

URL = "https://example.org/sets/tiny.tgz"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the archive of a test set that sacreBLEU knows as `tiny`."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    with tarfile.open(folder / "tiny.tgz", "w:gz") as archive:
        for name, text in (("tiny.en", "one\ntwo\n"), ("tiny.de", "eins\nzwei\n")):
            member = tarfile.TarInfo(f"test/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    md5 = hashlib.md5((folder / "tiny.tgz").read_bytes()).hexdigest()
    files = ["test/tiny.en", "test/tiny.de"]
    known = PlainTextDataset("tiny", data=[URL], md5=[md5], langpairs={"en-de": files})
    monkeypatch.setitem(DATASETS, "tiny", known)
    return folder


def test_a_named_set_is_read_from_a_mirror_and_nothing_is_left_in_sacrebleus_folder(mirror: Path) -> None:
    found = named.find("tiny", ("en", "de"), str(mirror))
    assert (found.sources, found.references) == (["one", "two"], [["eins", "zwei"]])
    assert (found.name, found.languages) == ("tiny en-de", ("en", "de"))
    assert not Path(DATASETS["tiny"]._outdir).exists()
    assert sorted(path.name for path in mirror.iterdir()) == ["tiny.tgz"]


def test_a_file_that_is_not_the_published_one_is_refused(mirror: Path) -> None:
    DATASETS["tiny"].md5 = ["0" * 32]
    found = hashlib.md5((mirror / "tiny.tgz").read_bytes()).hexdigest()
    with raising(DownloadError, "0" * 32, found):
        named.find("tiny", ("en", "de"), str(mirror))


def test_a_mirror_without_it_says_what_to_put_there(mirror: Path) -> None:
    (mirror / "tiny.tgz").unlink()
    with raising(DownloadError, mirror, URL):
        named.find("tiny", ("en", "de"), str(mirror))


def test_an_unknown_name_and_an_unknown_pair_are_wrong_use(mirror: Path) -> None:
    with raising(UsageError, "wmt-14") as error:
        named.find("wmt-14", ("en", "de"), None)
    assert not lacking(error.value.hint, "wmt14")
    with raising(UsageError, "tiny", "de-en", "en-de"):
        named.find("tiny", ("de", "en"), str(mirror))
