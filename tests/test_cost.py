"""The list of slow tests is kept true."""

import os
import re
import subprocess
import sys

import pytest

from tests import cost
from tests.covering import for_each

HERE = "tests/test_cost.py"


@for_each(
    ("name", "is_missing"),
    [
        (f"{HERE}::test_there", False),
        (f"{HERE}::test_gone", True),
        ("tests/test_gone.py::test_there", True),
        ("tests/test_layers.py::test_not_collected", False),
    ],
)
def test_a_test_that_does_not_exist_is_found(name, is_missing):
    gone = cost.missing({name}, [f"{HERE}::test_there"])
    assert gone == ({name} if is_missing else set())


@for_each(
    ("listed", "costs", "expected"),
    [
        (set(), {"a": cost.SLOW + 0.01, "b": cost.SLOW - 0.01}, {"a"}),
        ({"a", "b"}, {"a": cost.QUICK + 0.01, "b": cost.QUICK - 0.01}, {"a"}),
        ({"a"}, {"b": 1.0}, {"a", "b"}),
        # Of the cases of a test, the core keeps the two that are cheapest, or a third.
        (set(), {"t[1]": 0.05, "t[2]": 0.04, "t[3]": 0.03, "t[4]": 0.02}, {"t[1]", "t[2]"}),
        (set(), {f"t[{n}]": 0.04 + n / 1000 for n in range(9)}, {f"t[{n}]" for n in range(3, 9)}),
        (set(), {"t[1]": 0.05, "t[2]": 0.05, "other[1]": 0.05}, set()),
        (set(), {f"{cost.APART[0]}[{n}]": 0.05 for n in range(4)}, set()),
    ],
)
def test_what_was_measured_changes_the_list(listed, costs, expected):
    assert cost.updated(listed, costs) == expected


def test_the_comment_of_the_list_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "LIST", tmp_path / "list.txt")
    cost.LIST.write_text("# comment\nb\n")
    cost.write_list({"c", *cost.read_list(), "a"})
    assert cost.LIST.read_text() == "# comment\na\nb\nc\n"


TESTS = """
import time
import pytest

first = []

def test_that_pays_for_others():
    spend(0 if first else 0.6)
    first.append(0)

def test_expensive():
    spend(0.6)

@pytest.mark.slow
def test_slow():
    spend(0.6)

def spend(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""


@pytest.mark.slow
def test_an_expensive_test_fails_unless_it_is_marked(tmp_path, monkeypatch):
    path = tmp_path / "test_it.py"
    path.write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n slow: slow\n stress: stress\n")
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "tests.cost", "--cost=check"]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(cost.ROOT), *filter(None, sys.path)]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    failed = re.findall(r"^FAILED test_it.py::(\w+)", run.stdout, re.MULTILINE)
    assert failed == ["test_expensive"], run.stdout
