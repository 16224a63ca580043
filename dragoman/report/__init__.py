"""Presents findings on the terminal, as a page, as markdown and as JSON."""
