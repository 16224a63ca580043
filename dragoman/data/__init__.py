"""Turns parallel text into batches: corpus -> clean -> tokens -> store -> batches."""
