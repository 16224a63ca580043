"""A data set on its way to another host. Hosts share the machine's files, but for a folder of their own."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import Cluster
from tests.facts import lacking
from tests.train import runs
from tests.train.runs import Task

pytestmark = pytest.mark.usefixtures("rsync")


class Place:
    """Where the data set is on h0 and is to be on h1: one path, two folders."""

    def __init__(self, cluster: Cluster, data: Path):
        self.cluster, self.data = cluster, data
        self.far = Path(f"/proc/{cluster.first_process(1)}/root{data}")

    def copy(self, hosts: str = "h0,h1", **options: dict[str, str]) -> subprocess.CompletedProcess[str]:
        words = ["launch", "copy", "--hosts", hosts, "--data", str(self.data)]
        return self.cluster.run(0, [*runs.DRAGOMAN, *words], check=False, **options)

    def has_arrived(self) -> bool:
        files = [path for path in self.data.rglob("*") if path.is_file()]
        copies = [self.far / path.relative_to(self.data) for path in files]
        return [path.read_bytes() for path in files] == [
            copy.read_bytes() for copy in copies if copy.exists()
        ]


@pytest.fixture
def place(cluster: Cluster, task: Task, tmp_path: Path) -> Iterator[Place]:
    data = tmp_path / "own" / "a data set; $(reboot)"
    shutil.copytree(task.data, data)
    cluster.run(1, ["mount", "-t", "tmpfs", "tmpfs", data.parent])
    yield Place(cluster, data)
    cluster.run(1, ["umount", data.parent])


def sent_to(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The hosts to which so many GB were sent."""
    return re.findall(r"(?m)^(h\d): .*\bGB$", done.stderr)


def rsync_is(folder: Path, script: str) -> dict[str, str]:
    """The environment in which `rsync` is this instead."""
    program = folder / "bin" / "rsync"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:/usr/bin:/bin:/usr/sbin:/sbin"}


def test_a_copy_arrives_whole_and_is_not_sent_twice(place: Place) -> None:
    first = place.copy()
    assert first.returncode == 0, first.stderr
    assert sent_to(first) == ["h1"], "h0 is this machine"
    assert place.has_arrived()
    second = place.copy()
    assert second.returncode == 0
    assert sent_to(second) == [], "h1 has it already"
    assert not lacking(second.stderr, "h0:", "h1:")


def test_a_damaged_copy_is_mended_and_other_files_are_left_alone(place: Place) -> None:
    assert place.copy("h1").returncode == 0
    damaged = place.far / "train" / "source.tokens"
    content = bytearray(damaged.read_bytes())
    content[100] ^= 1
    before = damaged.stat()
    damaged.write_bytes(content)
    # size and time are as they were: only the content tells
    place.cluster.run(
        1, ["touch", "-d", f"@{before.st_mtime_ns / 1e9:.9f}", place.data / "train/source.tokens"]
    )
    (place.far / "notes.txt").write_text("of somebody else")
    done = place.copy("h1")
    assert done.returncode == 0, done.stderr
    assert sent_to(done) == ["h1"]
    assert place.has_arrived()
    assert (place.far / "notes.txt").read_text() == "of somebody else"


def test_a_copy_that_arrives_damaged_is_named(place: Place, tmp_path: Path) -> None:
    """rsync that damages what it sends: a disk or a cable would."""
    damage = f"ssh h1 'printf x >> \"{place.data.parent}\"/*/vocabulary.model'"
    done = place.copy("h1", env=rsync_is(tmp_path, f'{shutil.which("rsync")} "$@"\n{damage}'))
    assert done.returncode == 1
    assert f"error: h1:{place.data}: " in done.stderr


def test_a_host_without_room_is_named_before_anything_is_sent(place: Place) -> None:
    place.cluster.run(1, ["mount", "-o", "remount,size=16k", place.data.parent])
    done = place.copy("h1")
    assert done.returncode == 1
    assert re.search(r"error: h1\b.*\b\d+\.\d\d MB\b.*\b0\.0\d MB\b", done.stderr), "needed and free"
    assert not list(place.far.iterdir())


def test_a_host_that_cannot_take_it_is_named(place: Place, tmp_path: Path) -> None:
    """rsync that fails as on a disk that is full by now, with and without a word of it."""
    for said, told in (("echo No space left >&2", "No space left"), ("", "exit code 11")):
        done = place.copy("h1", env=rsync_is(tmp_path, f"{said}\nexit 11"))
        assert done.returncode == 1
        assert "error: h1: " in done.stderr and not lacking(done.stderr, "rsync", told)


def test_what_is_damaged_here_is_not_sent(place: Place) -> None:
    tokens = place.data / "train" / "source.tokens"
    tokens.write_bytes(tokens.read_bytes()[::-1])
    done = place.copy("h1")
    assert done.returncode == 1
    assert f"error: {place.data}: " in done.stderr
    assert not place.far.exists()
