"""For all tests: hypothesis without deadlines; with REQUIRE_ALL=1 a skipped test is a failed one."""

import signal
from collections.abc import Generator

import pytest
from hypothesis import settings
from pytest import CallInfo, Item, TestReport

from testbed.require import all_required, why_not

settings.register_profile("dragoman", deadline=None, max_examples=50)  # other work may share the cores
settings.load_profile("dragoman")

# A shell starts what runs in its background with Ctrl-C ignored, nohup with SIGHUP: that is passed on.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What continuous integration cannot give: data that is not part of the repository, and GPUs.
_MAY_BE_ABSENT = ("DRAGOMAN_DATA", "GPU")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Item, call: CallInfo[None]) -> Generator[None, TestReport, TestReport]:
    report = yield
    if report.skipped and all_required() and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not any(word in reason for word in _MAY_BE_ABSENT):
            report.outcome = "failed"
            report.longrepr = f"skipped, and REQUIRE_ALL=1 asks for every test: {reason}"
    return report


@pytest.fixture(scope="session")
def hosts_are_possible() -> None:
    """Skips what needs hosts of the test bed where this machine cannot have them."""
    if reason := why_not():
        pytest.skip(reason)
