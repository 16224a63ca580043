from tests.train.conftest import here, learnt, made_once, task, unbroken, world_of_one  # noqa: F401  fixtures
