"""The endpoints, over real connections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.facts import lacking
from tests.serve import stand_in
from tests.serve.conftest import TOKEN
from tests.serve.stand_in import Server

JSON = {"Content-Type": "application/json"}


def translate(server: Server, **fields: object) -> tuple[int, dict]:  # type: ignore[type-arg]
    with server.client() as client:
        answer = client.post("/v1/translate", json=fields)
    return answer.status_code, answer.json()


def test_one_text_and_several_come_back_in_order(server: Server) -> None:
    status, answer = translate(server, text="hello")
    assert status == 200
    assert answer == {
        "model": "capitals",
        "source": "en",
        "target": "de",
        "translations": [{"text": "HELLO", "score": 0.0, "alternatives": []}],
    }
    _, answer = translate(server, text=["a", "", "ß\n<b>"])
    assert [one["text"] for one in answer["translations"]] == ["A", "", "SS\n<B>"]
    assert translate(server, text=[])[1]["translations"] == []


def test_alternatives_are_others_best_first_even_beyond_the_beam(server: Server) -> None:
    _, answer = translate(server, text="a", alternatives=5, options={"beam": 2})
    (found,) = answer["translations"]
    assert found["text"] == "A"
    assert [one["text"] for one in found["alternatives"]] == ["A" + "'" * rank for rank in range(1, 6)]
    assert [one["score"] for one in found["alternatives"]] == [-1, -2, -3, -4, -5]


def test_a_model_is_chosen_by_name_or_by_languages(server: Server) -> None:
    assert translate(server, text="a", model="back")[1]["source"] == "de"
    assert translate(server, text="a", source="de", target="en")[1]["model"] == "back"
    assert translate(server, text="a", target="de")[1]["model"] == "capitals"
    assert translate(server, text="a", source="fi")[0] == 400
    status, answer = translate(server, text="a", model="none")
    assert (status, list(answer)) == (400, ["error"])
    assert not lacking(answer["error"], "none", "capitals", "back")
    assert translate(server, text="a", model="back", source="en")[0] == 400


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"", "Invalid JSON"),
        (b"[]", "object"),
        (b'{"text": 1}', "text"),
        (b'{"text": ["a", null]}', "text"),
        (b'{"txet": "a"}', "text"),
        (b'{"text": "a", "options": {"beam": 0}}', "options.beam"),
        (b'{"text": "a", "options": {"beam": "4"}}', "options.beam"),
        (b'{"text": "a", "options": {"length_penalty": NaN}}', "options.length_penalty"),
        (b'{"text": "a", "alternatives": 1000000}', "alternatives"),
        (b'{"text": "\xff"}', "Invalid JSON"),
        (b'{"text": "\\ud800"}', "Invalid JSON"),
        (b'{"text": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "recursion"),
        (b'{"a":' * 30_000, "recursion"),
        (b'{"text": "a"} x', "Invalid JSON"),
    ],
)
def test_broken_wrong_and_deep_bodies_are_refused_with_the_place(
    server: Server, body: bytes, where: str
) -> None:
    for path in ("/v1/translate", "/translate"):
        with server.client() as client:
            answer = client.post(path, content=body, headers=JSON)
        assert answer.status_code == 400, answer.text
        assert path == "/translate" or where in answer.json()["error"]


def test_other_kinds_of_body_paths_and_methods_are_refused_as_json(server: Server) -> None:
    with server.client() as client:
        assert client.post("/v1/translate", data={"text": "a"}).status_code == 415
        assert (
            client.post("/translate", content=b"q=a", headers={"Content-Type": "text/xml"}).status_code == 415
        )
        missing = client.get("/nothing")
        assert (missing.status_code, list(missing.json())) == (404, ["error"])
        wrong = client.get("/v1/translate")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")


def test_too_many_characters_texts_or_bytes_are_413(server: Server) -> None:
    assert translate(server, text="x" * 20_000)[0] == 200
    for fields, most in (
        ({"text": "x" * 20_001}, "20,000"),
        ({"text": ["x" * 1_000] * 21}, "20,000"),
        ({"text": ["x"] * 65}, 64),
    ):
        status, answer = translate(server, **fields)
        assert (status, lacking(answer["error"], most)) == (413, [])
    with server.client() as client:
        for size in (300_000, 5_000_000):
            assert client.post("/v1/translate", content=b"x" * size, headers=JSON).status_code == 413
            pieces = (b"x" * 10_000 for _ in range(size // 10_000))  # chunked: the size is not declared
            answer = client.post("/translate", content=pieces, headers=JSON)
            assert (answer.status_code, list(answer.json())) == (413, ["error"])


def test_an_engine_that_fails_is_a_500_without_its_innards_and_the_server_continues(server: Server) -> None:
    status, answer = translate(server, text="!fail")
    assert (status, list(answer)) == (500, ["error"])
    assert "!fail" not in answer["error"] and "Error" not in answer["error"]
    assert translate(server, text="a")[0] == 200


def test_a_model_that_is_broken_is_a_500_with_the_reason_and_a_line_in_the_log(tmp_path: Path) -> None:
    with stand_in.started(tmp_path) as server, server.client() as client:
        answers = [
            client.post("/v1/translate", json={"text": ["!broken", "a"]}),
            client.post("/translate", json={"q": "!broken", "target": "de"}),
        ]
        for answer in answers:
            assert (answer.status_code, answer.json()) == (500, {"error": "weights that are not numbers"})
        assert translate(server, text="a")[0] == 200
        server.process.terminate()
        _, log = server.process.communicate(timeout=60)
    assert log.count("/models/secret: weights that are not numbers") == 2
    assert "Traceback" not in log


def test_libretranslates_clients_are_served_with_json_and_forms(server: Server) -> None:
    asked = {"q": "hello", "source": "en", "target": "de", "format": "text", "api_key": "", "more": 1}
    with server.client() as client:
        assert client.post("/translate", json=asked).json() == {"translatedText": "HELLO", "alternatives": []}
        form = {"q": "grüß\n", "source": "auto", "target": "en", "alternatives": "2"}
        answer = client.post("/translate", data=form).json()
        assert answer == {"translatedText": "GRÜSS\n", "alternatives": ["GRÜSS\n'", "GRÜSS\n''"]}
        several = client.post("/translate", json={**asked, "q": ["a", "b"], "alternatives": 1}).json()
        assert several == {"translatedText": ["A", "B"], "alternatives": [["A'"], ["B'"]]}
        languages = client.get("/languages").json()
        assert [(one["code"], one["targets"]) for one in languages] == [("de", ["en"]), ("en", ["de"])]
        for wrong in ({"format": "html"}, {"target": "fi"}, {"q": None}):
            refused = client.post("/translate", json=asked | wrong)
            assert (refused.status_code, list(refused.json())) == (400, ["error"])
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        assert client.post("/translate", content=b"q=%ff&target=de", headers=kind).status_code == 400


def test_without_the_token_only_the_page_health_and_the_document_are_open(guarded: Server) -> None:
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
    ]
    with guarded.client() as client:
        for headers in wrong:
            for method, path in (("POST", "/v1/translate"), ("GET", "/metrics"), ("GET", "/nothing")):
                answer = client.request(method, path, headers=headers, json={"text": "a"})
                assert answer.status_code == 401, path
                assert answer.headers["www-authenticate"] == "Bearer"
            assert (
                client.post("/translate", json={"q": "a", "target": "de"}, headers=headers).status_code == 401
            )
        assert client.post("/translate", json={"q": "a", "target": "de", "api_key": "no"}).status_code == 401
        for path in ("/", "/healthz", "/openapi.json", "/languages", "/page/page.js", "/page/page.css"):
            assert client.get(path).status_code == 200
    assert guarded.calls() == []


def test_the_token_opens_and_so_does_libretranslates_key(guarded: Server) -> None:
    with guarded.client() as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert client.post("/v1/translate", json={"text": "a"}, headers=headers).status_code == 200
        assert client.get("/metrics", headers=headers).status_code == 200
        asked = {"q": "a", "target": "de", "api_key": TOKEN}
        assert client.post("/translate", json=asked).status_code == 200
        assert client.post("/translate", data=asked).status_code == 200


def test_every_answer_forbids_scripts_from_elsewhere(server: Server) -> None:
    with server.client() as client:
        for path in ("/", "/page/page.js", "/healthz", "/nothing"):
            policy = client.get(path).headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'")
            assert "unsafe" not in policy


def test_health_and_metrics_tell_of_the_server(server: Server) -> None:
    with server.client() as client:
        assert client.get("/healthz").json() == {"status": "ok", "models": ["capitals", "back"]}
        before = server.metric('dragoman_texts_total{model="capitals"}')
        client.post("/v1/translate", json={"text": ["a", "b"]})
        client.get("/" + "unheard-of" * 3)
        assert server.metric('dragoman_texts_total{model="capitals"}') == before + 2
        assert server.metric('dragoman_requests_total{path="/v1/translate",status="200"}') > 0
        assert server.metric("dragoman_requests_under_way") == 0
        text = client.get("/metrics").text
        assert "unheard-of" not in text
        assert 'dragoman_translation_seconds_bucket{le="+Inf"}' in text
        assert json.dumps("other") in text
