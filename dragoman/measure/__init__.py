"""What is measured: quality of translations, curves, where a run came from."""
