from tests.gluttons import glutton as glutton
from tests.train.conftest import here, made_once, task, world_of_one  # noqa: F401  fixtures
