"""Checks all that can be checked before a run: versions, data, names, clocks, space, links and devices."""
