from tests.train.conftest import world_of_one  # noqa: F401  a fixture
