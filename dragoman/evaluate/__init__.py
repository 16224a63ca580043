"""Scores one model or compares two on held-out text: sacreBLEU figures with intervals."""
