from tests.train.conftest import made_once, task  # noqa: F401  fixtures
