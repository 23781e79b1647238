"""Each policy of remote stores against a dict, in random operations with faults."""

import random
from dataclasses import replace

import dask
import pytest

from tests.covering import for_each
from tests.storage.server_errors import HttpError, behind
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Entry, ObjectVersion, Part, StoredObject, Version, cut
from zarrdask.storage.base import Store
from zarrdask.storage.cache.cache_directory import CacheDirectory
from zarrdask.storage.cache.disk_cache import DiskCachedStore
from zarrdask.storage.cache.prefetched import PrefetchedStore
from zarrdask.storage.capabilities import LOCAL_COSTS, Capabilities
from zarrdask.storage.locks.unchanged import UnchangedStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.policy_store import PolicyStore
from zarrdask.storage.remote import retry
from zarrdask.storage.remote.body_limit import MAX_BODY_BYTES, BoundedStore, body_limit
from zarrdask.storage.remote.forbidden import ForbiddenIsMissing
from zarrdask.storage.remote.obstore.obstore_errors import AnswerError
from zarrdask.storage.remote.remote_store import RemoteStore
from zarrdask.storage.remote.retry import RetryingStore

KEYS = ["a", "b/c", "b/d"]


class Served(Store):
    """Values with tags, which a server sends.

    Attributes
    ----------
    values : dict
        The values with their tags, by key.
    fault : callable
        Called with whether a request is a read: returns an error to raise, or None.
    is_late : callable
        Whether the error is raised after the request was served.
    """

    url = "s3://bucket/x"
    capabilities = Capabilities(
        costs=LOCAL_COSTS,
        create_exclusive=True,
        compare_and_swap=True,
        etags=True,
        versions=True,
        reads_versions=True,
    )

    def __init__(self):
        self.values, self.writes, self.requests, self.limits = {}, 0, 0, set()
        self.fault, self.is_late = lambda is_read: None, lambda: False

    def _served(self, answer, is_read=True):
        self.requests += 1
        self.limits.add(body_limit())
        error = self.fault(is_read)
        if error is None:
            return answer()
        if self.is_late():
            answer()
        raise error

    def _present(self, key):
        return self.values.get(key, (None, None))

    def get(self, key):
        return self._served(lambda: self._present(key)[0])

    def get_range(self, key, start, length=None):
        def answer():
            value = self._present(key)[0]
            return None if value is None else cut(value, start, length)

        return self._served(answer)

    def get_part(self, key, start, length, tag=None):
        def answer():
            value, found = self._present(key)
            is_met = value is not None and tag in (None, found)
            return Part(cut(value, start, length), len(value), found) if is_met else None

        return self._served(answer)

    def get_if_changed(self, key, tag, start=0, length=None):
        def answer():
            value, found = self._present(key)
            if value is None or tag == found:
                return Version(tag=found)
            return Version(cut(value, start, length), len(value), found)

        return self._served(answer)

    def get_version(self, key, version, start=0, length=None):
        def answer():
            value, found = self._present(key)
            is_met = value is not None and version.tag == found
            return cut(value, start, length) if is_met else None

        return self._served(answer)

    def get_tagged(self, key):
        return self._served(lambda: self._present(key))

    def stat(self, key):
        def answer():
            value, tag = self._present(key)
            if value is None:
                return None
            return Entry(key, len(value), "", StoredObject(key, self.url, len(value), None, tag))

        return self._served(answer)

    def put(self, key, value):
        """Store a value, as any writer."""
        self.writes += 1
        self.values[key] = bytes(value), str(self.writes)

    def set(self, key, value):
        self._served(lambda: self.put(key, value), is_read=False)

    def create(self, key, value):
        return self.swap(key, value, None)

    def swap(self, key, value, tag):
        def answer():
            is_met = self._present(key)[1] == tag
            if is_met:
                self.put(key, value)
            return is_met

        return self._served(answer, is_read=False)

    def erase(self, key):
        self._served(lambda: self.values.pop(key, None), is_read=False)

    def list_prefix(self, prefix):
        found = self._served(lambda: [key for key in self.values if key.startswith(prefix)])
        return iter(sorted(found))


READS = "get", "part", "pinned", "changed", "version", "described", "tagged"
WRITES = "set", "create", "swap", "erase"


def operation(rng, model, writes=WRITES):
    """Return a random operation on a store, and what it returns for the values of a model."""
    key, value, start = rng.choice(KEYS), rng.randbytes(rng.choice([1, 9])), rng.choice([0, 2, -3])
    present, tag = model.values.get(key, (None, None))
    is_same = rng.random() < 0.7
    if not is_same:
        tag = f"{rng.randint(0, model.writes)}"  # an earlier one, as a rule
        is_same = present is not None and tag == model.values[key][1]
    part = None if present is None else bytes(cut(present, start, 3))
    match rng.choice([*READS, *writes]):
        case "get":
            return lambda store: store.get(key), present
        case "part":
            return lambda store: plain(store.get_range(key, start, 3)), part
        case "pinned":
            expected = part if is_same else None
            return lambda store: plain(store.get_part(key, start, 3, tag)), expected
        case "changed":
            expected = None if is_same else part
            return lambda store: plain(store.get_if_changed(key, tag, start, 3)), expected
        case "version":
            expected = part if is_same else None
            version = ObjectVersion(tag)
            return lambda store: plain(store.get_version(key, version, start, 3)), expected
        case "described":
            expected = model.values.get(key, (None, None))[1]
            return lambda store: described(store.stat(key)), expected
        case "tagged":
            return lambda store: plain(store.get_tagged(key)[0]), present
        case "set":
            return lambda store: store.set(key, value), None
        case "create":
            return lambda store: store.create(key, value), present is None
        case "swap":
            return lambda store: store.swap(key, value, tag), is_same
    return lambda store: store.erase(key), None


def plain(found):
    """Return the bytes that a read returns."""
    value = getattr(found, "value", found)
    return None if value is None else bytes(value)


def described(entry):
    """Return the tag by which the answer to a request for the properties names the version."""
    return None if entry is None else entry.object.version.tag


def contents(served):
    return {key: value for key, (value, _) in served.values.items()}


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr(retry, "pause", lambda seconds: True)


def retried(served, tmp_path):
    return RetryingStore(served)


def forbidden(served, tmp_path):
    return ForbiddenIsMissing(served)


def bounded(served, tmp_path):
    return BoundedStore(served, 100)


def cached(served, tmp_path):
    return DiskCachedStore(served, CacheDirectory.below(str(tmp_path), 2**24))


def taken_over(served, tmp_path):
    store = RemoteStore(served.url, None, served)
    store.__dict__["_by_fsspec"] = served
    return store


def stacked(served, tmp_path):
    return bounded(forbidden(retried(cached(taken_over(served, None), tmp_path), None), None), None)


def prefetched(served, tmp_path):
    return PrefetchedStore(served, ["a", "b/d"], ["b/"])


def unchanged(served, tmp_path):
    return UnchangedStore(served)


#: Policies that remember what was read: no other writer changes it in these tests.
ALONE = prefetched, unchanged
FAST = retried, forbidden, bounded, taken_over, *ALONE
SLOW = [pytest.param(each, marks=pytest.mark.slow) for each in (cached, stacked)]


@pytest.mark.parametrize("policy", [*FAST, *SLOW])
@for_each("seed", range(2))
def test_what_a_policy_returns_is_what_a_dict_has_whatever_the_faults(
    policy, seed, tmp_path, no_pauses
):
    """With retries, no fault is seen; without them, none happens, but others write."""
    rng, served, model = random.Random(seed), Served(), Served()
    store = policy(served, tmp_path)
    if policy in (retried, stacked):
        errors = [ConnectionResetError("lost"), TimeoutError("slow"), HttpError(503)]
        served.fault = lambda _: rng.choice(errors) if rng.random() < 0.3 else None
        served.is_late = lambda: rng.random() < 0.5
    with dask.config.set({"zarrdask.retries": 100}):
        for _ in range(100):
            if policy not in ALONE and rng.random() < 0.2:
                served.put("a", written := rng.randbytes(4))
                model.put("a", written)
            # Their tags may differ by repeated writes.
            model.values, model.writes = dict(served.values), served.writes
            # A change through an `UnchangedStore` is by `set`, or by `swap`.
            writes = [each for each in WRITES if policy is not unchanged or each != "swap"]
            act, expected = operation(rng, model, writes)
            act(model)
            assert act(store) == expected
            assert contents(served) == contents(model)


def test_a_read_on_a_condition_that_does_not_hold_is_one_request(no_pauses):
    served = Served()
    served.capabilities = replace(served.capabilities, repeats=True)
    served.put("a", b"1")
    assert RetryingStore(served).get_part("a", 0, 1, "another") is None
    assert served.requests == 1


def test_a_read_that_is_refused_is_of_a_missing_value_and_a_write_is_an_error():
    served = Served()
    store = ForbiddenIsMissing(served)
    store.set("a", b"1")
    served.fault = lambda _: behind(HttpError(403))
    reads = [
        store.get("a"),
        store.get_range("a", 0),
        store.get_part("a", 0, 1),
        store.get_tagged("a")[0],
        store.get_if_changed("a", None).value,
        store.stat("a"),
    ]
    assert reads == [None] * 6
    for write in (store.set, store.create):
        with pytest.raises(StoreError):
            write("b", b"1")
    served.fault = lambda _: behind(HttpError(404))
    with pytest.raises(StoreError):
        store.get("a")


def test_the_limit_of_bodies_is_that_of_reads_in_the_thread_that_sends_them():
    served = Served()
    store = BoundedStore(served, 7)
    store.set("a", b"1")
    for read in (store.get, store.get_tagged):
        served.limits.clear()
        read("a")
        assert (served.limits, body_limit()) == ({7}, MAX_BODY_BYTES)


def test_a_cached_part_of_a_version_that_is_gone_is_not_returned(tmp_path):
    served = Served()
    served.put("a", b"123")
    store = cached(served, tmp_path)
    part = store.get_part("a", 0, 2)
    assert store.get_part("a", 0, 2, part.tag) == part
    served.put("a", b"456")
    assert store.get_part("a", 0, 2, part.tag) is None
    assert store.get_part("a", 0, 2).value == b"45"


def test_offline_what_was_seen_is_returned_and_all_else_is_an_error(tmp_path):
    served = Served()
    served.put("a", b"123456789")
    online = cached(served, tmp_path)
    online.get("a"), online.get("b/c"), online.get_range("a", -3, 3)
    served.put("a", b"other")
    served.requests = 0
    store = DiskCachedStore(served, online.directory, offline=True)
    seen = [store.get("a"), store.get("b/c"), bytes(store.get_range("a", -3, 3))]
    assert seen == [b"123456789", None, b"789"]
    unseen = [
        lambda: store.get("b/d"),
        lambda: store.get_range("a", 1, 2),
        lambda: store.get_tagged("a"),
        lambda: store.set("a", b"1"),
        lambda: store.erase_prefix(""),
        lambda: store.stat("a"),
        lambda: store.list_dir(""),
        lambda: list(store.list_prefix("")),
    ]
    for act in unseen:
        with pytest.raises(StoreError, match="cache-offline"):
            act()
    assert served.requests == 0


def test_a_store_that_does_not_understand_an_answer_is_asked_no_more(tmp_path):
    first, second = Served(), Served()
    second.values = first.values
    store = RemoteStore(first.url, None, first)
    store.__dict__["_by_fsspec"] = second
    store.set("a", b"1")
    first.fault = lambda _: behind(AnswerError("odd"))
    assert store.get("a") == b"1"
    assert (first.requests, second.requests) == (2, 1)
    store.set("a", b"2")
    assert (first.requests, second.requests) == (2, 2)


class Counted(PolicyStore):
    """A policy that counts what passes it."""

    def __init__(self, inner):
        super().__init__(inner)
        self.seen = []

    def policy(self, request, send):
        self.seen.append((request.verb, request.key))
        return send(request)


def test_a_policy_sees_every_operation_once():
    store = Counted(Counted(MemoryStore({"a": b"1", "b/c": b"2"})))
    assert (store.get("a"), store.stat("a").size, store.create("a", b"2")) == (b"1", 1, False)
    assert list(store.entries("b/")) == [Entry("b/c")]
    store.erase_values(["a"])
    store.erase_prefix("b/")
    assert list(store.list_prefix("")) == []
    expected = [("GET", "a"), ("HEAD", "a"), ("PUT", "a"), ("LIST", "b/"), ("DELETE", "")]
    assert store.seen == store.inner.seen == [*expected, ("DELETE", "b/"), ("LIST", "")]
    assert replace(store.capabilities) == store.inner.inner.capabilities
