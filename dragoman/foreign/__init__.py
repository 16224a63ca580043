"""Runs that were not ours: one reader per kind of file, into the records that our own runs have."""
