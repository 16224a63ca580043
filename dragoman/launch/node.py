"""Runs the ranks of one host of several: `python -m dragoman.launch.node`, started by the host's agent."""

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
    """The training that every host takes part in."""

    config: str  # every setting as TOML, so that the hosts do not need the config file
    options: list[str]  # options of `dragoman train`, with absolute paths
    command: str  # as the user typed it


def request(training: TrainingCommand, node: Node) -> str:
    """The JSON that this module reads from its standard input."""
    return json.dumps({"training": asdict(training), "node": asdict(node)})


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback on Ctrl-C before the ranks are started
    received = json.load(sys.stdin)
    training, node = TrainingCommand(**received["training"]), Node(**received["node"])
    os.environ.update(environment.with_command(training.command))
    orphans.end_with_parent()
    with temporary.folder("dragoman-") as folder:
        config = folder / "config.toml"
        config.write_text(training.config, encoding="utf-8")
        return ranks.run(["-m", "dragoman", "train", str(config), *training.options], node)


if __name__ == "__main__":
    sys.exit(main())
