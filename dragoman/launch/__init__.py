"""Ways of starting ranks, one per file; every rank runs the same `python -m dragoman train`."""
