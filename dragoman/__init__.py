"""Dragoman trains translation models on one machine or many, and tells the truth about the run."""

__version__ = "0.1.0"
