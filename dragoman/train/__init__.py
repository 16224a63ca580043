"""Training: the loop, one step, the optimizer, evaluation, checkpoints, and what a run shows and records."""
