"""The saved form of a model and of a run's state: `train` writes it, all who use a model read it."""
