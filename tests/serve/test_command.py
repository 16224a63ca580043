"""`dragoman serve` as users call it, with a model that was trained."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.facts import lacking
from tests.test_cli import dragoman
from tests.train.conftest import Unbroken
from tests.train.runs import DRAGOMAN, started


def test_a_run_is_served_until_it_is_told_to_stop(unbroken: Unbroken, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    words = ["serve", f"reverse={unbroken(1)}", str(unbroken(1)), "--port", "0", "--token-file", str(token)]
    with started([*DRAGOMAN, *words]) as process:
        assert process.stdout
        line = process.stdout.readline()
        found = re.search(r"\b(http://127\.0\.0\.1:\d+/)\n", line)
        assert found and not lacking(line, "reverse", unbroken(1).name), line
        headers = {"Authorization": "Bearer 0123456789abcdef"}
        with httpx.Client(base_url=found[1], headers=headers, timeout=60) as client:
            body = {"text": ["red blue green.", "", "\x00\u2028 tall\n\nold"], "alternatives": 2}
            answer = client.post("/v1/translate", json=body).json()
            assert [answer["model"], answer["source"], answer["target"]] == ["reverse", "en", "de"]
            first, empty, _ = answer["translations"]
            assert first["text"]
            assert len(first["alternatives"]) == 2
            assert (empty["text"], empty["alternatives"]) == ("", [])
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ("--host 0.0.0.0", ["0.0.0.0", "--token-file"]),
        ("--host :: --port 0", ["::", "--token-file"]),
        ("--host example.org", ["example.org", "--token-file"]),
        ("--token-file short", ["short:", 16]),
        ("--token-file none", ["none:", os.strerror(errno.ENOENT)]),
        ("--port 70000", [65535]),
    ],
)
def test_an_unsafe_or_wrong_start_is_wrong_use(words: str, facts: list[object], tmp_path: Path) -> None:
    (tmp_path / "short").write_text("abc\n")
    done = dragoman("serve", "run", *words.split(), folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert not lacking(done.stderr, *facts)
    assert "Traceback" not in done.stderr


def test_what_is_wrong_is_reported_before_torch_is_imported(tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; from dragoman.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", "run", "--token-file", "none"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (done.returncode, lacking(done.stderr, "none:")) == (2, []), done.stderr


def test_a_port_that_is_taken_is_reported_before_a_model_is_loaded(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = dragoman("serve", "no-such-run", "--port", taken.getsockname()[1], folder=tmp_path)
    assert (done.returncode, os.strerror(errno.EADDRINUSE) in done.stderr) == (1, True), done.stderr


def test_a_folder_without_a_model_is_wrong_use(tmp_path: Path) -> None:
    done = dragoman("serve", tmp_path, "--port", 0)
    assert (done.returncode, f"error: {tmp_path}: " in done.stderr) == (2, True), done.stderr
