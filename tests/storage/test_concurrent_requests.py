"""Work of many requests is done concurrently where that is of use, and in order everywhere."""

import threading
from dataclasses import replace

import pytest

from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.concurrent_requests import request_each, request_on_each, request_on_stores
from zarrdask.storage.memory import MemoryStore


class Slow(MemoryStore):
    """A store whose requests are slow, and may be in flight together."""

    capabilities = replace(MemoryStore.capabilities, costs=REMOTE_COSTS, concurrent=True)


def meeting(count):
    """Return work that ends only when it is done on so many items at a time."""
    barrier = threading.Barrier(count, timeout=20)

    def work(item):
        barrier.wait()
        return item * 10

    return work


def test_requests_to_a_slow_store_are_in_flight_together():
    assert request_on_each(Slow(), meeting(3), [1, 2, 3]) == [10, 20, 30]
    assert [*request_each(Slow(), meeting(3), [1, 2, 3])] == [10, 20, 30]


def test_one_slow_store_among_several_is_enough():
    assert request_on_stores([MemoryStore(), Slow()], meeting(2), iter([1, 2])) == [10, 20]


@pytest.mark.parametrize("items", [[], [1], [1, 2, 3]])
def test_a_fast_store_is_asked_by_this_thread(items):
    threads = set[int]()

    def work(item):
        threads.add(threading.get_ident())
        return item

    assert request_on_each(MemoryStore(), work, items) == items
    assert [*request_each(MemoryStore(), work, items)] == items
    assert threads <= {threading.get_ident()}


def test_a_fast_store_is_asked_when_the_result_is_needed():
    asked = list[int]()
    results = request_each(MemoryStore(), asked.append, [1, 2])
    assert not asked
    next(results)
    assert asked == [1]
