"""The threads that make requests."""

import gc
import subprocess
import sys
import threading
import weakref
from unittest.mock import Mock

import pytest

from zarrdask.runtime.request_threads import Call, RequestThreads


@pytest.fixture
def threads():
    pool = RequestThreads(2)
    yield pool
    pool.finish()


def send(threads, call):
    request = Call(call, threading.Event())
    threads.send(request)
    return request


def test_each_request_has_a_result_or_an_error(threads):
    requests = [send(threads, lambda n=n: 6 // n) for n in (3, 0, 2)]
    assert [requests[0].take(), requests[2].take()] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        requests[1].take()


def test_up_to_as_many_threads_as_the_pool_has_make_requests(threads):
    together, names = threading.Barrier(2), []

    def call():
        together.wait(20)
        names.append(threading.current_thread().name)

    for request in [send(threads, call) for _ in range(6)]:
        request.take()
    assert len(names) == 6
    assert len(set(names)) == 2


def test_a_cancelled_request_is_not_made(threads):
    go_on, made = threading.Event(), []
    busy = [send(threads, go_on.wait) for _ in range(2)]
    cancelled = send(threads, lambda: made.append(1))
    cancelled.is_cancelled = True
    go_on.set()
    for request in (*busy, cancelled):
        request.wait()
    assert not made


def test_results_and_errors_are_not_kept(threads):
    class Value:
        pass

    def fail():
        raise LookupError(Value())

    value = send(threads, Value).take()
    kept = [weakref.ref(value)]
    del value
    gc.disable()
    try:
        send(threads, fail).take()
    except LookupError as error:
        kept.append(weakref.ref(error.args[0]))
    finally:
        gc.enable()
    send(threads, int).take()  # the threads have a next request
    send(threads, int).take()
    assert [each() for each in kept] == [None, None]


def test_a_process_does_not_end_within_a_request():
    code = """
import threading, time
from zarrdask.runtime.request_threads import Call, request_threads
begun = threading.Event()
def call():
    begun.set()
    time.sleep(0.1)
    print("done")
request_threads(1).send(Call(call, threading.Event()))
begun.wait()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("done\n", "")


def test_functions_that_run_when_python_ends_can_make_requests():
    code = """
import atexit
from zarrdask.runtime.in_flight import window
def last():
    print(*window(str, iter([2, 3])))
atexit.register(last)
print(*window(str, iter([0, 1])))
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert (run.stdout, run.stderr) == ("0 1\n2 3\n", "")


def test_a_request_is_made_in_this_thread_if_no_other_one_starts(threads, monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("no thread")))
    assert send(threads, threading.current_thread).take() is threading.current_thread()
