"""Rates of requests: not limited by a store that accepts all, adapted to one that refuses."""

import random

import pytest

from tests.clocks import Clock
from zarrdask.storage.remote import rates
from zarrdask.storage.remote.rates import RequestRate, place_of, request_rate


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(rates, "time", clock)
    monkeypatch.setattr(rates, "pause", clock.pause)
    return clock


@pytest.fixture
def rate(clock):
    return RequestRate("s3://bucket", "read")


def send(rate, clock, accepts, count, latency=0.001):
    """Send requests one after another, and return how often one was refused."""
    refused = 0
    while count:
        sent = rate.wait()
        is_accepted = accepts()
        clock.now += latency
        if is_accepted:
            rate.accept()
            count -= 1
        else:
            rate.refuse(sent)
            refused += 1
    return refused


class TokenBucket:
    """What accepts a number of requests per second, and a few at once."""

    def __init__(self, clock, per_second, size):
        self.clock, self.per_second, self.size = clock, per_second, size
        self.tokens, self.filled = size, clock.now

    def take(self):
        """Take a token, and return whether there was one."""
        gained = (self.clock.now - self.filled) * self.per_second
        self.tokens, self.filled = min(self.size, self.tokens + gained), self.clock.now
        is_accepted = self.tokens >= 1
        self.tokens -= is_accepted
        return is_accepted


def test_a_store_that_accepts_all_is_not_slowed_down(rate, clock):
    assert send(rate, clock, lambda: True, 1000) == 0
    assert (rate.limit, rate.refused) == (None, 0)
    assert clock.now == pytest.approx(1)


@pytest.mark.parametrize("per_second", [20, 100, 500])
def test_a_store_that_refuses_gets_about_what_it_accepts(rate, clock, per_second):
    random.seed(0)
    tokens = TokenBucket(clock, per_second, per_second / 10)
    count = 30 * per_second
    refused = send(rate, clock, tokens.take, count, latency=1 / (20 * per_second))
    assert clock.now <= 1.25 * count / per_second
    assert refused <= 0.1 * count


def test_the_first_refusal_is_a_warning_that_names_the_store(rate, clock, caplog):
    send(rate, clock, lambda: True, 10)
    rate.refuse(rate.wait())
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "s3://bucket: the store refuses requests; reads are limited" in record.message


def test_refusals_of_requests_in_flight_together_lower_the_limit_once(rate, clock):
    send(rate, clock, lambda: True, 100)
    sent = [rate.wait() for _ in range(50)]
    clock.now += 0.05
    limits = set()
    for each in sent:
        rate.refuse(each)
        limits.add(rate.limit)
    assert len(limits) == 1
    assert rate.refused == 50


def test_several_limits_are_lower_than_each_other(rate, clock):
    send(rate, clock, lambda: True, 100)
    limits = []
    for _ in range(3):
        sent = rate.wait()
        clock.now += 0.001
        rate.refuse(sent)
        limits.append(rate.limit)
        clock.now += 0.01
    assert limits == sorted(limits, reverse=True)
    assert len(set(limits)) == 3


def test_the_store_says_when_the_next_request_may_come(rate, clock):
    send(rate, clock, lambda: True, 100)
    begin = clock.now
    rate.refuse(begin, 7.0)
    assert rate.wait() == pytest.approx(begin + 7)


def test_a_store_that_accepts_nothing_for_long_is_not_busy_but_out_of_order(rate, clock):
    assert not rate.refuse(rate.wait())  # nothing was ever accepted
    send(rate, clock, lambda: True, 10)
    assert rate.refuse(rate.wait())
    clock.now += 11
    assert not rate.refuse(clock.now)
    assert rate.limit is None


def test_a_request_that_waits_while_the_limit_is_removed_is_sent(rate, clock, monkeypatch):
    send(rate, clock, lambda: True, 10)
    rate.refuse(rate.wait(), 20.0)

    def pause(seconds):
        clock.now += seconds
        return rate.refuse(clock.now) or True

    monkeypatch.setattr(rates, "pause", pause)
    assert rate.wait() == pytest.approx(20, abs=1)
    assert rate.limit is None


def test_a_limit_ends_a_minute_after_the_last_refusal(rate, clock):
    send(rate, clock, lambda: True, 100)
    rate.refuse(rate.wait())
    clock.now += 59
    rate.accept()
    assert rate.limit is not None
    clock.now += 2
    rate.accept()
    assert rate.limit is None


def test_a_pause_of_the_program_does_not_lower_the_limit(rate, clock):
    send(rate, clock, lambda: True, 1000)
    rate.refuse(rate.wait())
    limit = rate.limit
    clock.now += 30
    rate.accept()
    assert rate.limit >= limit


@pytest.mark.parametrize("most", [10, 0.5])
def test_the_setting_is_a_limit_for_any_store(rate, clock, setting, most):
    setting({"zarrdask.requests-per-second": most})
    send(rate, clock, lambda: True, 101, latency=0)
    assert clock.now == pytest.approx(100 / most, rel=0.1)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://user:secret@host:8080/x.zarr", "https://user:***@host:8080"),
        ("https://user:se/cret@host/x.zarr", "https://user:***@host"),
        ("http://[::1]:9000/x", "http://[::1]:9000"),
        ("https://host?next=http://other/", "https://host"),
        ("simplecache::s3://bucket/x", "s3://bucket"),
        ("zip://a.zarr::gs://bucket/x.zip", "gs://bucket"),
        ("the store of a user", "the store of a user"),
        ("https://[", "https://["),
    ],
)
def test_the_bucket_or_host_of_a_url(url, place):
    assert place_of(url) == place


@pytest.mark.parametrize(
    ("url", "endpoint", "place"),
    [
        ("s3://bucket/x", "http://here:9000/", "s3://bucket at http://here:9000"),
        ("s3://bucket/x", "http://me:secret@here", "s3://bucket at http://me:***@here"),
        ("s3://bucket/x", "https://s3.eu-west-1.amazonaws.com", "s3://bucket"),
        ("s3://bucket/x", "https://s3.cn-north-1.amazonaws.com.cn", "s3://bucket"),
        ("s3://bucket/x", "https://s3.amazonaws.com.mine.org", None),
        ("s3://bucket/x", "https://storage.googleapis.com", None),
        ("gs://bucket/x", "https://storage.googleapis.com", "gs://bucket"),
        ("abfs://c/x", "https://a.blob.core.windows.net/?sig=secret", None),
    ],
)
def test_a_bucket_is_one_on_a_server_unless_the_name_is_unique_in_the_cloud(url, endpoint, place):
    bucket, server = url.removesuffix("/x"), endpoint.partition("/?")[0]
    assert place_of(url, endpoint) == (place or f"{bucket} at {server}")


def test_buckets_and_kinds_have_rates_of_their_own():
    assert place_of("s3://bucket/a/b") == place_of("s3://bucket") == "s3://bucket"
    reads = request_rate("s3://bucket", "read")
    assert reads is request_rate("s3://bucket", "read")
    assert reads is not request_rate("s3://bucket", "write")
    assert reads is not request_rate("s3://other", "read")
