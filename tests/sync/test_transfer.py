"""Files between ranks of real processes."""

import errno
import os
from pathlib import Path

import pytest

from tests import ranks
from tests.ranks import Ended
from tests.sync import transfers


def three_ranks(folder: Path, *what: str) -> Ended:
    return ranks.run("tests.sync.transfers", [folder, *what], 3)


def own_errors(result: Ended) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("error:")]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ranks came to that did all that goes well, one after the other: a start of ranks takes seconds."""
    folder = tmp_path_factory.mktemp("transfers")
    result = three_ranks(folder, "sending", "sending_past_one", "owners")
    assert result.returncode == 0, result.stderr
    return folder


def test_a_folder_goes_through_one_rank_to_another(done: Path) -> None:
    for rank in "012":
        folder = done / "sending" / rank / "sent"
        assert {path.name for path in folder.iterdir()} == {"large", "empty"}
        assert (folder / "large").read_bytes() == transfers.content(transfers.BYTES)
        assert (folder / "empty").read_bytes() == b""


def test_ranks_that_get_nothing_are_not_kept_waiting(done: Path) -> None:
    sent, received, nothing = (done / "sending_past_one" / rank for rank in "012")
    assert (received / "file").read_bytes() == (sent / "file").read_bytes()
    assert not list(nothing.iterdir())


def test_a_link_in_the_place_of_a_file_that_arrives_is_not_followed(done: Path) -> None:
    assert (done / "sending_past_one" / "another's").read_text() == "untouched"
    assert not (done / "sending_past_one" / "1" / "file").is_symlink()


def test_hosts_with_one_disk_are_told_from_hosts_with_two(done: Path) -> None:
    for rank in "012":
        assert (done / "owners" / f"found-{rank}").read_text() == "{0: 0, 1: 1, 2: 0}"
    assert not list(done.rglob(".seen*"))


def test_what_arrives_damaged_does_not_appear(tmp_path: Path) -> None:
    result = three_ranks(tmp_path, "arriving_damaged")
    assert result.returncode == 1
    assert own_errors(result)
    assert not [path for rank in "12" for path in (tmp_path / "arriving_damaged" / rank).rglob("*")]


def test_a_rank_that_cannot_write_stops_all_and_says_why(tmp_path: Path) -> None:
    result = three_ranks(tmp_path, "without_room")
    assert result.returncode == 1
    assert own_errors(result) == [f"error: [Errno 28] {os.strerror(errno.ENOSPC)}"]
