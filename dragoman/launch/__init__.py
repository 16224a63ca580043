"""Ways of starting ranks, one per file; all end in the same worker entry, `python -m dragoman train`."""
