"""The CPU time of tests: what costs more than a little is marked as slow, and left out of the core.

`slow_tests.txt` lists tests to mark, one a line, by the ids that pytest prints; a decorator,
``@pytest.mark.slow``, does the same for a whole test. Two options of pytest keep the list true:

- ``--cost=check`` fails each unmarked test that costs more than `LIMIT` seconds; CI uses it.
- ``--cost=measure`` writes the list anew, for the tests that run: above `SLOW` seconds, a test is
  added; below `QUICK` seconds, it is removed. Of a test with parameters, these limits are for the
  cheapest third of its cases, but at least two; the other cases have lower limits.

Between both limits are tests that were listed by hand, the most expensive ones first, as long as
the rest of the core executed each line of the package that they execute.

A test in the list that does not exist is an error. Tests with a cluster, a pool of processes or the
process scheduler are slow without being listed.
"""

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil
import pytest
from _pytest.runner import runtestprotocol
from toolz import groupby

LIMIT, SLOW, QUICK = 0.3, 0.06, 0.008
FURTHER_SLOW, FURTHER_QUICK = 0.022, 0.008
#: Tests whose cases have nothing in common: none is a further case of another.
APART = ("tests/test_examples.py::test_page",)

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "slow_tests.txt"


def read_list():
    """Return the ids of the tests in the list."""
    lines = LIST.read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


@cache
def listed_files():
    """Return the paths of the files with tests in the list."""
    return {ROOT / file_of(name) for name in read_list()}


def missing(listed, collected):
    """Return the ids of the list whose file does not exist, or was collected without them."""
    files = {file_of(name) for name in collected}
    return {
        name
        for name in listed - set(collected)
        if file_of(name) in files or not (ROOT / file_of(name)).exists()
    }


def file_of(name):
    """Return the file of a test, from its id."""
    return name.partition("::")[0]


def updated(listed, costs):
    """Return the list after tests were measured; those that were not measured stay in it."""
    further = further_cases(costs)
    slow = {
        name
        for name, cost in costs.items()
        if cost > limit(is_further=name in further, is_listed=name in listed)
    }
    return (listed - costs.keys()) | slow


def limit(*, is_further, is_listed):
    """Return the seconds above which a test is slow."""
    slow, quick = (FURTHER_SLOW, FURTHER_QUICK) if is_further else (SLOW, QUICK)
    return quick if is_listed else slow


def further_cases(costs):
    """Return the cases of tests with parameters that the core needs not: cheaper ones are in it."""
    tests = groupby(lambda name: name.partition("[")[0], costs)
    return {
        case
        for test, cases in tests.items()
        if test not in APART
        for case in sorted(cases, key=costs.get)[max(2, -(-len(cases) // 3)) :]
    }


def write_list(listed):
    """Replace the tests of the list; the comment at its beginning stays."""
    comment = [line for line in LIST.read_text().splitlines() if line.startswith("#")]
    LIST.write_text("".join(f"{line}\n" for line in [*comment, *sorted(listed)]))


def uses_workers(item):
    """Whether a test uses worker processes, which tests share: the first one pays for them."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    is_elsewhere = parameters.get("scheduler") in ("processes", "cluster")
    return is_elsewhere or not {"cluster", "pool"}.isdisjoint(getattr(item, "fixturenames", ()))


def own_seconds():
    """Return the CPU time of this process, and of its children that have ended."""
    return sum(os.times()[:4])


def living_seconds():
    """Return the CPU time of the living children of this process, and of theirs."""
    total = 0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            total += sum(child.cpu_times()[:4])
    return total


def pytest_addoption(parser):
    parser.addoption(
        "--cost",
        choices=["check", "measure"],
        help="check: fail expensive tests that are not marked as slow; measure: list them",
    )


def pytest_configure(config):
    if config.getoption("cost"):
        config.pluginmanager.register(Measurement(config))


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Mark the tests in the list, and those with worker processes, before marks select tests."""
    listed = read_list()
    for item in items:
        if item.nodeid in listed or uses_workers(item):
            item.add_marker("slow")
    # Of a file, ``file::test`` and ``--lf`` collect some tests only.
    is_partial = any("::" in argument for argument in config.args) or config.getoption("lf", False)
    gone = missing(listed, [item.nodeid for item in items])
    if gone and not is_partial and config.getoption("cost") != "measure":
        raise pytest.UsageError(f"{LIST.name} lists tests that do not exist: {sorted(gone)}")
    return (yield)


class Measurement:
    """Measures tests that take long: they run again, and that is what is measured.

    The first run of a process also pays for imports, clusters and servers that other tests share.
    Processes that a server forks are not children that end here: while the list is measured, which
    is done on an idle machine, tests run again also where they only waited.
    """

    def __init__(self, config):
        self.config = config
        self.listed = read_list()
        self.is_check = config.getoption("cost") == "check"
        self.costs = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        begun, at = own_seconds(), time.monotonic()
        result = yield
        took, waited = own_seconds() - begun, time.monotonic() - at
        is_marked = item.get_closest_marker("slow") or item.get_closest_marker("stress")
        if self.is_check:
            if took > LIMIT and not is_marked:
                self._check(item, self._run_again(item, nextitem))
        elif not is_marked or (item.nodeid in self.listed and not uses_workers(item)):
            is_long = took > FURTHER_QUICK or waited > QUICK
            self.costs[item.nodeid] = self._run_again(item, nextitem) if is_long else 0
        return result

    def _run_again(self, item, nextitem):
        # To look for children takes time itself, which is left out. Whether the test passes again
        # does not matter: it may leave files behind that the second run does not expect.
        living, own = living_seconds(), own_seconds()
        runtestprotocol(item, nextitem=nextitem, log=False)
        cost = own_seconds() - own
        return cost + living_seconds() - living

    def _check(self, item, cost):
        if cost > LIMIT:
            message = (
                f"this test costs {cost:.2f} s of CPU time: make it cheaper, or mark it as slow "
                f"with @pytest.mark.slow or a line in {LIST.name}"
            )
            report = pytest.TestReport(
                item.nodeid,
                item.location,
                dict.fromkeys(item.keywords, 1),
                "failed",
                message,
                "call",
            )
            item.ihook.pytest_runtest_logreport(report=report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Take the costs from a process of pytest-xdist that ends."""
        self.costs |= getattr(node, "workeroutput", {}).get("costs", {})

    def pytest_sessionfinish(self):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["costs"] = self.costs
        elif not self.is_check:
            write_list(updated(self.listed, self.costs))
