"""The end: what was accepted is answered."""

from __future__ import annotations

import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.serve import stand_in
from tests.serve.stand_in import Server
from tests.serve.test_batching import ask


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_under_load_all_that_was_accepted_is_answered_and_nothing_new_is_taken(
    tmp_path: Path, number: signal.Signals
) -> None:
    with stand_in.started(tmp_path, "--batch-texts", 10) as server, ThreadPoolExecutor(30) as clients:
        with server.busy():
            accepted = [clients.submit(ask, server, f"text {place}") for place in range(30)]
            server.wait_for("dragoman_requests_under_way", 30)
            server.process.send_signal(number)
            wait_until_nothing_new_is_taken(server)
        answers = [one.result() for one in accepted]
        assert [answer.status_code for answer in answers] == [200] * 30
        assert answers[7].json()["translations"][0]["text"] == "TEXT 7"
        assert server.process.wait(30) == 0
        assert server.process.stderr
        assert server.process.stderr.read() == ""


def wait_until_nothing_new_is_taken(server: Server) -> None:
    deadline = time.monotonic() + stand_in.WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", server.port)).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.01)
    raise AssertionError("the server still takes connections")
