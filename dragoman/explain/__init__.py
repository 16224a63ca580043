"""Answers to the questions about a run: pure functions from records to findings. No torch here."""
