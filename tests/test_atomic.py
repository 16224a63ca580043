from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import atomic
from dragoman.errors import UsageError
from tests.facts import raising
from tests.train.runs import disk


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_has_its_name_only_when_the_block_ends_well(tmp_path: Path) -> None:
    with atomic.appearing(tmp_path / "missing" / "whole") as unfinished:
        (unfinished / "deep").mkdir()
        (unfinished / "deep" / "file").write_text("content")
        assert not (tmp_path / "missing" / "whole").exists()
    assert (tmp_path / "missing" / "whole" / "deep" / "file").read_text() == "content"
    assert names(tmp_path / "missing") == ["whole"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_a_broken_block_leaves_nothing(kind: type[BaseException], tmp_path: Path) -> None:
    with pytest.raises(kind), atomic.appearing(tmp_path / "whole") as unfinished:
        (unfinished / "file").write_text("content")
        raise kind
    assert names(tmp_path) == []


def test_what_a_killed_process_left_does_not_get_into_the_next_attempt(tmp_path: Path) -> None:
    (tmp_path / "whole.unfinished").mkdir()
    (tmp_path / "whole.unfinished" / "old").write_text("half")
    with atomic.appearing(tmp_path / "whole") as unfinished:
        (unfinished / "new").write_text("all")
    assert names(tmp_path / "whole") == ["new"]


def test_a_folder_in_use_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "precious").write_text("mine")
    with pytest.raises(OSError), atomic.appearing(tmp_path / "whole") as unfinished:
        (unfinished / "file").write_text("content")
    assert names(tmp_path) == ["whole"]
    assert names(tmp_path / "whole") == ["precious"]


def test_a_new_file_has_the_mode_asked_for_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.touch()
    old.chmod(0o640)
    for path in (new, old):
        atomic.write(path, b"content", 0o600)
    assert (stat.S_IMODE(new.stat().st_mode), stat.S_IMODE(old.stat().st_mode)) == (0o600, 0o640)


def test_a_file_is_replaced_in_one_move(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic.write(path, b"old")
    with path.open("rb") as reader:
        atomic.write(path, b"newer")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"newer"


def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    atomic.write(path, b"old")

    def disk_full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "sync", disk_full)
    with pytest.raises(OSError):
        atomic.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def closed_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_what_is_new_has_the_mode_that_the_umask_leaves(tmp_path: Path, closed_umask: None) -> None:
    atomic.write(tmp_path / "file", b"content")
    with atomic.appearing(tmp_path / "folder") as unfinished:
        (unfinished / "file").touch()
    assert mode(tmp_path / "file") == mode(tmp_path / "folder" / "file") == 0o600
    assert mode(tmp_path / "folder") == 0o700


@pytest.mark.parametrize("kept", [0o600, 0o664, 0o755])
def test_what_is_replaced_keeps_its_mode_also_while_it_is_written(kept: int, tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("old")
    folder.mkdir()
    file.chmod(kept)
    folder.chmod(kept | 0o100)
    with atomic.replacing(file), atomic.appearing(folder):
        assert mode(tmp_path / "file.unfinished") == kept
        assert mode(tmp_path / "folder.unfinished") == kept | 0o100
    assert (mode(file), mode(folder)) == (kept, kept | 0o100)


@pytest.mark.skipif(os.geteuid() != 0, reason="to give files away needs root")
def test_what_root_replaces_keeps_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    os.chown(file, 1234, 1235)
    atomic.write(file, b"content")
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 1235)


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_the_file_behind_it_is_replaced(exists: bool, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    target, link = tmp_path / "deep" / "target", tmp_path / "link"
    if exists:
        target.write_text("old")
    (tmp_path / "deep" / "second").symlink_to("target")
    link.symlink_to("deep/second")
    atomic.write(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert names(tmp_path) == ["deep", "link"]
    assert names(tmp_path / "deep") == ["second", "target"]


def test_a_link_to_an_empty_folder_stays_and_the_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "big-disk").mkdir()
    (tmp_path / "data").symlink_to("big-disk")
    with atomic.appearing(tmp_path / "data") as unfinished:
        (unfinished / "file").write_text("content")
    assert (tmp_path / "data").is_symlink()
    assert names(tmp_path / "big-disk") == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="to make links of other users needs root")
def test_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    for name in ("link", "own"):
        (tmp_path / name).symlink_to("precious")
    os.lchown(tmp_path / "link", 1234, 1234)
    with pytest.raises(UsageError, match="precious"):
        atomic.write(tmp_path / "link", b"theirs")
    (tmp_path / "own").unlink()
    (tmp_path / "own").symlink_to("link")
    with raising(UsageError, f"{tmp_path / 'link'}:"):
        atomic.write(tmp_path / "own", b"theirs")
    assert (tmp_path / "precious").read_text() == "mine"


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UsageError, match="circle"):
        atomic.write(tmp_path / "a", b"")


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_link_under_the_temporary_name_is_not_followed(is_folder: bool, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    if is_folder:
        (tmp_path / "out.unfinished").symlink_to(precious)
        with atomic.appearing(tmp_path / "out") as unfinished:
            (unfinished / "file").write_text("new")
    else:
        (tmp_path / "out.unfinished").symlink_to(precious / "file")
        atomic.write(tmp_path / "out", b"new")
    assert (precious / "file").read_text() == "mine"
    assert names(tmp_path) == ["out", "precious"]
    assert not (tmp_path / "out").is_symlink()


def test_what_a_killed_writer_left_of_a_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "file.unfinished").write_text("a long half of something")
    atomic.write(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    atomic.write(pipe, b"content")
    reader.join()
    assert read == [b"content"]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize(("minor", "is_full"), [(3, False), (7, True)])  # as /dev/null and /dev/full
def test_a_device_is_written_to_and_stays_a_device(minor: int, is_full: bool, tmp_path: Path) -> None:
    device = tmp_path / "device"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        device.open("wb").close()
    except PermissionError:
        pytest.skip("to make a device needs root")
    (tmp_path / "link").symlink_to("device")
    for path in (device, tmp_path / "link"):
        if is_full:
            with pytest.raises(OSError) as caught:
                atomic.write(path, b"content")
            assert caught.value.filename == str(path)
        else:
            atomic.write(path, b"content")
    assert device.is_char_device()
    assert names(tmp_path) == ["device", "link"]


@pytest.mark.parametrize("name", ["stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_where_it_stands(name: str, tmp_path: Path) -> None:
    # A link like /dev/stdout, and not that one itself: a mistake would replace it for the whole machine.
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    script = (
        "import os, sys; from pathlib import Path; from dragoman import atomic; os.write(1, b'before ')\n"
        "atomic.write(Path(sys.argv[1]), b'content'); os.write(1, b' after')"
    )
    with (tmp_path / "file").open("wb") as out:
        subprocess.run([sys.executable, "-c", script, tmp_path / name], stdout=out, check=True)
    assert (tmp_path / "file").read_text() == "before content after"
    assert names(tmp_path) == ["file", "stdout"]
    assert (tmp_path / "stdout").is_symlink()


def test_a_full_disk_is_named_by_the_file_or_folder_asked_for(tmp_path: Path) -> None:
    with disk(tmp_path, "64k"):
        path = tmp_path / "whole"
        with pytest.raises(OSError) as of_file:
            atomic.write(path, bytes(100_000))
        with pytest.raises(OSError) as of_folder, atomic.appearing(path) as unfinished:
            (unfinished / "file").write_bytes(bytes(100_000))
        assert of_file.value.filename == of_folder.value.filename == str(path)
        assert names(tmp_path) == []
