"""Scores of a model, or of two compared: held-out text in, sacreBLEU figures with intervals out."""
