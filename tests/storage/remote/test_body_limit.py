"""Answers are read up to a number of bytes, which the requests of a thread set."""

import pickle
import threading
from dataclasses import replace

import pytest

from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote.body_limit import (
    MAX_BODY_BYTES,
    BodyTooLongError,
    body_limit,
    bounded,
    check_body,
)


class Limited(MemoryStore):
    """A store that checks the length of answers, and notes the limit."""

    capabilities = replace(MemoryStore.capabilities, bodies_limited=True)

    def get(self, key):
        value = super().get(key)
        check_body(len(value or b""), body_limit())
        return value


@pytest.fixture
def store():
    store = Limited()
    store.set("a", b"12345")
    return store


def test_a_longer_answer_is_an_error(store):
    assert bounded(store, 5).get("a") == b"12345"
    with pytest.raises(BodyTooLongError, match="more than 4 bytes"):
        bounded(store, 4).get("a")


def test_the_limit_ends_with_the_request(store):
    with pytest.raises(BodyTooLongError):
        bounded(store, 4).get("a")
    assert body_limit() == MAX_BODY_BYTES
    assert store.get("a") == b"12345"


def test_the_innermost_limit_holds(store):
    assert bounded(bounded(store, 5), 1).get("a") == b"12345"


def test_other_threads_have_other_limits(store):
    limits = list[int]()

    class Watched(Limited):
        def get(self, key):
            thread = threading.Thread(target=lambda: limits.append(body_limit()))
            thread.start()
            thread.join()
            return super().get(key)

    bounded(Watched(), 3).get("a")
    assert limits == [MAX_BODY_BYTES]


def test_nothing_is_between_where_answers_have_no_limit(store):
    assert bounded(store, None) is store
    assert bounded(plain := MemoryStore(), 5) is plain


def test_a_task_has_the_same_limit(store):
    with pytest.raises(BodyTooLongError):
        pickle.loads(pickle.dumps(bounded(store, 4))).get("a")
