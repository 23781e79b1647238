"""Numbers of a task, an array and a store."""

from zarrdask.runtime.counters import Counter, Labels, difference, total
from zarrdask.runtime.thread_counts import ThreadCounts


def test_counts_are_added_and_compared_by_name():
    assert total([{"GET": 1, "PUT": 2}, {"GET": 3}]) == {"GET": 4, "PUT": 2}
    assert difference({"GET": 4, "PUT": 2}, {"PUT": 2}) == {"GET": 4}


def test_only_one_of_two_threads_counts_the_seconds_of_a_request():
    thread = ThreadCounts()
    counter = Counter(Labels("read", "a", "memory"), thread)
    counter.sent("GET", 2, 100, 0.5)
    thread.is_waited_for = True
    counter.sent("HEAD", 1, 0, 0.25)
    assert counter.unreported() == {"GET": 2, "fetched": 100, "waiting": 0.5, "HEAD": 1}
    assert counter.unreported() == {}
