from tests.sync.hosts import hosts_are_possible  # noqa: F401  a fixture
from tests.train.conftest import world_of_one  # noqa: F401  a fixture
