"""The document describes the server: schemathesis tries to show that it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.serve import stand_in
from tests.serve.conftest import TOKEN
from tests.serve.stand_in import Server

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# What is too large is refused with 413, which schemathesis would not take for a refusal.
SETTINGS = """
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "405", "413", "415", "429"]
"""


def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    with stand_in.started(tmp_path, "--token", TOKEN) as server:
        done = schemathesis(server, tmp_path)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def schemathesis(server: Server, folder: Path) -> subprocess.CompletedProcess[str]:
    words = ["run", f"{server.url}openapi.json", "--max-examples", "20", "--seed", "1", "--no-color"]
    words += ["--generation-database", "none", "--checks", "all", "--request-timeout", "60"]
    words += ["--header", f"Authorization: Bearer {TOKEN}"]
    (folder / "schemathesis.toml").write_text(SETTINGS)
    return subprocess.run([SCHEMATHESIS, *words], capture_output=True, text=True, cwd=folder, timeout=280)


def test_the_document_names_this_servers_models_languages_and_limits(server: Server, guarded: Server) -> None:
    with server.client() as client:
        document = client.get("/openapi.json").json()
    fields = document["components"]["schemas"]["Request"]["properties"]
    assert fields["model"]["anyOf"][0]["enum"] == ["capitals", "back"]
    assert fields["source"]["anyOf"][0]["enum"] == ["de", "en"]
    assert fields["text"]["anyOf"][0]["maxLength"] == 20_000
    assert "securitySchemes" not in document["components"]
    with guarded.client() as client:
        document = client.get("/openapi.json").json()
    assert document["paths"]["/v1/translate"]["post"]["security"] == [{"bearer": []}]
    assert "security" not in document["paths"]["/healthz"]["get"]
