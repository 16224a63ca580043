"""Clients that dribble hold nobody up, and are sent away."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from pathlib import Path

from tests.serve import stand_in
from tests.train.runs import wait_until

RECEIVE_SECONDS = 2
HEAD = (
    b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)


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
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        time.sleep(1.5 * RECEIVE_SECONDS)  # between requests a connection may rest
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost")
        began = time.monotonic()
        rest(connection)
        assert time.monotonic() - began < 5 * RECEIVE_SECONDS


def test_nonsense_instead_of_http_is_a_400(tmp_path: Path) -> None:
    with stand_in.started(tmp_path) as server:
        for nonsense in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"GET / HTTP/9\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(nonsense)
                assert rest(connection).startswith(b"HTTP/1.1 400 ")
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000)
            assert rest(connection).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))
        with server.client() as client:
            assert client.get("/healthz").status_code == 200


def test_strangers_without_a_body_do_not_keep_out_those_who_have_the_token(tmp_path: Path) -> None:
    """The token of LibreTranslate's clients is in the body, so they cannot be sent away before it."""
    head = HEAD.replace(b"/v1/translate", b"/translate")
    with stand_in.started(tmp_path, "--token", "secret", "--requests", 4, "--strangers", 3) as server:
        strangers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(30)]
        for stranger in strangers:
            stranger.sendall(head)
        with server.client() as client:
            known = client.post(
                "/v1/translate", json={"text": "a"}, headers={"Authorization": "Bearer secret"}
            )
            assert known.status_code == 200
            libre = {"q": "a", "source": "en", "target": "de", "api_key": "secret"}
            refused = client.post("/translate", json=libre)
            assert refused.status_code == 429
            for stranger in strangers:
                stranger.close()
            wait_until("places", lambda: client.post("/translate", json=libre).status_code == 200)


def test_strangers_who_read_no_answer_do_not_keep_out_those_who_have_the_token(tmp_path: Path) -> None:
    asking = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n" * 1_000
    with stand_in.started(tmp_path, "--token", "secret", "--strangers", 1) as server:
        strangers = []
        for _ in range(2):
            stranger = socket.socket()
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            stranger.connect(("127.0.0.1", server.port))
            stranger.settimeout(3)
            strangers.append(stranger)
            with suppress(TimeoutError):  # the server reads no more: its answers are stuck
                while True:
                    stranger.sendall(asking)
        with server.client() as client:
            known = {"Authorization": "Bearer secret"}
            assert client.post("/v1/translate", json={"text": "a"}, headers=known).status_code == 200
            libre = {"q": "a", "source": "en", "target": "de", "api_key": "secret"}
            assert client.post("/translate", json=libre).status_code == 200
        for stranger in strangers:
            stranger.close()
