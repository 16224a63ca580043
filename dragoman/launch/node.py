"""One host's part of a run over several: `python -m dragoman.launch.node`, started by the host's agent."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict, dataclass

from dragoman import orphans, temporary
from dragoman.launch import environment, ranks
from dragoman.launch.ranks import Node

MODULE = "dragoman.launch.node"


@dataclass(frozen=True)
class TrainingCommand:
    """What every host is told to do."""

    config: str  # TOML, every setting: the file itself need not be on the hosts
    options: list[str]  # of `dragoman train`, with absolute paths
    command: str  # as the user typed it


def request(training: TrainingCommand, node: Node) -> str:
    """What a node reads from its input."""
    return json.dumps({"training": asdict(training), "node": asdict(node)})


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until there are ranks to tell: no traceback
    asked = json.load(sys.stdin)
    training, node = TrainingCommand(**asked["training"]), Node(**asked["node"])
    os.environ.update(environment.with_command(training.command))
    orphans.end_with_parent()
    with temporary.folder("dragoman-") as folder:
        config = folder / "config.toml"
        config.write_text(training.config, encoding="utf-8")
        return ranks.run(["-m", "dragoman", "train", str(config), *training.options], node)


if __name__ == "__main__":
    sys.exit(main())
