"""Examples in docstrings, which ``--doctest-modules`` runs: look for them where some are only."""

from functools import cache

import pytest
from _pytest.doctest import DoctestModule


def pytest_ignore_collect(collection_path):
    """Leave out modules without tests and examples."""
    is_module = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if is_module and not _has_examples(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Look for no examples in files without any: that takes a fifth of the time of collection."""
    collectors = yield
    if file_path.suffix != ".py" or _has_examples(file_path):
        return collectors
    return [collector for collector in collectors if not isinstance(collector, DoctestModule)]


@cache
def _has_examples(path):
    return ">>> " in path.read_text()
