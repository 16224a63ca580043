"""Findings for people: terminal, page, markdown, JSON."""
