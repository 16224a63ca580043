"""A rank that measures the link between its hosts: `python -m tests.measure.probe_link`."""

from dragoman.measure import probes
from dragoman.sync import topology

if __name__ == "__main__":
    with topology.join(60) as placement:
        print(*probes.link(placement))
