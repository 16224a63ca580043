"""Damaged and hostile input for every place where data comes in: `python -m tests.fuzz`."""
