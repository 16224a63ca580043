from tests.train.conftest import learnt, made_once, task, unbroken  # noqa: F401  fixtures
