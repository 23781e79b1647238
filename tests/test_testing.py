"""The tests that we ship for others' stores: a good one passes, and each kind of bad one fails."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_examples import ROOT, blocks
from zarrdask.testing import StoreContract

PAGE = ROOT / "docs" / "stores.md"


def sqlite_store():
    """Return the class of the documentation."""
    (source,) = (block for _, block in blocks(PAGE.read_text()) if "class SqliteStore" in block)
    module = ModuleType("sqlite_store")
    sys.modules["sqlite_store"] = module
    exec(source.partition("\nroot = ")[0], vars(module))
    return module.SqliteStore


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return sqlite_store()(str(tmp_path / "data.db"))


GOOD = """
import time

import pytest

from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.memory import MemoryStore
from zarrdask.testing import VALUES, ReadOnlyStoreContract, StoreContract


class TestGood(StoreContract):
    @pytest.fixture
    def store(self):
        return MemoryStore()


class Reader(MemoryStore):
    capabilities = Capabilities(writable=False)

    def set(self, key, value):
        raise NotImplementedError


class Forgetful(Reader):
    url = "memory"

    def __reduce__(self):
        return Forgetful, ({},)

    def __eq__(self, other):
        return True

    __hash__ = Reader.__hash__
"""
#: What a store may do wrong.
FAULTS = {
    "MissingIsEmpty": "def get(self, key): return super().get(key) or b''",
    "GetGivesViews": "def get(self, key): v = super().get(key); return v and memoryview(v)",
    "SetKeepsTheBuffer": "def set(self, key, value): self.values[key] = value",
    "SetIsLost": "def set(self, key, value): self.values.setdefault(key, bytes(value))",
    "SetReplacesAll": (
        "def set(self, key, value):\n"
        "        values = {**self.values, key: bytes(value)}\n"
        "        time.sleep(0.001)\n"
        "        self.values = values"
    ),
    "KeysHaveNoCase": "def set(self, key, value): super().set(key.lower(), value)",
    "EraseComplains": "def erase(self, key): del self.values[key]",
    "EraseDoesNothing": "def erase(self, key): pass",
    "EraseTooMuch": "def erase_prefix(self, prefix): super().erase_prefix(prefix and '')",
    "ManyInAnotherOrder": "def get_many(self, keys, s): return super().get_many(sorted(keys), s)",
    "RangesFromTheStart": "def get_range(self, k, at, n=None): return super().get_range(k, 0, n)",
    "PartsInAnotherOrder": (
        "def get_partial_values(self, w): return super().get_partial_values(sorted(w, key=str))"
    ),
    "PartsCutTheRest": "def set_partial_values(self, w): [self.set(k, v) for k, _, v in w]",
    "ListsOneLevel": "def list_prefix(self, prefix): return iter(self.list_dir(prefix)[0])",
    "ListsUnsorted": "def list_dir(self, p): k, d = super().list_dir(p); return k[::-1], d",
    "ListsAnyPrefix": "def list_dir(self, p): return super().list_dir((p or '').rstrip('/') + '/')",
    "UnlikeItself": "def __eq__(self, other): return False\n    __hash__ = MemoryStore.__hash__",
    "PicklesToNothing": "def __reduce__(self): return MemoryStore, ()",
    "CannotList": "capabilities = Capabilities(listable=False)",
}


def run(path: Path, source: str) -> dict[str, set[str]]:
    """Return the tests that failed, for each class of a file."""
    (path / "test_stores.py").write_text(source)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rfE",
        "--tb=no",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "test_stores.py",
    ]
    # Plugins that happen to be installed take longer than the tests.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    # The package that is tested here, whichever is installed.
    environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    done = subprocess.run(
        command, cwd=path, env=environment, capture_output=True, text=True, check=False
    )
    assert "passed" in done.stdout, done.stdout + done.stderr
    failed: dict[str, set[str]] = {}
    for name, test in re.findall(
        r"^(?:FAILED|ERROR) test_stores\.py::Test(\w+)::(\w+)", done.stdout, re.M
    ):
        failed.setdefault(name, set()).add(test)
    return failed


def test_each_fault_is_found_and_a_good_store_has_none(tmp_path):
    source = GOOD
    for name, fault in FAULTS.items():
        source += f"\n\nclass {name}(MemoryStore):\n    {fault}\n"
        source += f"\n\nclass Test{name}(StoreContract):\n    @pytest.fixture\n"
        source += f"    def store(self):\n        return {name}()\n"
    source += "\n\nclass TestReader(ReadOnlyStoreContract):\n    @pytest.fixture\n"
    source += "    def store(self):\n        return Reader(dict(VALUES))\n"
    source += "\n\nclass TestForgetful(ReadOnlyStoreContract):\n    @pytest.fixture\n"
    source += "    def store(self):\n        return Forgetful(dict(VALUES))\n"
    source += "\n\nclass TestNone(StoreContract): pass  # without the fixture\n"
    failed = run(tmp_path, source)
    assert set(failed) == {*FAULTS, "Reader", "Forgetful", "None"}
    assert failed["Forgetful"] - failed["Reader"] == {"test_it_pickles_to_one_that_reads_the_same"}
    assert failed["None"] == {name for name in dir(StoreContract) if name.startswith("test_")}
