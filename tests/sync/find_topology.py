"""A rank that says where it and the others are: `python -m tests.sync.find_topology`."""

import json
from dataclasses import asdict

from dragoman.sync import topology
from dragoman.sync import world as worlds

if __name__ == "__main__":
    with worlds.join(60) as world:
        print(json.dumps(asdict(topology.find(world))))
