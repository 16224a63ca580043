"""Whatever arrives gets a refusal in JSON or ends its connection, and the next client is served."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest

from tests.serve import stand_in
from tests.serve.stand_in import Server
from tests.serve.test_slow_clients import rest

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Nothing that a client sends may end as a traceback in the log."""
    with stand_in.started(tmp_path_factory.mktemp("server"), "--receive-seconds", 2) as started:
        yield started
        started.process.terminate()
        _, log = started.process.communicate(timeout=60)
        assert set(log.splitlines()) <= {"WARNING:  Invalid HTTP request received."}


@pytest.fixture(autouse=True)
def honest(server: Server) -> Iterator[None]:
    """An honest request after each test."""
    yield
    with server.client() as client:
        assert client.post("/v1/translate", json={"text": "a"}).status_code == 200


def exchange(server: Server, requests: Sequence[bytes]) -> list[bytes]:
    """What the server says to each, on connections of their own, until it closes them."""
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in requests]
    for connection, request in zip(connections, requests, strict=True):
        with suppress(OSError):  # an attack may well be cut off
            connection.sendall(request)
    answers = []
    for connection in connections:
        with connection:
            answers.append(rest(connection))
    return answers


def refusals(answer: bytes) -> list[int]:
    """The statuses of all answers, each of which must be a refusal with its reason."""
    found = []
    while answer:
        head, _, answer = answer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        version, status, _ = first.split(" ", 2)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        assert version == "HTTP/1.1"
        assert headers["content-type"] == JSON
        assert headers["x-content-type-options"] == "nosniff"
        length = int(headers["content-length"])
        body, answer = answer[:length], answer[length:]
        found.append(int(status))
        assert 400 <= int(status) < 500, first
        assert json.loads(body)["error"]
    return found


DEEP = b"[" * 50_000 + b"]" * 50_000
GOOD = b'{"TEXT": "a", "target": "de"}'  # TEXT is `text`, or `q` for LibreTranslate's endpoint
WRONG_BODIES = [
    *(b"", b" \n\t", b"null", b"1", b'"TEXT"', b"[]", b"{}", b'{"": 1}', b'{"target": "de"}'),
    *(GOOD[:-1], GOOD + b" x", GOOD + GOOD, GOOD.replace(b'"', b"'"), b"/* */" + GOOD, b"%7B%7D"),
    *(
        GOOD.replace(b'"a"', text)
        for text in (b"null", b"1", b"true", b"{}", b'["a", null]', b'[["a"]]', b"NaN")
    ),
    *(
        GOOD.replace(b'"a"', text)
        for text in (b'"\n"', b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\\ud800"')
    ),
    *(
        GOOD.replace(b'"de"', target)
        for target in (b"1", b"true", b'["de"]', b'"../../etc/passwd"', b'"DE"', b'""')
    ),
    *(
        GOOD.replace(b"de", target)
        for target in (b"de\\u0000", b"de\\r\\nSet-Cookie: a=b", b"<script>1</script>")
    ),
    *(
        GOOD.replace(b"}", b', "alternatives": %s}' % number)
        for number in (
            b"-1",
            b"10",
            b"0.5",
            b"true",
            b'"1"',
            b"[]",
            b"null",
            b"NaN",
            b"-Infinity",
            b"1e400",
            b"1e308",
        )
    ),
    GOOD.replace(b"}", b', "alternatives": %s}' % (b"9" * 200_000)),
    *(GOOD.decode().encode(code) for code in ("utf-16", "utf-32", "utf-8-sig")),
    b"\x1f\x8b\x08\x00",
    GOOD.replace(b'"a"', DEEP),
    GOOD.replace(b"}", b', "more": %s}' % DEEP),
    b'{"a":' * 30_000,
]
LARGE_BODIES = [
    GOOD.replace(b'"a"', json.dumps(["a"] * 65).encode()),
    GOOD.replace(b'"a"', b'"%s"' % (b"x" * 20_001)),
    GOOD.replace(b'"a"', json.dumps(["x" * 1_000] * 21).encode()),
    b" " * 300_000,
]
WRONG_KINDS = [
    "",
    "text/plain",
    "application/jsonp",
    "text/plain, application/json",
    "multipart/form-data; boundary=x",
]
WRONG_KINDS += ["text/xml", "json", "application/json/x", "\u00e9"]
WRONG_FORMS = [b"", b"q=%ff&target=de", b"q=a&target=de&" + b"a=b&" * 100, b"q=a&target=de&alternatives=1e9"]
WRONG_FORMS += [b"q=a&target=de&format=html", b"q=a", b"q=a&target=xx", b"\xff", GOOD]


@pytest.mark.parametrize(("path", "name"), [("/v1/translate", b"text"), ("/translate", b"q")])
def test_wrong_bodies_are_refused(server: Server, path: str, name: bytes) -> None:
    asked = [(body, JSON, 400) for body in WRONG_BODIES]
    asked += [(body, JSON, 413) for body in LARGE_BODIES]
    asked += [(GOOD, kind, 415) for kind in WRONG_KINDS]
    asked += [(body, FORM, 400 if name == b"q" else 415) for body in WRONG_FORMS]
    with server.client() as client:
        for body, kind, status in asked:
            headers = {"Content-Type": kind.encode("latin-1")} if kind else {}
            answer = client.post(path, content=body.replace(b"TEXT", name), headers=headers)
            assert (answer.status_code, list(answer.json())) == (status, ["error"]), (body[:100], kind)
            assert answer.headers["content-type"] == JSON
        twice = GOOD.replace(b'"TEXT"', b'"TEXT": 1, "TEXT"').replace(b"TEXT", name)  # the last one counts
        assert (
            client.post(path, content=twice, headers={"Content-Type": "Application/JSON; x"}).status_code
            == 200
        )


OPTIONS = {
    "beam": [0, -1, 17, 10**9, 1.5, "4", None, True, [4], {}],
    "length_penalty": [-0.1, 5.1, 1e300, "1", None, [1]],
    "max_length": [0, -1, 1025, 2**70, 0.5, "10", [10]],
    "no_repeat_ngram": [-1, 17, "2", None],
    "sample_top": [1],
    "__class__": [1],
}


def test_wrong_options_are_refused(server: Server) -> None:
    with server.client() as client:
        for name, values in OPTIONS.items():
            for value in values:
                answer = client.post("/v1/translate", json={"text": "a", "options": {name: value}})
                assert (answer.status_code, list(answer.json())) == (400, ["error"]), (name, value)
        for options in (None, [], "beam", 4):
            answer = client.post("/v1/translate", json={"text": "a", "options": options})
            assert answer.status_code == 400, options


def test_a_length_that_would_keep_the_engine_busy_for_hours_is_refused(server: Server) -> None:
    with server.client() as client:
        for text, length, status in (
            ("a.\n" * 6_000, 1_024, 413),
            ("a.\n" * 90, 1_024, 200),
            ("。" * 20_000, 9, 200),
        ):
            answer = client.post("/v1/translate", json={"text": text, "options": {"max_length": length}})
            assert answer.status_code == status, text[:10]


LOCAL = b"Host: localhost\r\nConnection: close\r\n"
WRONG_PATHS = [
    *(
        "/..",
        "/../../../etc/passwd",
        "/page/../../../etc/passwd",
        "/page/..%2f..%2fetc/passwd",
        "//etc/passwd",
    ),
    *(
        "/page/%2e%2e/%2e%2e/x",
        "/page/%252e%252e/x",
        "/%2e%2e%5c%2e%2e%5cx",
        "/page/%c0%ae%c0%ae/x",
        "/page/..../",
    ),
    *("/page/page.js%00.html", "/page/page.js/", "/page/", "/page", "/page//page.js", "/page/page.css%2f.."),
    *(
        "/page/index.html",
        "/healthz/",
        "/healthz%00",
        "/HEALTHZ",
        "/healthz;x",
        "/metrics/..",
        "/openapi.json/",
    ),
    *(
        "/v1/translate/",
        "/v1//translate",
        "/v1/translate%0d%0aX:y",
        "/%ff",
        "/%",
        "/%zz",
        "/\\..\\..",
        "?x",
        "*",
    ),
    *(
        "/.git/config",
        "/proc/self/environ",
        "/docs",
        "file:///etc/passwd",
        "evil.example:443",
        "/" + "a" * 60_000,
    ),
    *("http://localhost/", "http://evil.example/", "//evil.example/%2f.."),
]
WRONG_METHODS = [
    "GET",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "post",
    "GETPOST",
]
WRONG_HEADS = [
    b"GET /\r\n\r\n",  # HTTP/0.9
    b"GET / HTTP/11.1\r\n" + LOCAL,
    b"GET / HTTP/1.1\r\n\r\n",  # no Host
    b"GET  / HTTP/1.1\r\n" + LOCAL,
    b"GET / HTTP/1.1 x\r\n" + LOCAL,
    b"GET\t/\tHTTP/1.1\r\n" + LOCAL,
    b"G@T / HTTP/1.1\r\n" + LOCAL,
    b"GET /\xff HTTP/1.1\r\n" + LOCAL,
    b"GET /\x00 HTTP/1.1\r\n" + LOCAL,
    b"GET / HTTP/1.1\r\n" + LOCAL + b"Host: evil.example\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n",
    *(
        b"GET / HTTP/1.1\r\n" + LOCAL + header + b"\r\n"
        for header in (
            b"x",
            b"X : y",
            b"X: \x00",
            b"X: a\rb",
            b"X(: y",
            b": y",
            b"X: " + b"x" * 200_000,
        )
    ),
    b"GET / HTTP/1.1\r\n" + LOCAL + b"X: y\r\n" * 30_000,
    b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n" + LOCAL,
    *(
        b"POST /v1/translate HTTP/1.1\r\n" + LOCAL + header + b"\r\n"
        for header in (
            *(
                b"Content-Length: " + length
                for length in (b"-1", b"x", b"+5", b"0x5", b"5, 6", b"1 2", b"9" * 30)
            ),
            b"Content-Length: 5\r\nContent-Length: 6",
            *(b"Transfer-Encoding: " + way for way in (b"gzip", b"xchunked", b"gzip, chunked", b"identity")),
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        )
    ),
]
CHUNKED = (
    b"POST /v1/translate HTTP/1.1\r\n"
    + LOCAL
    + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
)
WRONG_CHUNKS = [
    b"zz\r\n",
    b"-1\r\n",
    b"0x5\r\n",
    b"f" * 30 + b"\r\n",
    b"5\r\nabcdefgh\r\n",
    b"1;" + b"x" * 100_000,
]
WRONG_CHUNKS += [b"\r\n", b"1\r\n{\r\n0\r\n" + b"X: y\r\n" * 30_000, b"1\r\n" * 1_000, b"5", b"fffffff\r\n{"]


def test_wrong_paths_and_methods_are_refused(server: Server) -> None:
    asked = [(f"GET {path}", (400, 404)) for path in WRONG_PATHS]
    asked += [(f"{method} /v1/translate", (400, 405)) for method in WRONG_METHODS]
    asked += [
        (f"{method} {path}", (405,))
        for method in ("POST", "DELETE")
        for path in ("/", "/metrics", "/healthz")
    ]
    answers = exchange(server, [line.encode() + b" HTTP/1.1\r\n" + LOCAL + b"\r\n" for line, _ in asked])
    for (line, expected), answer in zip(asked, answers, strict=True):
        (status,) = refusals(answer)
        assert status in expected, line[:100]
        assert b"root:" not in answer


def test_what_is_not_http_is_refused_or_cut_off(server: Server) -> None:
    heads = [head + b"\r\n" for head in WRONG_HEADS]
    for sent, answer in zip(heads, exchange(server, heads), strict=True):
        assert refusals(answer) in ([], [400]), sent[:200]
    bodies = [CHUNKED + b"\r\n" + chunks for chunks in WRONG_CHUNKS]
    for sent, answer in zip(bodies, exchange(server, bodies), strict=True):
        assert refusals(answer) in ([], [400], [408], [413]), sent[-200:]


def test_a_refused_request_hides_no_second_one(server: Server) -> None:
    """Two lengths, or a length and chunks, are how a request is smuggled past a proxy."""
    hidden = b"GET /metrics HTTP/1.1\r\n" + LOCAL + b"\r\n"
    head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for lengths in (
        b"Content-Length: 5\r\nContent-Length: 0",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    ):
        (answer,) = exchange(server, [head + lengths + b"\r\n\r\n0\r\n\r\n" + hidden])
        assert b"dragoman_requests_total" not in answer, lengths


def test_requests_sent_at_once_are_answered_in_order_until_the_first_that_is_nonsense(server: Server) -> None:
    good = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    (answer,) = exchange(server, [good * 3 + b"nonsense\r\n\r\n" + good])
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"200", b"200", b"200", b"400"]
