"""Threads that take turns with small chunks."""

import threading
from functools import partial

import pytest

from zarrdask.runtime import turns
from zarrdask.runtime.threads import on_each

SMALL = {"count": 1000, "nbytes": 8}


def handle(handled, items):
    before = len(handled)
    handled += items
    return len(handled) - before


@pytest.mark.parametrize("slow", [0, 10])
@pytest.mark.parametrize(
    "options", [SMALL, {"count": 1, "nbytes": 8}, {"count": 9, "nbytes": 2**20}]
)
def test_every_item_is_handled_once_in_order(slow, options):
    for size in (0, 1, 16, 17, 1000):
        handled = []
        turns.in_turns(partial(handle, handled), iter(range(size)), slow=slow, **options)
        assert handled == list(range(size))


def test_a_small_chunk_may_have_small_chunks_in_it():
    handled = []

    def work(items):
        return sum(1 for _ in items if not turns.in_turns(inner, iter([1, 2]), **SMALL))

    inner = partial(handle, handled)
    turns.in_turns(work, iter("abc"), **SMALL)
    assert handled == [1, 2] * 3


def test_a_thread_does_not_wait_for_its_turn_forever(monkeypatch):
    # The thread that has the turn may wait for the lock of a chunk that this one holds.
    monkeypatch.setattr(turns, "PATIENCE", 0.01)
    has_turn, handled = threading.Event(), threading.Event()

    def wait(items):
        has_turn.set()
        assert handled.wait(20)
        return sum(1 for _ in items)

    thread = threading.Thread(target=turns.in_turns, args=(wait, iter("ab")), kwargs=SMALL)
    thread.start()
    assert has_turn.wait(20)
    turns.in_turns(partial(handle, []), iter("ab"), **SMALL)
    handled.set()
    thread.join()


def test_threads_wait_only_once_for_a_turn_that_takes_long(monkeypatch):
    # The computation of a block may be one of Dask, whose threads read small chunks.
    waited = []

    class Held:
        def acquire(self, timeout):
            waited.append(timeout)
            return False

    monkeypatch.setattr(turns, "TURN", Held())
    monkeypatch.setattr(turns, "is_stuck", False)
    for _ in range(2):
        turns.in_turns(partial(handle, []), iter(range(100)), slow=10, **SMALL)
    assert [*map(bool, waited)] == [True] + [False] * (len(waited) - 1)


def test_an_error_ends_the_turn():
    def fail(items):
        raise ValueError(next(items))

    with pytest.raises(ValueError, match="1"):
        turns.in_turns(fail, iter([1, 2]), **SMALL)
    handled = []
    thread = threading.Thread(
        target=turns.in_turns, args=(partial(handle, handled), iter("ab")), kwargs=SMALL
    )
    thread.start()
    thread.join(20)
    assert handled == ["a", "b"]


def test_the_thread_that_has_the_turn_does_not_wait_for_others():
    threads = []

    def work(items):
        count = len(list(items))
        on_each(lambda _: threads.append(threading.current_thread()), range(4), 2)
        return count

    turns.in_turns(work, iter("ab"), **SMALL)
    assert {*threads} == {threading.current_thread()}
    assert not turns.has_turn()
