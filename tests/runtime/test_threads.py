"""Threads that work together."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from zarrdask.runtime.threads import on_each


def test_results_come_in_the_order_of_the_items():
    assert on_each(lambda n: n * n, range(9), 3) == [n * n for n in range(9)]


def test_work_of_threads_may_be_done_by_as_many_others():
    # Of one and the same pool, all would wait for each other, for good.
    found = []

    def deeper(n):
        return sum(on_each(lambda m: sum(on_each(lambda k: n * m * k, range(3), 2)), range(3), 2))

    thread = threading.Thread(
        target=lambda: found.append(on_each(deeper, range(4), 2)), daemon=True
    )
    thread.start()
    thread.join(20)
    assert found == [[0, 9, 18, 27]]


class Pool(ThreadPoolExecutor):
    """A thread, and the work that it was given."""

    def __init__(self):
        super().__init__(1)
        self.futures = []

    def submit(self, *arguments):
        self.futures.append(super().submit(*arguments))
        return self.futures[-1]


def test_all_has_ended_when_an_error_comes_and_the_rest_does_not_begin():
    pool, begun, ended = Pool(), [], []

    def work(n):
        begun.append(n)
        if n == 0:
            raise ValueError(n)
        end = time.monotonic() + 20
        while not pool.futures[-1].cancelled() and time.monotonic() < end:
            time.sleep(0.001)
        ended.append(n)

    with pool:
        with pytest.raises(ValueError, match="0"):
            on_each(work, range(9), 2, pool)
        assert begun in ([0], [0, 1])
        assert ended == begun[1:]
