"""A real server in a process of its own, with an engine that needs no model: it says texts in capitals.

    python -m tests.serve.stand_in --gate FILE      calls of the engine wait as long as there is such a file

A text with `!fail` in it makes the engine fail, one with `!broken` as a broken model does; `<b>` and the like
come back as they are.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import httpx

from dragoman.decode.engine import Options, Translation
from dragoman.errors import CheckpointError

WAIT_SECONDS = 60


class CapitalEngine:
    """Keeps what it was asked in a file, and waits at a gate if there is one."""

    name = "capitals"
    precision = "none"
    languages = ("en", "de")

    def __init__(self, diary: Path | None, gate: Path | None):
        self._diary = diary
        self._gate = gate

    def translate(self, texts: Sequence[str], options: Options = Options()) -> list[list[Translation]]:  # noqa: B008
        if self._diary:
            with self._diary.open("a") as file:
                file.write(json.dumps({"texts": list(texts), "beam": options.beam}) + "\n")
        while self._gate and self._gate.exists():
            time.sleep(0.01)
        if any("!fail" in text for text in texts):
            raise RuntimeError("the engine is out of order")
        if any("!broken" in text for text in texts):
            raise CheckpointError("weights that are not numbers", path="/models/secret", hint="train again")
        return [
            [Translation(text.upper() + "'" * rank, -float(rank)) for rank in range(options.best)]
            for text in texts
        ]


@dataclass(frozen=True)
class Server:
    """One under way."""

    url: str
    process: subprocess.Popen[str]
    diary: Path
    gate: Path

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rpartition(":")[2])

    def client(self, **options: object) -> httpx.Client:
        """Without certificates, which take longer to load than the server to answer."""
        options = {"timeout": WAIT_SECONDS, "verify": False, "trust_env": False} | options
        return httpx.Client(base_url=self.url, **options)  # type: ignore[arg-type]

    def metric(self, name: str) -> float:
        with self.client() as client:
            found = re.search(rf"^{re.escape(name)} ([\d.e+]+)$", client.get("/metrics").text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def calls(self) -> list[dict[str, object]]:
        """What the engine was asked, call by call."""
        return (
            [json.loads(line) for line in self.diary.read_text().splitlines()] if self.diary.exists() else []
        )

    @contextmanager
    def busy(self) -> Iterator[None]:
        """No call of the engine comes back before the end of the block."""
        self.gate.touch()
        try:
            yield
        finally:
            self.gate.unlink()

    def wait_for_call(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.calls():
            assert time.monotonic() < deadline, "the engine was not asked"
            time.sleep(0.01)

    def wait_for(self, metric: str, value: float) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while self.metric(metric) < value:
            assert time.monotonic() < deadline, f"{metric} is {self.metric(metric)}, not {value}"
            time.sleep(0.01)


@contextmanager
def started(folder: Path, *words: object) -> Iterator[Server]:
    diary, gate = folder / "diary.jsonl", folder / "gate"
    command = [sys.executable, "-m", "tests.serve.stand_in", "--diary", diary, "--gate", gate, *words]
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + (process.stderr.read() if process.stderr and process.poll() is not None else "")
        yield Server(found[0], process, diary, gate)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


def main() -> None:
    from dragoman.serve import app, server
    from dragoman.serve.limits import Limits
    from dragoman.serve.models import Models, Served

    parser = argparse.ArgumentParser()
    parser.add_argument("--diary", type=Path)
    parser.add_argument("--gate", type=Path)
    parser.add_argument("--token")
    parser.add_argument("--second-model", action="store_true")
    for field in fields(Limits):
        kind = float if field.name.endswith("seconds") else int
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    asked = parser.parse_args()
    limits = Limits(**{field.name: getattr(asked, field.name) for field in fields(Limits)})
    engine = CapitalEngine(asked.diary, asked.gate)
    served = [Served("capitals", engine, ("en", "de"))]
    if asked.second_model:
        served.append(Served("back", engine, ("de", "en")))
    application = app.build(Models(served), limits, asked.token, threads=1)
    socket = server.bind("127.0.0.1", 0)
    server.run(application, socket, limits, lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
