"""Clients that send or read slowly hold nobody up, and are sent away."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.serve import stand_in
from tests.serve.conftest import TOKEN
from tests.serve.stand_in import Server
from tests.serve.test_batching import ask
from tests.train.runs import wait_until

RECEIVE_SECONDS = 2
HEAD = (
    b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)


Connect = Callable[..., socket.socket]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens connections, which are closed after the test."""
    with ExitStack() as opened:

        def connected(
            server: Server, receive_bytes: int | None = None, source: str = "127.0.0.1"
        ) -> socket.socket:
            connection = opened.enter_context(socket.socket())
            if receive_bytes:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            connection.bind((source, 0))
            connection.connect(("127.0.0.1", server.port))
            return connection

        yield connected


def rest(connection: socket.socket) -> bytes:
    """What the server says until it closes."""
    connection.settimeout(30)
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def test_half_a_header_and_half_a_body_end_in_time_and_others_are_served_meanwhile(tmp_path: Path) -> None:
    with stand_in.started(tmp_path, "--receive-seconds", RECEIVE_SECONDS) as server:
        began = time.monotonic()
        address = ("127.0.0.1", server.port)
        silent, dribbling, half = (socket.create_connection(address) for _ in range(3))
        many = [socket.create_connection(address) for _ in range(200)]
        half.sendall(HEAD + b'{"text": ')
        dribbling.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        with server.client() as client:
            assert client.post("/v1/translate", json={"text": "a"}).status_code == 200
        try:
            while time.monotonic() - began < 10 * RECEIVE_SECONDS:
                dribbling.sendall(b"x")  # never a whole line
                time.sleep(0.05)
        except OSError:
            pass
        assert time.monotonic() - began < 5 * RECEIVE_SECONDS
        assert rest(silent) == b""
        answer = rest(half)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"did not arrive within 2 s" in answer
        assert all(rest(connection) == b"" for connection in many)
        for connection in (silent, dribbling, half, *many):
            connection.close()


def test_a_second_request_on_the_same_connection_has_no_more_patience(tmp_path: Path) -> None:
    with (
        stand_in.started(tmp_path, "--receive-seconds", RECEIVE_SECONDS) as server,
        socket.create_connection(("127.0.0.1", server.port)) as connection,
    ):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        time.sleep(1.5 * RECEIVE_SECONDS)  # between requests a connection may rest
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost")
        began = time.monotonic()
        rest(connection)
        assert time.monotonic() - began < 5 * RECEIVE_SECONDS


@pytest.mark.parametrize("token", [(), ("--token", TOKEN)])
def test_bodies_that_never_come_keep_no_place(
    connect: Connect, tmp_path: Path, token: tuple[str, ...]
) -> None:
    """Also of strangers: the token of LibreTranslate's clients is in the body."""
    with stand_in.started(tmp_path, "--requests", 4, *token) as server, server.client() as client:
        slow = [connect(server) for _ in range(12)]
        for number, connection in enumerate(slow):
            connection.sendall(HEAD.replace(b"/v1/translate", (b"/v1/translate", b"/translate")[number % 2]))
        known = {"Authorization": f"Bearer {TOKEN}"}
        assert client.post("/v1/translate", json={"text": "a"}, headers=known).status_code == 200
        asked = {"q": "a", "source": "en", "target": "de", "api_key": TOKEN}
        assert client.post("/translate", json=asked).status_code == 200


def test_clients_that_never_read_keep_nobody_out_and_are_sent_away(connect: Connect, tmp_path: Path) -> None:
    with stand_in.started(tmp_path, "--requests", 8, "--send-seconds", 1) as server:
        unread = []
        for _ in range(12):
            connection = connect(server, receive_bytes=4_096)
            connection.sendall(big_request() * 3)  # the first answer is more than the system takes
            unread.append(connection)
            server.wait_for('dragoman_requests_total{path="/v1/translate",status="200"}', len(unread))
        with server.client() as client:
            assert client.post("/v1/translate", json={"text": "a"}).status_code == 200
        assert server.metric("dragoman_requests_under_way") == 0
        for connection in unread:
            wait_until("the end of a connection", lambda: is_closed(connection))  # noqa: B023


def test_answers_that_nobody_reads_do_not_fill_the_memory(connect: Connect, tmp_path: Path) -> None:
    """16 MB of them are kept, of 1.2 MB each here; the oldest go first."""
    with stand_in.started(tmp_path) as server:
        unread = []
        for _ in range(25):
            connection = connect(server, receive_bytes=4_096)
            connection.sendall(big_request("\u0390"))  # three letters in capitals, six bytes
            unread.append(connection)
            server.wait_for('dragoman_requests_total{path="/v1/translate",status="200"}', len(unread))
        assert [is_closed(connection) for connection in unread[:5]] == [True] * 5
        assert [is_closed(connection) for connection in unread[-10:]] == [False] * 10


def test_of_too_many_connections_the_oldest_idle_one_of_the_greediest_client_goes(
    connect: Connect, tmp_path: Path
) -> None:
    words = ("--requests", 8, "--receive-seconds", 60)  # 32 connections
    with stand_in.started(tmp_path, *words) as server, ThreadPoolExecutor(1) as clients:
        with server.busy():
            working = clients.submit(ask, server, "working")
            server.wait_for_call()
            modest = [connect(server, source="127.0.0.2") for _ in range(3)]
            greedy = [connect(server) for _ in range(60)]
            with server.client() as client:
                assert client.get("/healthz").status_code == 200
        assert working.result().status_code == 200  # though it is the oldest: it waits for the server
        assert [is_closed(connection) for connection in modest] == [False] * 3
        assert [is_closed(connection) for connection in greedy[:30]] == [True] * 30
        assert [is_closed(connection) for connection in greedy[-20:]] == [False] * 20


def test_clients_that_leave_at_any_moment_leave_no_trace(connect: Connect, tmp_path: Path) -> None:
    request = big_request()
    with stand_in.started(tmp_path) as server:
        for cut in (1, 40, len(request) - 10_000, len(request) - 1, len(request)):
            for how in (socket.SHUT_WR, socket.SHUT_RDWR, None):
                connection = connect(server)
                connection.sendall(request[:cut])
                if how is not None:
                    connection.shutdown(how)
                else:  # in the midst of the answer, if there is one
                    connection.settimeout(0.1)
                    with suppress(TimeoutError):
                        connection.recv(1_000)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
        with server.client() as client:
            assert client.post("/v1/translate", json={"text": "a"}).status_code == 200
        assert server.metric("dragoman_requests_under_way") == 0
        server.process.terminate()
        _, log = server.process.communicate(timeout=60)
        assert log == ""


def big_request(letter: str = "x") -> bytes:
    body = json.dumps({"text": letter * 20_000, "alternatives": 9}).encode()
    return HEAD.replace(b"100", b"%d" % len(body)) + body


def is_closed(connection: socket.socket) -> bool:
    """By the server, without reading what it sent."""
    watched = select.poll()
    watched.register(connection, 0)  # asked for nothing, it tells of errors and ends
    return bool(watched.poll(0))
