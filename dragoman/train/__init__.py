"""Training: the loop, one step, the schedule, evaluation, checkpoints."""
