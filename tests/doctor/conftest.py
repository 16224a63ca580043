from tests.gluttons import glutton as glutton
from tests.train.conftest import made_once, task  # noqa: F401  fixtures
