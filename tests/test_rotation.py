"""Each case of a test is in one turn of the rotation, and each test in all turns."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.cost import ROOT
from tests.covering import for_each
from tests.rotation import Share, dealt, function_of

COUNTS = range(1, 30)


def cases_of(count):
    return [f"test_it[{number}]" for number in range(count)]


def turns(count, share, number, begin=0):
    """Return how often each case of a test is run in consecutive turns, and the sizes of turns."""
    share = Share.parse(share)
    each = [dealt("test_it", cases_of(count), share, begin + turn) for turn in range(number)]
    return Counter(case for cases in each for case in cases), [len(cases) for cases in each]


@for_each("parts", [1, 2, 3, 4, 7])
def test_as_many_turns_as_parts_run_each_case(parts):
    for count in COUNTS:
        for begin in (0, 1, 1205):
            runs, sizes = turns(count, f"1/{parts}", parts, begin)
            assert runs.keys() == set(cases_of(count))
            assert min(sizes) >= 1
            if count >= parts:
                assert set(runs.values()) == {1}
                assert max(sizes) - min(sizes) <= 1


@for_each("number", [1, 2, 3, 40])
def test_a_number_of_cases_goes_through_all_of_them(number):
    for count in COUNTS:
        runs, sizes = turns(count, f"{number}", -(-count // number))
        assert runs == dict.fromkeys(cases_of(count), 1)
        assert max(sizes) <= number


def test_tests_have_their_larger_turns_at_different_times():
    share = Share.parse("1/3")
    sizes = {
        tuple(len(dealt(f"test_{n}", cases_of(4), share, turn)) for turn in range(3))
        for n in range(20)
    }
    assert sizes == {(2, 1, 1), (1, 2, 1), (1, 1, 2)}


@for_each("share", ["0", "1/0", "", "1/", "2/3", "-1", "x"])
def test_what_is_no_share_is_an_error(share):
    with pytest.raises(pytest.UsageError, match="expected N or 1/N, N at least 1; found"):
        Share.parse(share)


TESTS = """
import pytest

def cases(count):
    slow = [pytest.param(n, marks=pytest.mark.slow) for n in range(count)]
    return pytest.mark.parametrize("n", [*range(100, 105), *slow])

@cases(6)
def test_many(n):
    pass

@cases(2)
def test_few(n):
    assert n != 1

@pytest.mark.slow
def test_one():
    pass
"""


@pytest.mark.slow
def test_the_slow_cases_are_dealt_and_a_failure_says_how_to_repeat_it(tmp_path, monkeypatch):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n slow: slow\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, sys.path)]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "tests.rotation", "-m", "slow"]
    runs, failures = Counter(), 0
    for turn in range(3):
        options = ["--of-each=1/3", f"--turn={turn}"]
        run = subprocess.run(
            [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        lines = run.stdout.splitlines()
        assert any(" ".join(options) in line for line in lines), run.stdout
        ids = [line.split()[0] for line in lines if line.endswith("%]")]
        tests = {function_of(case).partition("::")[2] for case in ids}
        assert tests == {"test_many", "test_few", "test_one"}
        repeat = "to repeat: python -m pytest -m '' -n 0 'test_it.py::test_few[1]'"
        failures += run.returncode
        assert (repeat in lines) == bool(run.returncode)
        runs.update(ids)
    assert {case for case, count in runs.items() if count == 1} >= {
        f"test_it.py::test_many[{n}]" for n in range(6)
    }
    assert len(runs) == 9
    assert failures
