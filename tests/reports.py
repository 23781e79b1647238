"""What the processes of pytest-xdist send of each test that passes: one message instead of six."""

import pytest
from _pytest.runner import runtestprotocol

#: Options whose reports need the times of setups and teardowns.
TIMES = ("durations", "xmlpath")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Leave out that a test begins and ends, and that its setup and teardown pass.

    To send, receive and handle these costs as much as all else that pytest does for a test.
    """
    options = item.config.option
    if not hasattr(item.config, "workerinput") or any(
        getattr(options, name) is not None for name in TIMES
    ):
        return None
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    has_passed = all(report.passed for report in reports)
    for report in reports:
        if report.when == "call" or not has_passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
