"""Examples in docstrings, which ``--doctest-modules`` runs: look for them where some are only."""

import pytest
from _pytest.doctest import DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Look for no examples in files without any: that takes a fifth of the time of collection."""
    collectors = yield
    if not any(isinstance(collector, DoctestModule) for collector in collectors):
        return collectors
    if ">>> " in file_path.read_text():
        return collectors
    return [collector for collector in collectors if not isinstance(collector, DoctestModule)]
