"""The suites beside the core, and the files that may have tests of them."""

import re
from functools import cache

import pytest

from tests import cost

#: What files have that have tests of a suite beside the core, by the expression that selects it.
SUITES = {
    "stress": re.compile("stress", re.IGNORECASE),
    "slow and not stress": re.compile(
        r"mark\.slow|seeds\(|def .*\b(?:scheduler|cluster|cluster_address|client|pool)\b"
    ),
}


def pytest_ignore_collect(collection_path, config):
    """Import only the files that may have tests of the suite: importing all takes seconds."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    suite = config.option.markexpr
    if is_test and suite in SUITES and not _may_have(collection_path, suite):
        return True
    return None


@cache
def _may_have(path, suite):
    is_listed = suite != "stress" and path in cost.listed_files()
    return is_listed or SUITES[suite].search(path.read_text()) is not None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Report tests that would not be found if only their suite were collected."""
    for item in items:
        for suite in SUITES:
            mark = suite.partition(" ")[0]
            if item.get_closest_marker(mark) and not _may_have(item.path, suite):
                raise pytest.UsageError(f"{item.path} has {mark} tests; it must mention the mark")
