"""Modules run once on the pretended GPU, for all test processes together."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import fake_cuda
from tests.train.conftest import Made, made_once  # noqa: F401  a fixture

Answer = Callable[[str], Any]


@pytest.fixture(scope="session")
def answer(made_once: Made) -> Answer:  # noqa: F811  the fixture
    """What a module prints there."""

    def of(module: str) -> Any:
        def make(folder: Path) -> None:
            folder.mkdir()
            (folder / "answer.json").write_text(json.dumps(fake_cuda.run(module)))

        return json.loads((made_once(module, make) / "answer.json").read_text())

    return of
