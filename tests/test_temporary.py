from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dragoman import temporary
from tests.train.runs import disk, started, wait_until

SCRIPT = """
import time
from dragoman import temporary
with temporary.folder("dragoman-test-") as folder:
    (folder / "file").touch()
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_is_left_by_a_process_that_is_told_to_end(number: signal.Signals, tmp_path: Path) -> None:
    with started([sys.executable, "-c", SCRIPT], env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        wait_until("the folder", lambda: list(tmp_path.glob("dragoman-test-*/file")), process)
        process.send_signal(number)
        process.wait(60)
    assert list(tmp_path.iterdir()) == []
    assert process.returncode == -number  # as without a folder


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    script = (
        "import os, signal; from dragoman import temporary; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with temporary.folder('x'): os.kill(os.getpid(), signal.SIGHUP)\n"
        "assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "TMPDIR": str(tmp_path)})


def test_a_thread_may_have_a_folder_too() -> None:
    seen = []

    def use() -> None:
        with temporary.folder("dragoman-test-") as folder:
            seen.append((folder, folder.is_dir()))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    ((folder, was_there),) = seen
    assert was_there and not folder.exists()


def test_a_full_disk_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with disk(tmp_path, "64k"):
        with pytest.raises(OSError) as caught, temporary.folder("dragoman-test-") as folder:
            (folder / "file").write_bytes(bytes(100_000))
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(folder))
        assert list(tmp_path.iterdir()) == []
