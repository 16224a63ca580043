from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import atomic


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
