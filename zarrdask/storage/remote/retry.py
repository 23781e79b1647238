"""Retry transient errors of stores, and raise others as store errors."""

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from itertools import count
from typing import Any, NamedTuple, TypeVar

from zarrdask import config
from zarrdask.errors import (
    StoreError,
    ZarrdaskError,
    censored,
    forget_suppressed,
    printable,
    without_secrets,
)
from zarrdask.formats.byte_ranges import Buffer, KeyRange, Range, Value
from zarrdask.runtime import measuring
from zarrdask.runtime.in_flight import MAX_BYTES_IN_FLIGHT, pause
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.memory import MappingStore
from zarrdask.storage.policy_store import PolicyStore
from zarrdask.storage.remote.failures import is_refusal, is_transient, is_unconnected, retry_after
from zarrdask.storage.remote.rates import Kind, place_of, request_rate
from zarrdask.storage.request import DONE, Answer, Form, Meaning, Request, Send
from zarrdask.storage.wrapper import WrappedStore
from zarrdask.storage.zarr.draft_store import DraftStore

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
#: The number of retries of one operation without a warning.
_QUIET_RETRIES = 3
#: The longest time in seconds for which an operation is retried if the server has never answered
#: and can't be connected to: its address is probably wrong.
_FIRST_CONTACT_SECONDS = 1.0


class RetryingStore(PolicyStore):
    """A store that retries operations after transient errors.

    An operation is retried up to ``zarrdask.retries`` times, after a random pause of up to 0.1 s,
    0.2 s, 0.4 s and so on (at most ``zarrdask.retry-delay`` seconds), but not later than
    ``zarrdask.retry-time`` seconds after its first attempt. Other errors are raised at once. All
    operations have the same result if they are repeated.

    If a call concerns many values and the store is `concurrent`, only its failed requests are
    repeated.

    As long as no operation has succeeded, a server to which no connection can be made raises an
    error after about a second: its address is probably wrong.

    An error that is not a `ZarrdaskError`, such as an `OSError` or an error of another package, is
    raised as a `StoreError` that names the key and has the original error as its cause.

    Parameters
    ----------
    inner : Store
        The store whose operations are retried.
    """

    #: Whether an operation has succeeded, in this process or where the store was pickled.
    _is_reached = False

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return self.inner.capabilities

    def __reduce__(self) -> tuple[Any, ...]:
        # Where it is unpickled, the environment may name another server.
        return *super().__reduce__(), {"_is_reached": self._is_reached}

    def policy(self, request: Request, send: Send) -> Answer:
        """Return the answer to a request, which is repeated after transient errors."""
        kind: Kind = "read" if request.is_read else "write"
        rate = None if self._place is None else request_rate(self._place, kind)
        # The time before a request is sent is not part of the operation.
        start = sent = time.monotonic() if rate is None else rate.wait()
        for retries in count():
            try:
                answer = self._once(request, send, is_repeated=retries > 0)
            except Exception as error:
                is_paced = False
                if measuring.IS_ACTIVE and is_refusal(error):
                    THIS_THREAD.counts.count("refused", store=self)
                # A request that is refused at any rate is not refused because of the rate.
                if rate is not None and retries < _QUIET_RETRIES and is_refusal(error):
                    is_paced = rate.refuse(sent, retry_after(error))
                if self._pause(request.key, error, retries, start, is_paced=is_paced):
                    if measuring.IS_ACTIVE:
                        THIS_THREAD.counts.count("repeated", store=self)
                    begin = time.monotonic()
                    sent = begin if rate is None else rate.wait()
                    start += sent - begin
                    continue
                forget_suppressed(error)
                if isinstance(error, ZarrdaskError | MemoryError):
                    raise
                failure = self._failure(request.key, error)
                break
            if not self._is_reached:
                self._is_reached = True
            if rate is not None:
                rate.accept()
            return answer
        # Not in the handler: the error would be the context of this one, with its secrets.
        raise failure

    def _once(self, request: Request, send: Send, *, is_repeated: bool) -> Answer:
        """Send a request once.

        An attempt that failed may have stored the value, and a backend that `repeats` requests may
        have repeated one whose answer was lost. So if the condition of a write does not hold then,
        and the same value is there, this request is assumed to have stored it. Any other first
        attempt that is refused is refused: another writer may have stored the same value.
        """
        answer = send(request)
        is_refused = request.verb == "PUT" and answer.meaning is Meaning.NOT_MET
        if is_refused and (is_repeated or self.capabilities.repeats):
            present = send(Request("GET", request.key, form=Form.BYTES)).value
            if present is not None and present == bytes(request.value or b""):
                return DONE
        return answer

    def _failure(self, key: str, error: Exception) -> StoreError:
        failure = StoreError(
            f"an operation of the store failed: {str(error) or type(error).__name__}",
            key=f"{self.url}/{key}",
            found=type(error).__name__,
        )
        failure.__cause__ = censored(error)
        return failure

    @cached_property
    def _place(self) -> str | None:
        """The bucket or host whose request rates are adapted; None for a store without latency."""
        is_remote = self.inner.capabilities.costs.overlaps
        return place_of(self.url, self.identity.endpoint) if is_remote else None

    def _pause(
        self, key: str, error: Exception, retries: int, start: float, *, is_paced: bool
    ) -> bool:
        """Wait before another attempt, and return True; return False after the last attempt.

        If the rate of requests is adapted to the store, the next attempt waits for its turn only.
        """
        if retries >= config.get("retries") or not is_transient(error):
            return False
        most = config.get("retry-time")
        if not self._is_reached and is_unconnected(error):
            most = min(most, _FIRST_CONTACT_SECONDS)
        # A random time, so that many clients do not repeat their requests all at once.
        most_seconds = 0.0 if is_paced else min(0.1 * 2**retries, config.get("retry-delay"))
        seconds = random.uniform(0, most_seconds)
        if time.monotonic() + seconds > start + most:
            return False
        # Python shows warnings by default, and hides what is only informative.
        level = logging.WARNING if retries >= _QUIET_RETRIES else logging.INFO
        place = without_secrets(f"{self.url}/{key}")
        reason = without_secrets(str(error)).removeprefix(f"{place}: ")
        _LOG.log(level, "%s: retry %d after: %s", printable(place), retries + 1, printable(reason))
        return pause(seconds)

    # ---- operations of the inner store on many values

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        if self.capabilities.concurrent:
            return super().get_many(keys, scratch)
        keys = list(keys)
        return self._resumed(keys, lambda start: self.inner.get_many(keys[start:], scratch))

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        if self.capabilities.concurrent:
            return super().get_ranges(key, ranges, scratch)
        return self._resumed(
            [key] * len(ranges), lambda start: self.inner.get_ranges(key, ranges[start:], scratch)
        )

    @contextmanager
    def reading(self, key: str, scratch: Scratch) -> Iterator[Value]:
        """Return a context in which parts of a value are read, of the same value if possible."""
        with ExitStack() as stack:
            opened = self.inner.reading
            value = self._call("GET", key, lambda _: stack.enter_context(opened(key, scratch)))
            yield _RetriedValue(self, key, value)

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        if self.capabilities.concurrent:
            return super().get_partial_values(key_ranges)
        ranges = list(key_ranges)
        return self._call("GET", "", lambda store: store.get_partial_values(ranges))

    def set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        built_in = Store.set_many, WrappedStore.set_many
        if self.capabilities.concurrent or type(self.inner).set_many in built_in:
            super().set_many(values)
            return
        held, size = list[tuple[str, bytes]](), 0
        for key, value in values:
            held.append((key, bytes(value)))
            size += len(value)
            if size >= MAX_BYTES_IN_FLIGHT:
                self._set_all(held)
                held, size = [], 0
        if held:
            self._set_all(held)

    def _set_all(self, held: list[tuple[str, bytes]]) -> None:
        self._call("PUT", held[0][0], lambda store: store.set_many(held))

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:
        self.inner.check_writable()
        if erasing := [*erasing]:
            self._call("GET", "", lambda store: store.check_writable(erasing=erasing))

    def erase_values(self, keys: Iterable[str]) -> None:
        if self.capabilities.concurrent and type(self.inner).erase_values is Store.erase_values:
            Store.erase_values(self, keys)
        else:
            super().erase_values(keys)

    def _resumed(self, keys: list[str], read: Callable[[int], Iterator[T]]) -> Iterator[T]:
        """Yield a value for each key; after a transient error, the remaining ones are read again.

        Parameters
        ----------
        keys : list of str
            The keys.
        read : callable
            Returns the values of the keys from a position on.
        """
        values: Iterator[T] | None = None

        def read_next(position: int, _: Store) -> T:
            nonlocal values
            following, values = values or iter(read(position)), None
            value = next(following)
            values = following  # it has not failed
            return value

        for position, key in enumerate(keys):
            yield self._call("GET", key, partial(read_next, position))


class _RetriedValue(NamedTuple):
    """A value that is read in parts, which are read again after transient errors."""

    store: RetryingStore
    key: str
    value: Value

    @property
    def size(self) -> int:
        """The size of the value, if the store keeps it open."""
        size: int = self.value.size  # type: ignore[attr-defined]
        return size

    def part(self, start: int, length: int) -> Buffer | None:
        return self.store._call("GET", self.key, lambda _: self.value.part(start, length))

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        keys = [self.key] * len(ranges)
        return self.store._resumed(keys, lambda start: self.value.parts(ranges[start:]))


def retrying(store: Store) -> Store:
    """Return a store that retries, unless all errors of the store are raised by this package."""
    inner, is_safe = store, _is_safe(store)
    while isinstance(inner, WrappedStore):
        if isinstance(inner, RetryingStore | DraftStore):
            return store  # it retries already
        inner = inner.inner
        is_safe = is_safe and _is_safe(inner)
    return store if is_safe else RetryingStore(store)


def _is_safe(store: Store) -> bool:
    """Whether a store is of this package, uses no object of a user, and needs no retries."""
    ours = type(store).__module__.startswith("zarrdask.")
    is_plain = not isinstance(store, MappingStore) or type(store.values) is dict
    return (
        ours and is_plain and (store.capabilities.retries or not store.capabilities.costs.overlaps)
    )
