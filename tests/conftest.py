"""For all tests."""

from hypothesis import settings

settings.register_profile("dragoman", deadline=None, max_examples=50)  # other work may share the cores
settings.load_profile("dragoman")
