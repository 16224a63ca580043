"""Answers to the eleven questions: pure functions from records to findings. No torch here."""
