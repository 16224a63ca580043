"""Requests that wait are translated together; too many are refused at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.facts import lacking
from tests.serve import stand_in
from tests.serve.stand_in import Server


def ask(server: Server, text: object, client: str | None = None, **fields: object) -> httpx.Response:
    """As a client of this address would, through a proxy on the same machine."""
    headers = {"X-Forwarded-For": client} if client else {}
    with server.client(headers=headers) as connected:
        return connected.post("/v1/translate", json={"text": text, **fields})


def test_what_waits_goes_as_one_batch_and_each_gets_its_own(tmp_path: Path) -> None:
    with stand_in.started(tmp_path) as server, ThreadPoolExecutor(20) as clients:
        with server.busy():
            first = clients.submit(ask, server, "first")
            server.wait_for_call()
            others = [clients.submit(ask, server, [f"a{number}", f"b{number}"]) for number in range(15)]
            server.wait_for("dragoman_waiting_texts", 30)
        assert first.result().json()["translations"][0]["text"] == "FIRST"
        for number, other in enumerate(others):
            found = [one["text"] for one in other.result().json()["translations"]]
            assert found == [f"A{number}", f"B{number}"]
        assert [len(call["texts"]) for call in server.calls()] == [1, 30]  # type: ignore[arg-type]


def test_unlike_options_and_more_than_a_batch_holds_are_not_mixed(tmp_path: Path) -> None:
    with stand_in.started(tmp_path, "--batch-texts", 3) as server, ThreadPoolExecutor(20) as clients:
        with server.busy():
            first = clients.submit(ask, server, "first")
            server.wait_for_call()
            clients.submit(ask, server, list("abcde"))
            server.wait_for("dragoman_waiting_texts", 5)
            wide = clients.submit(ask, server, "wide", options={"beam": 8})
            server.wait_for("dragoman_waiting_texts", 6)
        assert wide.result().status_code == first.result().status_code == 200
        calls = [(call["texts"], call["beam"]) for call in server.calls()]
        assert calls == [(["first"], 4), (list("abc"), 4), (list("de"), 4), (["wide"], 8)]


def test_past_the_limit_of_requests_the_answer_is_429_at_once(tmp_path: Path) -> None:
    with stand_in.started(tmp_path, "--requests", 4) as server, ThreadPoolExecutor(4) as clients:
        with server.busy():
            first = clients.submit(ask, server, "first", client="198.51.100.1")
            kept = [first, *(clients.submit(ask, server, f"text {number}") for number in range(3))]
            server.wait_for("dragoman_requests_under_way", 4)
            refused = [ask(server, f"more {number}") for number in range(10)]  # while nothing gets done
        assert [(one.status_code, one.headers["retry-after"]) for one in refused] == [(429, "1")] * 10
        assert [one.result().status_code for one in kept] == [200] * 4
        assert ask(server, "again").status_code == 200


def test_past_the_limit_of_characters_under_way_too(tmp_path: Path) -> None:
    with stand_in.started(tmp_path, "--characters", 100) as server, ThreadPoolExecutor(20) as clients:
        with server.busy():
            kept = [clients.submit(ask, server, "x" * 100) for _ in range(7)]
            kept += [clients.submit(ask, server, "x" * 100, client="198.51.100.1") for _ in range(3)]
            server.wait_for("dragoman_requests_under_way", 10)
            refused = ask(server, "x", client="198.51.100.2")
            nothing = clients.submit(ask, server, "")
        assert (refused.status_code, list(refused.json())) == (429, ["error"])
        assert not lacking(refused.json()["error"], "1,000 characters")
        assert [one.result().status_code for one in (*kept, nothing)] == [200] * 11


@pytest.mark.parametrize(("texts", "places"), [(["x"] * 20, 6), (["x" * 50] * 20, 15)])
def test_one_client_leaves_a_quarter_of_the_room_to_others(
    tmp_path: Path, texts: list[str], places: int
) -> None:
    """By requests in the first case, by characters in the second. All of it frees when they are done."""
    words = ("--characters", 100, "--requests", 8 if places == 6 else 40)
    with stand_in.started(tmp_path, *words) as server, ThreadPoolExecutor(30) as clients:
        with server.busy():
            greedy = [clients.submit(ask, server, text) for text in texts]
            server.wait_for("dragoman_requests_under_way", places)
            server.wait_for('dragoman_requests_total{path="/v1/translate",status="429"}', 20 - places)
            other = clients.submit(ask, server, "other", client="198.51.100.1")
            server.wait_for("dragoman_requests_under_way", places + 1)
        assert sorted(one.result().status_code for one in greedy) == [200] * places + [429] * (20 - places)
        assert other.result().status_code == 200
        assert [ask(server, "again").status_code for _ in range(3)] == [200] * 3
        assert server.metric("dragoman_requests_under_way") == 0


def test_a_client_that_leaves_takes_its_text_out_of_the_queue(tmp_path: Path) -> None:
    with stand_in.started(tmp_path) as server, ThreadPoolExecutor(4) as clients:
        with server.busy():
            first = clients.submit(ask, server, "first")
            server.wait_for_call()
            with server.client() as client, pytest.raises(httpx.TimeoutException):
                client.post("/v1/translate", json={"text": "impatient"}, timeout=0.5)
            server.wait_for('dragoman_requests_total{path="/v1/translate",status="499"}', 1)
            assert server.metric("dragoman_waiting_texts") == 0
        assert first.result().status_code == 200
        assert ask(server, "last").status_code == 200
        assert [call["texts"] for call in server.calls()] == [["first"], ["last"]]
