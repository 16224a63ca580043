"""Answers the questions about a run: pure functions from records to findings, without torch."""
