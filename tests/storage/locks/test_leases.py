"""Leases: locks that are values in a store."""

import threading

import pytest

from tests.storage.locks.swapping import Swapping
from zarrdask.errors import StoreError
from zarrdask.storage.locks.leases import Lease

KEY = "a/lease"


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(Lease, "RENEWAL", 0.01)
    monkeypatch.setattr(Lease, "EXPIRY", 0.5)
    return Swapping()


def test_a_lease_has_one_holder_who_renews_it(store):
    inside, most = [], []

    def work():
        with Lease.hold(store, KEY):
            inside.append(1)
            most.append(len(inside))
            first = store.get(KEY)
            while store.get(KEY) == first:
                threading.Event().wait(0.01)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1, 1, 1]
    assert store.get(KEY) is None


def test_the_lease_of_a_killed_writer_is_taken(store):
    store.set(KEY, b"killed")
    with Lease.hold(store, KEY):
        assert store.get(KEY) != b"killed"
    assert store.get(KEY) is None


def test_a_writer_that_lost_its_lease_says_so(store, monkeypatch):
    checked = threading.Event()
    get_tagged = store.get_tagged

    def answer(key):
        found = get_tagged(key)
        if found[0] == b"another":
            checked.set()
        return found

    monkeypatch.setattr(store, "get_tagged", answer)

    def work():
        with Lease.hold(store, KEY):
            store.set(KEY, b"another")
            checked.wait(60)

    with pytest.raises(StoreError, match="another writer changed the shape"):
        work()
    assert store.get(KEY) == b"another"  # it is not this writer's any more


def test_a_writer_that_was_stopped_for_long_leaves_the_lease_to_its_new_holder(store, monkeypatch):
    monkeypatch.setattr(Lease, "RENEWAL", 60)  # The process was stopped: nothing was renewed.
    monkeypatch.setattr(Lease, "EXPIRY", 0.02)
    taken, checked = threading.Event(), threading.Event()

    def work():
        with Lease.hold(store, KEY):
            taken.set()
            checked.wait(60)

    another = threading.Thread(target=work)

    def be_stopped():
        with Lease.hold(store, KEY):
            another.start()
            taken.wait(60)

    with pytest.raises(StoreError, match="another writer changed the shape"):
        be_stopped()
    assert taken.is_set()
    assert store.get(KEY) is not None
    checked.set()
    another.join()


def test_a_renewal_is_a_check_of_the_lease(store, monkeypatch):
    with Lease.hold(store, KEY) as held:
        first = held.held_until
        while held.held_until == first:
            threading.Event().wait(0.01)
        get, threads = store.get, []
        monkeypatch.setattr(
            store, "get", lambda key: threads.append(threading.current_thread()) or get(key)
        )
        held.check(store)
        assert threading.current_thread() not in threads  # without a request
