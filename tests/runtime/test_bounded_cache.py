"""Caches in memory whose size is limited."""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event

import pytest

from zarrdask.runtime.bounded_cache import BoundedCache


@pytest.fixture
def cache(setting):
    setting({"zarrdask.index-cache-size": 2000})
    return BoundedCache("index-cache-size", len)


def test_values_that_were_used_last_stay(cache, setting):
    first, second, third = b"1" * 100, b"2" * 100, b"3" * 100
    for _ in range(3):
        cache.put("a", first)
    cache.put("b", second)
    cache.put("c", third)
    assert cache.get("a") == first
    cache.put("d", first)
    assert [cache.get(key) for key in "abcd"] == [first, None, third, first]
    cache.put("a", None)
    cache.put("e", bytes(2000))
    assert [cache.get(key) for key in "abcde"] == [None, None, third, first, None]
    setting({"zarrdask.index-cache-size": 0})
    cache.put("e", first)
    assert not any(map(cache.get, "abcde"))
    assert cache.nbytes == 0


def test_a_call_may_have_another_limit_than_the_setting(cache):
    for key in range(40):
        cache.put(key, bytes(100), 10_000)
    assert 2000 < cache.nbytes <= 10_000
    cache.put(40, bytes(100))
    assert 0 < cache.nbytes <= 2000
    assert (cache.get(0), cache.get(40)) == (None, bytes(100))


def test_threads_that_use_it_together_never_exceed_the_limit(cache):
    def use(seed):
        random = Random(seed)
        for _ in range(500):
            key = random.randrange(20)
            cache.put(key, bytes([key]) * random.randrange(1, 300))
            value = cache.get(key := random.randrange(20))
            assert value is None or set(value) == {key}
            assert cache.nbytes <= 2000

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))


if sys.platform != "win32":

    def test_a_forked_process_begins_with_an_empty_cache(setting):
        setting({"zarrdask.index-cache-size": 2000})
        old, is_locked, is_forked = bytearray(b"1"), Event(), Event()

        def size(value):
            if value is old and is_replacing:  # within the lock of the cache
                is_locked.set()
                is_forked.wait()
            return len(value)

        cache, is_replacing = BoundedCache("index-cache-size", size), False
        cache.put("a", old)
        is_replacing = True
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=lambda: queue.put((cache.get("a"), cache.nbytes)))
        with ThreadPoolExecutor(1) as pool:
            pool.submit(cache.put, "a", b"2")
            is_locked.wait()
            child.start()
            is_forked.set()
        child.join()
        assert queue.get() == (None, 0)
        assert cache.get("a") == b"2"
