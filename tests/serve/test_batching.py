"""Requests that wait are translated together; too many are refused at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.serve import stand_in
from tests.serve.stand_in import Server


def ask(server: Server, text: object, **fields: object) -> httpx.Response:
    with server.client() as client:
        return client.post("/v1/translate", json={"text": text, **fields})


def test_what_waits_goes_as_one_batch_and_each_gets_its_own(tmp_path: Path) -> None:
    with stand_in.started(tmp_path, "--seconds", 1) as server, ThreadPoolExecutor(20) as clients:
        first = clients.submit(ask, server, "first")
        while not server.calls():
            time.sleep(0.01)
        others = [clients.submit(ask, server, [f"a{number}", f"b{number}"]) for number in range(15)]
        server.wait_for("dragoman_waiting_texts", 30)
        assert first.result().json()["translations"][0]["text"] == "FIRST"
        for number, other in enumerate(others):
            found = [one["text"] for one in other.result().json()["translations"]]
            assert found == [f"A{number}", f"B{number}"]
        assert [len(call["texts"]) for call in server.calls()] == [1, 30]  # type: ignore[arg-type]


def test_unlike_options_and_more_than_a_batch_holds_are_not_mixed(tmp_path: Path) -> None:
    words = ("--seconds", 0.5, "--batch-texts", 3)
    with stand_in.started(tmp_path, *words) as server, ThreadPoolExecutor(20) as clients:
        first = clients.submit(ask, server, "first")
        while not server.calls():
            time.sleep(0.01)
        clients.submit(ask, server, list("abcde"))
        server.wait_for("dragoman_waiting_texts", 5)
        wide = clients.submit(ask, server, "wide", options={"beam": 8})
        assert wide.result().status_code == first.result().status_code == 200
        calls = [(call["texts"], call["beam"]) for call in server.calls()]
        assert calls == [(["first"], 4), (list("abc"), 4), (list("de"), 4), (["wide"], 8)]


def test_past_the_limit_of_requests_the_answer_is_429_at_once(tmp_path: Path) -> None:
    words = ("--seconds", 1, "--requests", 4)
    with stand_in.started(tmp_path, *words) as server, ThreadPoolExecutor(40) as clients:

        def timed(number: int) -> tuple[int, float, str | None]:
            began = time.monotonic()
            answer = ask(server, f"text {number}")
            return answer.status_code, time.monotonic() - began, answer.headers.get("retry-after")

        kept = [clients.submit(timed, number) for number in range(4)]
        server.wait_for("dragoman_requests_under_way", 4)
        refused = [clients.submit(timed, number).result() for number in range(10)]
        assert {status for status, _, _ in refused} <= {429, 200}
        assert refused[0][0] == 429
        assert all((seconds < 1, retry) == (True, "1") for status, seconds, retry in refused if status == 429)
        assert [one.result()[0] for one in kept] == [200] * 4
        assert ask(server, "again").status_code == 200


def test_past_the_limit_of_waiting_characters_too(tmp_path: Path) -> None:
    words = ("--seconds", 1, "--characters", 100)
    with stand_in.started(tmp_path, *words) as server, ThreadPoolExecutor(20) as clients:
        sent = [clients.submit(ask, server, "x" * 100) for _ in range(15)]
        statuses = [one.result().status_code for one in sent]
        assert set(statuses) == {200, 429}
        assert statuses.count(200) >= 10


def test_a_client_that_leaves_takes_its_text_out_of_the_queue(tmp_path: Path) -> None:
    with stand_in.started(tmp_path, "--seconds", 1) as server, ThreadPoolExecutor(4) as clients:
        first = clients.submit(ask, server, "first")
        while not server.calls():
            time.sleep(0.01)
        with server.client() as client:
            try:
                client.post("/v1/translate", json={"text": "impatient"}, timeout=0.2)
            except httpx.TimeoutException:
                pass
            else:
                raise AssertionError("the server was to be busy")
        assert first.result().status_code == 200
        assert ask(server, "last").status_code == 200
        assert [call["texts"] for call in server.calls()] == [["first"], ["last"]]
        assert server.metric('dragoman_requests_total{path="/v1/translate",status="499"}') == 1
