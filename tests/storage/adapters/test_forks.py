"""Forks of stores, and the changes that are merged into them."""

import gc
import json
import os
import pickle
import subprocess
import sys
import threading

import pytest

from zarrdask.errors import StoreError
from zarrdask.storage.adapters.forks import Changes, Fork, changing
from zarrdask.storage.memory import MemoryStore


class DictFork(Fork, MemoryStore):
    """A fork of a dict of texts."""

    def __init__(self, forked, name=""):
        MemoryStore.__init__(self, dict(forked))
        Fork.__init__(self, name)
        self.forked = forked

    def __reduce__(self):
        return DictFork, (dict(self.forked), self.name)

    def begin(self):
        return MemoryStore({})

    def end(self, copy):
        return json.dumps({key: copy.get(key).decode() for key in copy.list()}).encode()

    def check_unchanged(self):
        pass

    def check_same(self, other):
        pass

    def changed(self, changes):
        return json.loads(changes)

    def merge(self, changes):
        for part in changes:
            self.forked.update(json.loads(part))


@pytest.fixture
def session():
    return {"a": "1"}


def change(fork, **values):
    with changing(fork) as (store, changes):
        for key, value in values.items():
            store.set(key, value.encode())
    return changes[0]


def elsewhere(code, *values):
    """Run code in another process, with values that were pickled here; return its result."""
    script = (
        "import pickle, sys\n"
        "from tests.storage.adapters.test_forks import change\n"
        "values = pickle.load(sys.stdin.buffer)\n"
        f"sys.stdout.buffer.write(pickle.dumps({code}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps(values),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.stdout


def test_changes_are_merged_when_they_arrive(session):
    fork = DictFork(session)
    answer = elsewhere("change(*values, b='2')", fork)
    assert session == {"a": "1"}
    assert pickle.loads(answer) is None
    assert session == {"a": "1", "b": "2"}


def test_changes_are_merged_once(session):
    fork = DictFork(session)
    answer = elsewhere("change(*values, b='2')", fork)
    pickle.loads(answer)
    session["b"] = "3"
    pickle.loads(answer)
    assert session["b"] == "3"


def test_changes_that_arrive_in_two_threads_are_merged_once(session):
    merged = []

    class Slow(DictFork):
        def merge(self, changes):
            merged.append(changes)
            if len(merged) == 1:
                other.start()
                other.join(0.2)  # as long as this thread has not finished, the other one waits

    fork = Slow(session)
    answer = elsewhere("change(*values, b='2')", fork)
    other = threading.Thread(target=pickle.loads, args=(answer,))
    pickle.loads(answer)
    other.join()
    assert len(merged) == 1


def test_joined_changes_are_merged_together(session):
    fork, other = DictFork(session), DictFork({})
    code = (
        "__import__('zarrdask.storage.adapters.forks').storage.adapters.forks.Changes.joined("
        "[change(values[0], b='2'), change(values[0], c='3'), change(values[1], d='4')])"
    )
    assert pickle.loads(elsewhere(code, fork, other)) is None
    assert session == {"a": "1", "b": "2", "c": "3"}
    assert other.forked == {"d": "4"}


def test_changes_of_this_process_are_merged_when_they_are_joined(session):
    fork = DictFork(session)
    assert Changes.joined([change(fork, b="2"), change(fork, a="0")]) is None
    assert session == {"a": "0", "b": "2"}
    assert Changes.joined([]) is None


def test_a_task_that_fails_has_no_changes(session):
    fork = DictFork(session)

    def fail():
        with changing(fork) as (store, changes):
            store.set("b", b"2")
            try:
                raise RuntimeError
            finally:
                assert changes == []

    with pytest.raises(RuntimeError):
        fail()
    assert session == {"a": "1"}


def test_other_stores_are_changed_themselves():
    with changing(store := MemoryStore({})) as (changed, changes):
        assert changed is store
    assert changes == []


def test_a_store_that_is_gone_is_an_error(session):
    fork = DictFork(session)
    answer = elsewhere("change(*values, b='2')", fork)
    del fork
    gc.collect()
    with pytest.raises(StoreError, match="no longer exists"):
        pickle.loads(answer)
