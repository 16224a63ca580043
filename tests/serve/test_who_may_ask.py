"""Tokens, names of this machine, and pages of other sites."""

from __future__ import annotations

import inspect
import json
from urllib import parse, request

import pytest

from dragoman.serve import front
from tests.serve.conftest import TOKEN
from tests.serve.stand_in import Server

WRONG_TOKENS = [
    *(
        "",
        "Bearer",
        f"Bearer{TOKEN}",
        f"Bearer:{TOKEN}",
        f"Bearer={TOKEN}",
        f"Bearer,{TOKEN}",
    ),
    *(
        TOKEN,
        f"Basic {TOKEN}",
        f"Token {TOKEN}",
        f"Digest {TOKEN}",
        f"BearerX {TOKEN}",
        f"Bearer Bearer {TOKEN}",
    ),
    *(
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN[1:]}",
        f"Bearer {TOKEN}x",
        f"Bearer x{TOKEN}",
        f"Bearer {TOKEN[:1]}",
    ),
    *(
        f"Bearer {TOKEN.upper()}",
        f"Bearer {TOKEN.swapcase()}",
        f"Bearer {TOKEN} {TOKEN}",
        f"Bearer {TOKEN},{TOKEN}",
    ),
    *(
        f'Bearer "{TOKEN}"',
        f"Bearer {TOKEN};",
        f"Bearer {parse.quote(TOKEN)}%00",
        f"Bearer %s{TOKEN}",
        "Bearer null",
    ),
    *(
        "Bearer *",
        "Bearer .*",
        "Bearer None",
        "Bearer true",
        "Bearer 0",
        "Bearer ' OR 1=1",
        f"Bearer {'x' * 20_000}",
    ),
    *(f"Bearer {TOKEN}\u00e9", f"Bearer {TOKEN[:-1]}\u00ff", f"\u00e9 {TOKEN}"),
]
WRONG_KEYS: list[object] = [
    None,
    "",
    " ",
    TOKEN[:-1],
    TOKEN + "x",
    TOKEN.upper(),
    f"Bearer {TOKEN}",
    "\u00e9",
    "\u0000",
]


def test_wrong_tokens_open_nothing(guarded: Server) -> None:
    with guarded.client() as client:
        for given in WRONG_TOKENS:
            headers = {"Authorization": given.encode("latin-1")}
            for path, body in (("/v1/translate", {"text": "a"}), ("/translate", {"q": "a", "target": "de"})):
                answer = client.post(path, json=body, headers=headers)
                assert (answer.status_code, list(answer.json())) == (401, ["error"]), given[:100]
            assert client.get("/metrics", headers=headers).status_code == 401
        for key in WRONG_KEYS:
            answer = client.post("/translate", json={"q": "a", "target": "de", "api_key": key})
            assert answer.status_code == 401, key
        for key in (1, True, [TOKEN], {"": TOKEN}):
            assert (
                client.post("/translate", json={"q": "a", "target": "de", "api_key": key}).status_code == 400
            )
    assert guarded.calls() == []


def test_a_token_elsewhere_than_in_its_header_opens_nothing(guarded: Server) -> None:
    with guarded.client() as client:
        for name in ("token", "access_token", "api_key", "Authorization"):
            answer = client.post("/v1/translate", json={"text": "a"}, params={name: TOKEN})
            assert answer.status_code == 401, name
            answer = client.post("/translate", json={"q": "a", "target": "de"}, params={name: TOKEN})
            assert answer.status_code == 401, name
        for name in ("Cookie", "X-Api-Key", "X-Token", "Proxy-Authorization", "X-Authorization"):
            headers = {name: f"Bearer {TOKEN}"}
            assert client.post("/v1/translate", json={"text": "a"}, headers=headers).status_code == 401, name
        twice = [("Authorization", "Bearer no"), ("Authorization", f"Bearer {TOKEN}")]
        assert client.post("/v1/translate", json={"text": "a"}, headers=twice).status_code == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEARER", "Bearer  "])
def test_the_scheme_is_read_in_any_case(guarded: Server, scheme: str) -> None:
    with guarded.client(headers={"Authorization": f"{scheme} {TOKEN}"}) as client:
        assert client.post("/v1/translate", json={"text": "a"}).status_code == 200
        assert client.get("/metrics").status_code == 200


def test_tokens_are_compared_in_constant_time() -> None:
    assert "compare_digest" in inspect.getsource(front.is_right)
    assert [front.is_right("a\u00e9", given) for given in ("a\u00e9", "a", "")] == [True, False, False]


@pytest.mark.parametrize("key", [TOKEN, None])
def test_libretranslates_clients_learn_the_languages(
    guarded: Server, server: Server, key: str | None
) -> None:
    """A GET with the key in a form, as libretranslatepy sends it; a POST, as it once did; or in the query."""
    form = parse.urlencode({"api_key": key} if key else {})
    for asked in (guarded, server):
        url = asked.url + "languages"
        for what in (
            request.Request(url, data=form.encode(), method="GET"),
            request.Request(url, data=form.encode()),
            request.Request(f"{url}?{form}"),
        ):
            with request.urlopen(what) as answer:
                assert {"code": "en", "name": "en", "targets": ["de"]} in json.load(answer)


OWN_HOSTS = ["localhost", "LocalHost:8000", "127.0.0.1", "127.0.0.1:1", "127.9.9.9", "[::1]", "[::1]:8000"]
FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.nip.io",
    "xlocalhost",
    ".",
]
FOREIGN_HOSTS += [
    "",
    "192.168.0.1",
    "0.0.0.0",
    "[::]",
    "[::1",
    "[::1]x",
    "[::1].evil.example",
    "localhost:x",
    ":8000",
]
FOREIGN_HOSTS += [
    "localhost,evil.example",
    "evil.example@localhost",
    "localhost/",
    "127.1",
    "2130706433",
    "local host",
]


def test_a_server_without_a_token_answers_only_as_this_machine(server: Server) -> None:
    """Else a page of any site could be made one site with it, by its owner's name server."""
    with server.client() as client:
        for host in OWN_HOSTS:
            answer = client.post("/v1/translate", json={"text": "a"}, headers={"Host": host})
            assert answer.status_code == 200, host
        calls = len(server.calls())
        for host in FOREIGN_HOSTS:
            for path in ("/v1/translate", "/translate"):
                answer = client.post(
                    path, json={"text": "a", "q": "a", "target": "de"}, headers={"Host": host}
                )
                assert (answer.status_code, list(answer.json())) == (403, ["error"]), host
            for path in ("/", "/metrics", "/healthz", "/nothing"):
                assert client.get(path, headers={"Host": host}).status_code == 403, host
    assert len(server.calls()) == calls


def test_a_server_with_a_token_answers_as_whatever_a_proxy_calls_it(guarded: Server) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "translate.example"}
    with guarded.client(headers=headers) as client:
        assert client.post("/v1/translate", json={"text": "a"}).status_code == 200
        assert client.get("/").status_code == 200
        answer = client.get("/healthz/", follow_redirects=False)
        assert (answer.status_code, "location" in answer.headers) == (404, False)


ANOTHER_SITE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "http://["},
    {"Origin": "http://localhost:3000"},  # another program's page
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "OWN"},
]
OWN_SITE = [
    {},
    {"Origin": "OWN"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "OWN"},
    {"Sec-Fetch-Site": "none"},
]


def test_forms_of_other_sites_are_refused(server: Server) -> None:
    """A browser sends them without asking; for JSON it asks first, and is not told that it may."""
    form = {"q": "a", "source": "en", "target": "de"}
    own = server.url.rstrip("/")
    with server.client() as client:
        for headers in ANOTHER_SITE:
            calls = len(server.calls())
            answer = client.post("/translate", data=form, headers=_of(own, headers))
            assert (answer.status_code, list(answer.json())) == (403, ["error"]), headers
            for path in ("/translate", "/v1/translate"):
                for kind in ("text/plain", "multipart/form-data; boundary=x"):
                    kinds = _of(own, headers) | {"Content-Type": kind}
                    assert client.post(path, content=json.dumps(form), headers=kinds).status_code == 415
                asking = _of(own, headers) | {"Access-Control-Request-Method": "POST"}
                allowed = client.options(path, headers=asking)
                assert (allowed.status_code, "access-control-allow-origin" in allowed.headers) == (405, False)
            assert len(server.calls()) == calls
        for headers in OWN_SITE:
            assert client.post("/translate", data=form, headers=_of(own, headers)).status_code == 200, headers


def _of(own: str, headers: dict[str, str]) -> dict[str, str]:
    return {name: value.replace("OWN", own) for name, value in headers.items()}
