"""From parallel text to batches: corpus -> clean -> tokens -> store -> batches."""
