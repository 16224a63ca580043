"""Everything that can be checked before a run: versions, data, names, clocks, room, links, devices."""
