"""Runs a share of the cases of each test that has parameters; other cases in other turns.

``--of-each=1/4`` runs a quarter of the cases of each test, but at least one; ``--of-each=1`` runs
one of them. ``--turn=K`` says which: the cases of a test are dealt to its turns, and the turns
follow each other in a circle. So each test runs in each turn, each case of a test is in exactly one
turn of its circle, and any four consecutive turns of quarters run everything.

Cases are dealt by a checksum of their ids, so that a turn has different values of each parameter.
Only tests that are selected otherwise, such as by ``-m slow``, are dealt.
"""

import shlex
from dataclasses import dataclass
from zlib import crc32

import pytest
from toolz import groupby


@dataclass(frozen=True)
class Share:
    """How many cases of a test are run: a number, or one of so many parts."""

    number: int
    is_part: bool

    @classmethod
    def parse(cls, text):
        """Return the share that an option gives: ``N``, or ``1/N``."""
        number = text.removeprefix("1/")
        if not number.isdecimal() or int(number) < 1:
            raise pytest.UsageError(f"--of-each: expected N or 1/N, N at least 1; found {text!r}")
        return cls(int(number), number != text)

    def turns(self, cases):
        """Return the number of turns in which all cases of a test, which are so many, are run."""
        return min(self.number, cases) if self.is_part else -(-cases // self.number)


def dealt(test, cases, share, turn):
    """Return the ids of the cases of a test that a turn runs."""
    turns = share.turns(len(cases))
    # All tests would have their larger turns together if none began elsewhere.
    first = (turn + crc32(test.encode())) % turns
    return sorted(cases, key=lambda case: (crc32(case.encode()), case))[first::turns]


def function_of(case):
    """Return the id of the test that has a case."""
    return case.partition("[")[0]


def pytest_addoption(parser):
    parser.addoption(
        "--of-each",
        metavar="N or 1/N",
        help="run N cases of each test with parameters, or a part of them",
    )
    parser.addoption(
        "--turn", type=int, default=0, metavar="K", help="the turn of --of-each: others run others"
    )


def pytest_configure(config):
    if config.getoption("--of-each") is not None:
        Share.parse(config.getoption("--of-each"))  # an error before tests are collected


def pytest_report_header(config):
    if config.getoption("--of-each") is None:
        return None
    options = " ".join(f"{name}={config.getoption(name)}" for name in ("--of-each", "--turn"))
    return f"a share of the cases of each test is run: {options}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Deselect the cases of other turns, of the tests that marks have selected."""
    if config.getoption("--of-each") is None:
        return
    share = Share.parse(config.getoption("--of-each"))
    tests = groupby(function_of, (item.nodeid for item in items))
    kept = {
        case
        for test, cases in tests.items()
        for case in dealt(test, cases, share, config.getoption("--turn"))
    }
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def pytest_terminal_summary(terminalreporter, config):
    """Print the command that runs what has failed, which in another turn may not be run."""
    stats = terminalreporter.stats
    failed = dict.fromkeys(
        report.nodeid for report in [*stats.get("failed", []), *stats.get("error", [])]
    )
    if failed and config.getoption("--of-each") is not None:
        cases = " ".join(map(shlex.quote, failed))
        terminalreporter.write_line(f"to repeat: python -m pytest -m '' -n 0 {cases}")
