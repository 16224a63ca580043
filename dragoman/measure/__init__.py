"""What a run measures and records: clocks, counters, meters, scores, curves and provenance."""
