"""Passing failures are not seen; lasting ones come at once."""

import errno
import os
import pickle
from collections import UserDict
from contextlib import contextmanager
from dataclasses import replace

import dask.config
import numpy as np
import pytest

import zarrdask
from tests.clocks import Clock
from tests.storage.faults import Faults, FaultyStore
from tests.storage.server_errors import HttpError, behind
from zarrdask.errors import StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import LOCAL_COSTS, REMOTE_COSTS, Capabilities
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote import rates, retry
from zarrdask.storage.remote.failures import is_transient
from zarrdask.storage.remote.rates import place_of
from zarrdask.storage.remote.retry import RetryingStore
from zarrdask.storage.value_parts import StoredValue


@pytest.fixture
def pauses(monkeypatch):
    found = []
    monkeypatch.setattr(retry, "pause", lambda seconds: found.append(seconds) or True)
    return found


class Failing(MemoryStore):
    """Fails a number of times in a row, then works."""

    def __init__(self, error, times, values=None):
        super().__init__(values)
        self.error, self.left = error, times

    def _maybe(self):
        if self.left:
            self.left -= 1
            raise self.error

    def get(self, key):
        self._maybe()
        return super().get(key)

    def set(self, key, value):
        self._maybe()
        super().set(key, value)


def test_a_failure_that_passes_is_not_seen(pauses):
    store = RetryingStore(Failing(ConnectionResetError(), 3))
    store.set("a", b"1")
    assert store.get("a") == b"1"
    assert len(pauses) == 3
    assert all(0 <= pause <= 0.1 * 2**i for i, pause in enumerate(pauses))


def test_what_was_created_before_the_failure_is_ones_own(pauses):
    inner = MemoryStore()
    store = RetryingStore(FaultyStore(inner, Faults(late=0.5), seed=1))
    with dask.config.set({"zarrdask.retries": 50}):
        found = [store.create(f"a{i}", b"mine") for i in range(20)]
        assert found == [True] * 20
        assert pauses
        assert [store.create(f"a{i}", b"other") for i in range(20)] == [False] * 20
    assert {inner.get(f"a{i}") for i in range(20)} == {b"mine"}


class LostAnswer(MemoryStore):
    """A remote store that repeats a conditional write whose answer was lost, which is refused."""

    capabilities = Capabilities(repeats=True, create_exclusive=True, compare_and_swap=True)

    def create(self, key, value):
        super().create(key, value)
        return False

    def swap(self, key, value, tag):
        if self.get(key) == tag:
            self.set(key, value)
        return False

    def get_tagged(self, key):
        return self.get(key), self.get(key)


def test_what_was_stored_by_a_request_that_the_backend_repeated_is_ones_own():
    inner = LostAnswer()
    store = RetryingStore(inner)
    assert store.create("a", b"mine")
    assert not store.create("a", b"other")
    assert store.swap("a", b"new", b"mine")
    assert not store.swap("a", b"other", b"mine")
    assert inner.get("a") == b"new"
    zarrdask.create_array(inner, "g/x", shape=2, dtype="i4", chunks=2).append([1, 2])
    zarrdask.consolidate_metadata(inner)
    assert zarrdask.open_group(inner)["g/x"].shape == (4,)


def test_it_is_given_up_after_the_configured_number(pauses):
    with dask.config.set({"zarrdask.retries": 2}), pytest.raises(StoreError) as caught:
        RetryingStore(Failing(ConnectionResetError(), 3)).get("a")
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert len(pauses) == 2


class Server(Store):
    """A server that refuses connections for a time, which passes while one pauses."""

    url = "server://"

    def __init__(self, up):
        self.up = up

    def get(self, key):
        if not self.up:
            raise behind(ConnectionRefusedError("refused"))
        return b"1"


def test_requests_that_a_store_refuses_are_sent_at_the_rate_that_it_accepts(setting, monkeypatch):
    """One of two requests is refused; there are more of them than retries of a request."""

    class Busy(MemoryStore):
        capabilities = replace(MemoryStore.capabilities, costs=REMOTE_COSTS, concurrent=True)
        requests = 0

        def get(self, key):
            self.requests += 1
            if self.requests > 20 and self.requests % 2:
                raise HttpError(503)
            return super().get(key)

    setting({"zarrdask.retries": 3})
    clock = Clock()
    for module in (rates, retry):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(rates, "pause", clock.pause)
    store = Busy()
    store.values.update({str(key): b"x" for key in range(40)})
    retrying_store = RetryingStore(store)
    assert all(retrying_store.get(str(key)) == b"x" for key in range(40))
    rate = retry.request_rate(place_of(retrying_store.url), "read")
    assert (rate.refused, rate.limit is None) == (20, False)


class OnServer(MemoryStore):
    """A store with latency, on the server that the environment names."""

    capabilities = replace(MemoryStore.capabilities, costs=REMOTE_COSTS, concurrent=True)

    @property
    def identity(self):
        return replace(super().identity, endpoint=os.environ["SERVER"])


def test_the_rate_is_that_of_the_server_which_this_process_uses(monkeypatch):
    servers = []

    def request_rate(place, kind):
        servers.append(place.partition(" at ")[2])
        return rates.RequestRate(place, kind)

    monkeypatch.setattr(retry, "request_rate", request_rate)
    monkeypatch.setenv("SERVER", "http://here")
    store = RetryingStore(OnServer({"a": b"1"}))
    assert store.get("a") == b"1"
    monkeypatch.setenv("SERVER", "http://there")
    unpickled = pickle.loads(pickle.dumps(store))
    assert store.get("a") == unpickled.get("a") == b"1"
    assert servers == ["http://here", "http://here", "http://there"]


def test_a_server_that_was_never_reached_is_not_waited_for(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(retry.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(retry.random, "uniform", lambda low, high: high)

    def pause(seconds):
        clock[0] += seconds
        return True

    monkeypatch.setattr(retry, "pause", pause)
    store = RetryingStore(Server(up=False))
    with pytest.raises(StoreError):
        store.get("a")
    assert 0 < clock[0] <= 1
    store.inner.up = True
    assert store.get("a") == b"1"
    # Now the address is right: the server is waited for, also in another process.
    for same in (store, pickle.loads(pickle.dumps(store))):
        same.inner.up, clock[0] = False, 0.0
        with pytest.raises(StoreError):
            same.get("a")
        assert clock[0] > 20


def test_values_read_in_parts_are_those_of_the_store_and_retried(pauses):
    class Opening(Foreign):
        opened = 0

        @contextmanager
        def reading(self, key, scratch):
            self.opened += 1
            yield StoredValue(Failing(TimeoutError(), 0, {key: self.values[key]}), key, scratch)

    inner = Opening(TimeoutError(), set())
    inner.set("a", b"0123")
    with RetryingStore(inner).reading("a", Scratch()) as value:
        inner.set("a", b"9999")
        value.value.store.left = 1
        assert bytes(value.part(1, 2)) == b"12"
        value.value.store.left = 1
        assert [bytes(part) for part in value.parts([(0, 1), (3, 1)])] == [b"0", b"3"]
    assert (inner.opened, len(pauses)) == (1, 2)


def test_pauses_have_a_limit(pauses):
    with dask.config.set({"zarrdask.retries": 20, "zarrdask.retry-delay": 0.5}):
        RetryingStore(Failing(TimeoutError(), 20)).get("a")
    assert max(pauses) <= 0.5


def test_a_lasting_failure_comes_at_once(pauses):
    inner = Failing(PermissionError("no"), 2)
    with pytest.raises(StoreError, match="no") as caught:
        RetryingStore(inner).set("a", b"1")
    assert caught.value.key == f"{inner.url}/a"
    assert (pauses, inner.left) == ([], 1)


@pytest.mark.parametrize("seed", range(10))
def test_many_values_are_taken_up_where_they_broke_off(pauses, seed):
    inner = MemoryStore({f"k{i}": bytes([i]) * 4 for i in range(50)})
    store = RetryingStore(FaultyStore(inner, Faults(lost=0.3), seed))
    keys = [f"k{i}" for i in range(50)] + ["none"]
    with dask.config.set({"zarrdask.retries": 30}):
        found = [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]
        parts = store.get_ranges("k7", [(0, 1), (1, 2), (2, 9)], Scratch())
        assert [bytes(p) for p in parts] == [b"\7", b"\7\7", b"\7\7"]
    assert found == [bytes([i]) * 4 for i in range(50)] + [None]
    assert pauses


def test_arrays_are_read_and_written_through_failures(pauses):
    import zarrdask

    inner = MemoryStore()
    faults = Faults(lost=0.2, late=0.1)
    store = RetryingStore(FaultyStore(inner, faults, 1))
    with dask.config.set({"zarrdask.retries": 50}):
        z = zarrdask.create_array(store, shape=(40, 40), chunks=7, dtype="i4")
        z[...] = np.arange(1600).reshape(40, 40)
        z[3:9, 5] = -1
        np.testing.assert_array_equal(zarrdask.open_array(inner)[...], z[...])
    assert (z[3:9, 5] == -1).all()
    assert pauses


# ---- what stores of users raise


class Foreign(Store):
    """A store of somebody else, in which some keys fail, with latency or without."""

    url = "foreign://"

    def __init__(self, error, bad, costs=REMOTE_COSTS):
        self.values, self.error, self.bad = {}, error, bad
        self.capabilities = replace(self.capabilities, costs=costs)

    def get(self, key):
        if key in self.bad:
            raise self.error
        return self.values.get(key)

    def set(self, key, value):
        if key in self.bad:
            raise self.error
        self.values[key] = bytes(value)

    def erase(self, key):
        if key in self.bad:
            raise self.error
        self.values.pop(key, None)

    def list_prefix(self, prefix):
        if prefix in self.bad:
            raise self.error
        return iter(sorted(key for key in self.values if key.startswith(prefix)))


ERRORS = [
    OSError(errno.EIO, "broken"),
    TimeoutError("slow"),
    ConnectionResetError("gone"),
    HttpError(500),
    RuntimeError("odd"),
]


@pytest.fixture(params=[REMOTE_COSTS, LOCAL_COSTS], ids=["far", "near"])
def foreign(request, pauses):
    def make(error):
        store = Foreign(error, set(), request.param)
        group = zarrdask.create_group(store)
        for name in ("a", "b"):
            z = group.create_array(name, shape=(4, 4), dtype="i4", chunks=2)
            z[...] = 1
        return store

    return make


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_a_store_raises_is_a_store_error_that_names_the_key(foreign, pauses, error):
    store = foreign(error)
    z = zarrdask.open_array(store, "a", mode="r+")
    store.bad = {"a/c/0/1"}
    actions = [
        lambda: z[...],
        lambda: zarrdask.from_zarr(store, "a").compute(scheduler="sync"),
        lambda: z.__setitem__(..., 2),
        lambda: z.__setitem__(..., 0),
        lambda: z.__setitem__((0, 2), 2),
    ]
    for action in actions:
        pauses.clear()
        with pytest.raises(StoreError) as caught:
            action()
        assert caught.value.key.endswith("a/c/0/1")
        assert is_transient(error) == (len(pauses) == 10)
    store.bad = {"b/zarr.json"}
    for action in (lambda: zarrdask.open(store, "b"), lambda: zarrdask.open(store)["b"]):
        with pytest.raises(StoreError, match=r"b/zarr\.json"):
            action()
    store.bad = {"", "a/"}
    with pytest.raises(StoreError):
        list(zarrdask.open_group(store))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_verifying_goes_on_after_what_a_store_raises(foreign, error):
    store = foreign(error)
    store.bad = {"a/c/0/1", "a/c/1/0"}
    report = zarrdask.verify(store, scheduler="sync")
    assert not report.ok
    assert [(p.kind, p.key) for p in report.problems] == [
        ("unreadable", "a/c/0/1"),
        ("unreadable", "a/c/1/0"),
    ]
    assert {each.path: each.stored for each in report.arrays} == {"a": 4, "b": 4}
    store.bad = {"a/zarr.json"}
    report = zarrdask.verify(store, scheduler="sync")
    assert {(p.kind, p.path) for p in report.problems} == {("unreadable", "a")}
    assert [each.path for each in report.arrays] == ["b"]


def test_a_mapping_that_fails_is_a_store_that_fails(pauses):
    class Mapping(UserDict):
        bad = False

        def __getitem__(self, key):
            if self.bad and "/c/" in key:
                raise ConnectionResetError("gone")
            return super().__getitem__(key)

    values = Mapping()
    zarrdask.create_array(values, "a", shape=4, dtype="i4")[...] = 1
    values.bad = True
    with pytest.raises(StoreError, match="gone"):
        zarrdask.open_array(values, "a")[...]
    assert len(pauses) == 10


def test_what_is_of_this_package_is_reached_directly(tmp_path):
    for place in ({}, tmp_path):
        store = zarrdask.create_array(place, shape=4, dtype="i4").store
        assert not isinstance(store, RetryingStore)


def test_the_log_holds_no_passwords(monkeypatch, caplog, setting):
    setting({"zarrdask.retry-delay": 0.001})

    class Protected(MemoryStore):
        url = "https://user:secret@host/x"

    def fail(key):
        raise TimeoutError("no answer from https://user:secret@host/x")

    store = Protected()
    monkeypatch.setattr(store, "get", fail)
    with caplog.at_level("INFO"), pytest.raises(StoreError):
        RetryingStore(store).get("a")
    assert "user:***@host" in caplog.text
    assert "secret" not in caplog.text


def test_a_store_of_others_stores_many_values_in_its_own_way(pauses):
    class Bulk(MemoryStore):
        capabilities = replace(MemoryStore.capabilities, costs=REMOTE_COSTS)
        failures = 1

        def set_many(self, values):
            assert isinstance(values, list)
            if self.failures:
                self.failures -= 1
                raise ConnectionError("lost")
            self.values.update(values)

    store = RetryingStore(Bulk())
    buffer = bytearray(1)
    store.set_many((chr(n), buffer) for n in b"abc" if not buffer.__setitem__(0, n))
    assert store.inner.values == {"a": b"a", "b": b"b", "c": b"c"}


class CountedRanges(MemoryStore):
    """A store that reads several ranges by one request."""

    capabilities = Capabilities()

    def __init__(self, values):
        super().__init__(values)
        self.count = 0

    def get_ranges(self, key, ranges, scratch):
        self.count += 1
        return super().get_ranges(key, ranges, scratch)


def test_ranges_are_one_request_of_a_store_without_concurrent_requests():
    inner = CountedRanges({"a": b"0123456789"})
    parts = RetryingStore(inner).get_ranges("a", [(0, 2), (4, 2)], Scratch())
    assert [bytes(part) for part in parts] == [b"01", b"45"]
    assert inner.count == 1
