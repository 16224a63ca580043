"""A rank that measures the link between its hosts: `python -m tests.measure.probe_link`."""

from dragoman.measure import probes
from dragoman.sync import topology
from dragoman.sync import world as worlds

if __name__ == "__main__":
    with worlds.join(60) as world:
        print(*probes.link(world, topology.find(world)))
