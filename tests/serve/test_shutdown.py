"""The end: what was accepted is answered."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.serve import stand_in
from tests.serve.test_batching import ask


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_under_load_all_that_was_accepted_is_answered_and_nothing_new_is_taken(
    tmp_path: Path, number: signal.Signals
) -> None:
    words = ("--seconds", 3, "--batch-texts", 10)  # long enough for all clients to have come
    with stand_in.started(tmp_path, *words) as server, ThreadPoolExecutor(30) as clients:
        accepted = [clients.submit(ask, server, f"text {place}") for place in range(30)]
        server.wait_for("dragoman_requests_under_way", 30)
        server.process.send_signal(number)
        answers = [one.result() for one in accepted]
        assert [answer.status_code for answer in answers] == [200] * 30
        assert answers[7].json()["translations"][0]["text"] == "TEXT 7"
        assert server.process.wait(30) == 0
        with pytest.raises(httpx.ConnectError):
            ask(server, "late")
        assert server.process.stderr
        assert server.process.stderr.read() == ""
