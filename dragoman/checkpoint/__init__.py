"""The saved form of models and training states: `train` writes them, commands that use a model read them."""
