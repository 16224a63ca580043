from tests.train.conftest import made_once, task, unbroken  # noqa: F401  fixtures
