"""The command line: one function per command. Parse, call, print."""

from dragoman.cli.program import app, main

__all__ = ["app", "main"]
