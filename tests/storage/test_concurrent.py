"""Stores of users whose requests may be in flight together."""

import threading
from weakref import WeakValueDictionary

import dask
import pytest

from zarrdask.formats.byte_ranges import cut
from zarrdask.runtime.in_flight import Requests
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.remote.retry import RetryingStore
from zarrdask.testing import StoreContract

LIVE = WeakValueDictionary()


def recall(number):
    return LIVE[number]


class Far(Store):
    """A store of somebody else: requests wait until `together` of them have come."""

    url = "far://"
    capabilities = Capabilities(concurrent=True, shared=False)

    def __init__(self, together=1):
        self.values, self.barrier = {}, threading.Barrier(together)
        LIVE[id(self)] = self

    def __reduce__(self):
        return recall, (id(self),)

    def get(self, key):
        return self.get_range(key, 0)

    def get_range(self, key, start, length=None):
        self.barrier.wait(30)
        value = self.values.get(key)
        return None if value is None else bytes(cut(value, start, length))

    def set(self, key, value):
        self.values[key] = bytes(value)

    def erase(self, key):
        self.barrier.wait(30)
        self.values.pop(key, None)

    def list(self):
        return iter(sorted(self.values))


class TestFar(StoreContract):
    @pytest.fixture
    def store(self):
        return Far()


@pytest.mark.parametrize("wrap", [lambda store: store, RetryingStore], ids=["bare", "retrying"])
def test_the_requests_of_a_call_are_in_flight_together(wrap):
    inner = Far(together=3)
    store, keys = wrap(inner), ["a", "b", "c"]
    for key in keys:
        store.set(key, b"0123456789")
    assert [*store.get_many(keys, Scratch())] == [b"0123456789"] * 3
    far = [(0, 1), (4, 1), (8, 1)]
    assert store.get_partial_values([(key, (2, 2)) for key in keys]) == [b"23"] * 3
    with dask.config.set({"zarrdask.coalesce-gap": 0}):
        assert [*store.get_ranges("a", far, Scratch())] == [b"0", b"4", b"8"]
    store.erase_values(keys)
    assert inner.values == {}


def test_requests_that_hold_no_bytes_do_not_pile_up(setting):
    setting({"zarrdask.requests": 2})
    done, waiting, gate = [], [], threading.Event()

    def request():
        gate.wait(30)
        done.append(None)

    with Requests() as requests:
        threading.Timer(0.05, gate.set).start()
        for sent in range(100):
            requests.send(request)
            waiting.append(sent + 1 - len(done))
    assert max(waiting) <= 4
    assert len(done) == 100
