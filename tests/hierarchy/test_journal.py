"""The record of what a rewrite has done."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from zarrdask.errors import StoreError
from zarrdask.hierarchy import journal
from zarrdask.hierarchy.journal import Journal
from zarrdask.storage.memory import MemoryStore

KEY = "a/plan.json"


def written(*done, plan="this", store=None):
    """Return a store with a record of these (stage, task)."""
    store = MemoryStore() if store is None else store
    record = Journal(store, KEY, plan)
    for stage, task in done:
        record.add(stage, task)
    record.store()
    return store


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 40))))
def test_what_was_done_is_read_again(done):
    found = Journal(written(*done), KEY, "this")
    assert found.read() == "this"
    for stage in range(5):
        assert found.done(stage) == {task for at, task in done if at == stage}


def test_there_may_be_no_record():
    found = Journal(MemoryStore(), KEY, "this")
    assert found.read() is None
    assert found.done(0) == set()


def test_of_another_plan_nothing_is_done():
    found = Journal(written((0, 1), plan="other"), KEY, "this")
    assert found.read() == "other"
    assert found.done(0) == set()


def test_a_record_of_another_version_is_of_another_plan():
    store = written((0, 1))
    record = json.loads(store.get(KEY))
    store.set(KEY, json.dumps(record | {"version": record["version"] + 1}).encode())
    found = Journal(store, KEY, "this")
    assert found.read() not in ("this", None)
    assert found.done(0) == set()


@for_each(
    "harm",
    [
        lambda data: data[: len(data) // 2],
        lambda _: b"",
        lambda _: b"[]",
        lambda _: b"{}",
        lambda _: b"\xff",
        lambda data: data.replace(b"done", b"gone"),
        lambda data: data.replace(b"[[0, 1]]", b"[[0]]"),
        lambda data: data.replace(b"[[0, 1]]", b'["01"]'),
        lambda data: data.replace(b"[[0, 1]]", b"7"),
    ],
)
def test_a_damaged_record_is_refused_by_its_key(harm):
    store = written((0, 0), (0, 1))
    harmed = harm(store.get(KEY))
    assert harmed != store.get(KEY)
    store.set(KEY, harmed)
    found = Journal(store, KEY, "this")
    with pytest.raises(StoreError, match=r"damaged.*restart=True") as caught:
        found.read()
    assert caught.value.key == KEY
    assert found.done(0) == set()


def test_it_stays_small_whatever_is_done():
    store = written(*((0, task) for task in range(100_000)), (1, 5))
    assert len(store.get(KEY)) < 200


def test_it_is_not_stored_after_each_task(monkeypatch):
    store, times = MemoryStore(), iter([0.0, 0.2, 0.9, 1.1, 1.2, 1.3])
    monkeypatch.setattr(journal, "monotonic", lambda: next(times))
    record, stored = Journal(store, KEY, "this"), []
    for task in range(3):
        record.add(0, task)
        stored.append(store.get(KEY) is not None)
    assert stored == [False, False, True]


def test_it_can_be_added_to_after_it_was_read():
    store = written((0, 1))
    found = Journal(store, KEY, "this")
    found.read()
    found.add(1, 7)
    found.store()
    again = Journal(store, KEY, "this")
    again.read()
    assert (again.done(0), again.done(1)) == ({1}, {7})
