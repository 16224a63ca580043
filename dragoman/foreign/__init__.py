"""Reads logs and recordings of other programs, one reader per kind, into the records our own runs have."""
