"""The record of what a rewrite has done."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from zarrdask.arrays.hierarchy.changes import journal
from zarrdask.arrays.hierarchy.changes.journal import Journal, digest
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import StoreError
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.storage.memory import MemoryStore

KEY = "a/.zarrdask-rewrite/plan.json"
THIS = {"array": "this"}


def written(*done, plan="this", store=None):
    """Return a store with a record of these (stage, task)."""
    store = MemoryStore() if store is None else store
    record = Journal(NodePath(store, "a"), {"array": plan})
    for stage, task in done:
        record.done(stage).add(task)
    record.store()
    return store


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 40))))
def test_what_was_done_is_read_again(done):
    found = Journal(NodePath(written(*done), "a"), THIS)
    assert found.resume()
    for stage in range(5):
        assert found.done(stage) == {task for at, task in done if at == stage}


def test_there_may_be_no_record():
    found = Journal(NodePath(MemoryStore(), "a"), THIS)
    assert not found.resume()
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
        lambda data: data.replace(b'"done"', b'"nodes": 3, "done"'),
    ],
)
def test_what_is_not_a_record_of_this_plan_is_refused_unless_one_begins_again(harm):
    store = written((0, 0), (0, 1))
    harmed = harm(store.get(KEY))
    assert harmed != store.get(KEY)
    store.set(KEY, harmed)
    found = Journal(NodePath(store, "a"), THIS)
    with pytest.raises(StoreError, match=r"or its record is damaged.*restart=True") as caught:
        found.resume()
    assert caught.value.key == f"{store.url}/{KEY}"
    assert not found.resume(overwrite=True)
    assert not found.resume(restart=True)
    assert found.done(0) == set()


def test_the_record_of_another_version_is_named_and_is_discarded_by_beginning_again():
    store = written((0, 0))
    record = json.loads(store.get(KEY))
    store.set(KEY, json.dumps(record | {"version": record["version"] - 1, "plan": "x"}).encode())
    found = Journal(NodePath(store, "a"), THIS)
    with pytest.raises(StoreError, match=r"another version of zarrdask began.*restart=True"):
        found.resume()
    assert not found.resume(restart=True)


def test_what_differs_from_another_plan_is_named():
    plan = {"array": "this", "options": digest(1), "region": digest(2)}
    Journal(NodePath(store := MemoryStore(), "a"), plan).store()
    other = plan | {"array": "other", "region": digest(3)}
    with pytest.raises(StoreError, match=r"\(what differs: array, region\)") as caught:
        Journal(NodePath(store, "a"), other).resume()
    assert (caught.value.found, caught.value.expected) == ("other", "this")
    with pytest.raises(StoreError, match=r"\(what differs: region\)") as caught:
        Journal(NodePath(store, "a"), plan | {"region": digest(3)}).resume()
    assert caught.value.found is None


def test_one_may_begin_again_what_could_go_on():
    found = Journal(NodePath(written((0, 1)), "a"), THIS)
    assert not found.resume(restart=True)
    assert found.done(0) == set()
    assert found.resume(overwrite=True)
    assert found.done(0) == {1}


def test_a_lease_stays_when_the_record_is_erased():
    class Swappable(MemoryStore):
        capabilities = replace(MemoryStore.capabilities, compare_and_swap=True)

        def swap(self, key, value, tag):
            raise NotImplementedError

    store, lease = written((0, 1), store=Swappable()), "a/.zarrdask-rewrite/lease"
    store.set(lease, b"held")
    store.set("a/.zarrdask-rewrite/packed/0/1.0", b"piece")
    Journal(NodePath(store, "a"), THIS).erase()
    assert [*store.list_prefix("")] == [lease]


def test_it_stays_small_whatever_is_done():
    store = written(*((0, task) for task in range(100_000)), (1, 5))
    assert len(store.get(KEY)) < 200


def test_it_is_due_a_second_after_it_was_stored(monkeypatch):
    times = iter([0.0, 0.9, 1.0, 1.1, 2.0])
    monkeypatch.setattr(journal, "monotonic", lambda: next(times))
    record = Journal(NodePath(MemoryStore(), "a"), THIS)
    assert [record.is_due, record.is_due] == [False, True]
    record.store()
    assert not record.is_due


def test_it_can_be_added_to_after_it_was_read():
    store = written((0, 1))
    found = Journal(NodePath(store, "a"), THIS)
    found.resume()
    found.done(1).add(7)
    found.store()
    again = Journal(NodePath(store, "a"), THIS)
    again.resume()
    assert (again.done(0), again.done(1)) == ({1}, {7})


@pytest.mark.parametrize("runs", [[[0, 10**10]], [[0, 10**7]] * 10, [[0, 1, 2]], [[0, 10**400]]])
def test_a_record_of_too_many_tasks_is_damaged(runs):
    values = {}
    record = {"version": 3, "plan": THIS, "done": [runs]}
    values[".zarrdask-rewrite/plan.json"] = json.dumps(record).encode()
    with pytest.raises(StoreError, match="damaged"):
        Journal(NodePath(MemoryStore(values), ""), THIS).resume()


def test_a_record_of_another_plan_that_has_written_its_array_is_over():
    store, metadata = MemoryStore(), plan_array(ArrayOptions(shape=4, dtype="i4"))
    record = Journal(NodePath(store, "a"), {"array": "other"}, {"": metadata})
    record.store()
    found = Journal(NodePath(store, "a"), THIS)
    with pytest.raises(StoreError, match="another write"):
        found.resume(stored=metadata)
    record.write_root()
    with pytest.raises(StoreError, match="another write"):
        found.resume(stored=metadata.resized((3,)))
    assert not found.resume(stored=metadata)
