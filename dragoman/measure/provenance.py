"""Records where a run came from (versions, machine, command line, data), so that it can be repeated."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman import __version__
from dragoman.errors import RecordsError, reading
from dragoman.measure import plausible

if TYPE_CHECKING:  # a report imports this module without torch
    from dragoman.data.store import DataSet
    from dragoman.sync.world import World

_PACKAGES = ("torch", "numpy", "sentencepiece", "sacrebleu", "safetensors")


def describe(command: str, world: World, data: DataSet, parameters: int, precision: str) -> str:
    """The record of one attempt, as JSON."""
    facts = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": command,
        "dragoman": __version__,
        "git_commit": _git_commit(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "system": platform.platform(),
        "host": platform.node(),
        "ranks": world.size,
        "device": str(world.device),
        "precision": precision,
        "parameters": parameters,
        "data": str(data.path.resolve()),
        "data_fingerprint": data.card.fingerprint,
        "source_language": data.card.source_language,
        "target_language": data.card.target_language,
    }
    return json.dumps(facts, indent=1)


def load(path: Path) -> dict[str, Any]:
    """The content of provenance.json; empty if there is no such file."""
    if not path.is_file():
        return {}
    with reading(path, RecordsError, hint="move it away; it only records where the run came from"):
        facts = json.loads(path.read_text(encoding="utf-8"))
        plausible.check(facts)
        if not isinstance(facts, dict):
            raise ValueError("not a JSON object")
    return facts


def _git_commit() -> str | None:
    """The commit of dragoman's source tree; None if it does not run from one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
