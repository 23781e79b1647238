"""Requests in flight."""

import subprocess
import sys
import threading
from contextlib import suppress
from unittest.mock import Mock

import pytest

from zarrdask.runtime import in_flight
from zarrdask.runtime.in_flight import Requests, pause, window
from zarrdask.runtime.request_threads import RequestThreads


@pytest.fixture
def limit(monkeypatch):
    """Limit the bytes in flight to 100, of which no other test holds any."""
    monkeypatch.setattr(in_flight, "MAX_BYTES_IN_FLIGHT", 100)
    monkeypatch.setattr(in_flight, "BYTES_IN_FLIGHT", in_flight.BytesInFlight())


def numbers(size=50):
    """Return a list of the requests that began, and the results of ten of `size` bytes each."""
    begun = []
    results = window(lambda n: begun.append(n) or n, iter(range(10)), size=lambda _: size)
    return begun, results


@pytest.mark.usefixtures("limit")
def test_all_calls_share_one_limit_of_bytes():
    first, first_results = numbers()
    assert next(first_results) == 0
    second, second_results = numbers()
    # The first call holds 50 bytes, as a result was taken; the second one holds the rest.
    assert [next(second_results), next(second_results)] == [0, 1]
    assert sorted(second) == [0, 1]
    # Threads may begin in any order, and late.
    assert sorted(first) in ([0], [0, 1])
    first_results.close()
    assert [*second_results] == [2, 3, 4, 5, 6, 7, 8, 9]
    _, third_results = numbers(size=100)
    assert [*third_results] == [*range(10)]


@pytest.mark.usefixtures("limit")
def test_a_request_that_fails_gives_its_bytes_back():
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            next(window(lambda n: 1 / n, iter([0, 1]), size=lambda _: 50))
        with pytest.raises(ZeroDivisionError), Requests() as requests:
            requests.send(lambda: 1 / 0, 50)
    together = threading.Barrier(2)
    assert sorted(window(lambda _: together.wait(20), iter("ab"), size=lambda _: 50)) == [0, 1]


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize(
    "begin",
    [lambda: next(window(str, iter("ab"), size=lambda _: 50)), lambda: Requests().send(str, 50)],
)
def test_a_request_for_which_no_thread_starts_gives_its_bytes_back(monkeypatch, begin):
    with monkeypatch.context() as no_threads:
        no_threads.setattr(RequestThreads, "send", Mock(side_effect=RuntimeError("no thread")))
        with pytest.raises(RuntimeError, match="no thread"):
            begin()
    together = threading.Barrier(2)
    assert sorted(window(lambda _: together.wait(20), iter("ab"), size=lambda _: 50)) == [0, 1]


def test_a_request_is_repeated_after_an_error_of_one_that_it_made_itself():
    def call(_):
        with pytest.raises(ZeroDivisionError):
            list(window(lambda n: 1 / n, iter([0, 1, 2])))
        return pause(0)

    assert list(window(call, iter(range(2)))) == [True, True]


def test_what_a_request_makes_itself_is_abandoned_with_it():
    begun, repeated = threading.Event(), []

    def nested(_):
        begun.set()
        repeated.append(pause(20))

    with suppress(LookupError), Requests() as requests:
        requests.send(lambda: list(window(nested, iter("ab"))))
        begun.wait(20)
        raise LookupError
    assert not any(repeated)


def test_a_forked_process_does_not_wait_for_requests_of_its_parent():
    code = """
import os, threading
from zarrdask.runtime.in_flight import window
go_on = threading.Event()
results = window(lambda n: n and go_on.wait(), iter(range(9)))
next(results)
if hasattr(os, "fork") and os.fork() == 0:
    results.close()
    os._exit(0)
if hasattr(os, "fork"):
    os.wait()
go_on.set()
print(*results)
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    assert (run.stdout, run.stderr) == ("True " * 7 + "True\n", "")
