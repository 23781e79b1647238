"""Workspaces that tasks use one after another."""

import os
import signal
import threading
import time

import pytest

from zarrdask.parallel.execution.workspace import release, slots


def increase(numbers):
    """Do work in the threads of a workspace, and give it back."""
    free = slots(1, 2)
    slot = free.get()
    found = slot.each(lambda n: n + 1, numbers)
    free.put(slot)
    return found


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_the_threads_of_its_parent():
    assert increase(range(3)) == [1, 2, 3]
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)
        os._exit(0 if increase(range(3)) == [1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0
    release()


def test_the_threads_of_a_released_workspace_end():
    increase(range(3))
    release()
    until = time.monotonic() + 20
    while any(thread.name.startswith("zarrdask-pass") for thread in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.01)
