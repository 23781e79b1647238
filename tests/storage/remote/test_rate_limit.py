"""The limit of a rate, by itself and of many requests in flight."""

import heapq
import random
from itertools import count, pairwise

import pytest

from tests.clocks import Clock
from zarrdask.storage.remote import rates
from zarrdask.storage.remote.rate_limit import Limit
from zarrdask.storage.remote.rates import RequestRate
from zarrdask.storage.remote.shared_limit import SharedLimit


def lowered(rate, now=0.0):
    """Return a limit that was lowered at a time, after the first refusal at another rate."""
    return Limit.first(rate, now - 1, now - 1).refuse(now, now)


def test_it_grows_by_a_factor_until_it_is_refused_again():
    limit = Limit.first(20, 0, 0)
    assert [limit.rate_at(seconds) for seconds in (0, 1, 2)] == [20, 160, 1280]


def test_a_refusal_lowers_it_and_it_returns_stays_and_probes_beyond():
    limit = lowered(200).refuse(5, 5)
    rates = [limit.rate_at(5 + seconds) for seconds in range(8)]
    assert rates[0] == pytest.approx(limit.rate) == pytest.approx(0.8 * lowered(200).rate_at(5))
    assert rates == sorted(rates)
    steps = [after - before for before, after in pairwise(rates)]
    assert min(steps) < steps[0]
    assert min(steps) < steps[-1]


def test_refusals_of_requests_that_were_sent_before_lower_it_no_further():
    limit = lowered(200, now=1)
    assert limit.refuse(1.04, 0.99) is limit
    assert limit.refuse(1.07, 1.03) is limit
    assert limit.refuse(1.10, 1.06).rate < limit.rate


def test_it_is_not_lowered_for_ever():
    limit = lowered(200)
    for seconds in range(1, 100):
        limit = limit.refuse(seconds, seconds)
    assert limit.rate > 0
    assert limit.rate_at(200) > 10


def test_it_does_not_grow_while_no_request_waits():
    limit = lowered(200)
    _, limit = limit.take(30, 30)
    assert limit.rate_at(30) == pytest.approx(limit.rate, rel=0.01)


def test_requests_have_slots_one_after_another():
    limit, slots = lowered(200), []
    for _ in range(101):
        slot, limit = limit.take(0, 0)
        slots.append(slot)
    assert slots == sorted(slots)
    assert slots[-1] - slots[0] == pytest.approx(100 / limit.rate, rel=0.2)


class Throttled:
    """A store that accepts some requests per second, and processes that read from it.

    Parameters
    ----------
    processes : int
        How many there are, on one machine. Each has 64 requests in flight.
    chunks : int
        How many each reads.
    """

    PER_SECOND, SIZE, LATENCY = 200, 20, 0.05

    def __init__(self, processes, chunks, clock):
        self.clock, self.chunks = clock, chunks
        shared = SharedLimit("store")
        self.rates = [RequestRate("store", "read", shared) for _ in range(processes)]
        self.tokens, self.filled = self.SIZE, clock.now
        self.sent = self.refused = 0
        self.seconds = [0.0] * processes

    def run(self):
        """Read all chunks."""
        order, events, left = count(), [], [self.chunks - 64] * len(self.rates)

        def at(seconds, what, number):
            heapq.heappush(events, (seconds, next(order), what, number))

        begin = self.clock.now
        for number in range(len(self.rates)):
            for _ in range(64):
                at(begin + random.uniform(0, 0.03), "begins", number)
        waiting = [0] * len(self.rates)
        while events:
            self.clock.now, _, what, number = heapq.heappop(events)
            rate = self.rates[number]
            if what == "begins":
                waiting[number] += 1
                if rate.is_limited and waiting[number] > 1:
                    continue  # its turn comes
                at(max(rate.take_slot(0), self.clock.now), "is sent", number)
            elif what == "is sent":
                waiting[number] -= 1
                answer = self.clock.now, self._accepts()
                at(self.clock.now + random.uniform(1, 1.1) * self.LATENCY, answer, number)
                if rate.is_limited and waiting[number]:
                    at(max(rate.take_slot(0), self.clock.now), "is sent", number)
            elif what[1]:
                rate.accept()
                self.seconds[number] = self.clock.now - begin
                left[number] -= 1
                if left[number] >= 0:
                    at(self.clock.now, "begins", number)
            else:
                rate.refuse(what[0])
                at(self.clock.now, "begins", number)

    def _accepts(self):
        gained = (self.clock.now - self.filled) * self.PER_SECOND
        self.tokens, self.filled = min(self.SIZE, self.tokens + gained), self.clock.now
        is_accepted = self.tokens >= 1
        self.tokens -= is_accepted
        self.sent += 1
        self.refused += not is_accepted
        return is_accepted


@pytest.mark.parametrize(("processes", "chunks"), [(1, 2000), (4, 600), (16, 300)])
def test_processes_share_what_a_store_accepts(monkeypatch, processes, chunks):
    random.seed(0)
    clock = Clock()
    clock.now = 100.0
    monkeypatch.setattr(rates, "time", clock)
    store = Throttled(processes, chunks, clock)
    for rate in store.rates:
        rate.accept()  # such as a document
    store.run()
    assert max(store.seconds) <= 1.25 * processes * chunks / store.PER_SECOND
    assert max(store.seconds) <= 1.1 * min(store.seconds)
    # Nobody knows that the store refuses requests before it refuses the first ones.
    first = 64 * processes - store.SIZE
    assert store.refused - first <= 0.03 * store.sent
