"""Stores that fail for a moment: what is worth another try is tried again, after a while."""

import errno
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar

from zarrdask import config
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.draft import DraftStore
from zarrdask.storage.keys import Names
from zarrdask.storage.parts import Buffer, Range
from zarrdask.storage.wrapped import WrappedStore

T = TypeVar("T")

_STATUSES = {408, 425, 429, 500, 502, 503, 504}
_NUMBERS = {
    errno.EAGAIN,
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EPIPE,
    errno.ESTALE,
    errno.ETIMEDOUT,
}
#: By name: they belong to packages that need not be installed.
_NAMES = {
    "ClientConnectionError",
    "ClientPayloadError",
    "ConnectTimeoutError",
    "EndpointConnectionError",
    "IncompleteRead",
    "IncompleteReadError",
    "ReadTimeoutError",
    "ServerDisconnectedError",
    "ServiceRequestError",
    "ServiceResponseError",
}
_CODES = {
    "ConditionalRequestConflict",
    "InternalError",
    "RequestLimitExceeded",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
}


def is_transient(error: BaseException | None) -> bool:
    """Whether the same request may succeed later: lost connections, timeouts, HTTP 429 and 5xx.

    What a store raised lies behind the error of the layer that named the key.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if _is_transient(error):
            return True
        error = error.__cause__
    return False


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    if {kind.__name__ for kind in type(error).__mro__} & _NAMES:
        return True
    response = getattr(error, "response", None)
    if isinstance(response, dict) and response.get("Error", {}).get("Code") in _CODES:
        return True  # botocore
    return _status(error, response) in _STATUSES or (
        isinstance(error, OSError) and error.errno in _NUMBERS
    )


def _status(error: BaseException, response: Any) -> int | None:
    """Return the HTTP status that an error tells of, wherever its package puts that."""
    if isinstance(response, dict):
        found: int | None = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return found
    for holder in (error, response):
        for name in ("status", "status_code", "code"):
            found = getattr(holder, name, None)
            if isinstance(found, int):
                return found
    return None


class RetryingStore(WrappedStore):
    """A store whose passing failures are not seen.

    Each operation is tried again up to ``zarrdask.retries`` times, after a random while of up to
    0.1 s, 0.2 s, 0.4 s ... (at most ``zarrdask.retry-delay`` seconds). What isn't transient is
    raised at once. All operations may be done twice with the same result.

    Parameters
    ----------
    inner : Store
        The store itself.
    """

    def get(self, key: str) -> bytes | None:  # noqa: D102
        return attempt(partial(self.inner.get, key))

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:  # noqa: D102
        return attempt(partial(self.inner.get_range, key, start, length))

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:  # noqa: D102
        return _resumed(lambda rest: self.inner.get_many(rest, scratch), list(keys))

    def get_ranges(  # noqa: D102
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        return _resumed(lambda rest: self.inner.get_ranges(key, rest, scratch), list(ranges))

    def set(self, key: str, value: Buffer) -> None:  # noqa: D102
        attempt(partial(self.inner.set, key, value))

    def create(self, key: str, value: Buffer) -> bool:
        """Store a value if there is none.

        What is there after a failure may come from here: it does if it is the same.
        """
        tries = count()

        def once() -> bool:
            first = next(tries) == 0
            return self.inner.create(key, value) or (
                not first and self.inner.get(key) == bytes(value)
            )

        return attempt(once)

    def erase(self, key: str) -> None:  # noqa: D102
        attempt(partial(self.inner.erase, key))

    def erase_values(self, keys: Iterable[str]) -> None:  # noqa: D102
        attempt(partial(self.inner.erase_values, list(keys)))

    def erase_prefix(self, prefix: str) -> None:  # noqa: D102
        attempt(partial(self.inner.erase_prefix, prefix))

    def list_dir(self, prefix: str) -> Names:  # noqa: D102
        return attempt(partial(self.inner.list_dir, prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:  # noqa: D102
        return iter(attempt(lambda: list(self.inner.list_prefix(prefix))))


def retrying(store: Store) -> Store:
    """Return a store that tries again what fails for a moment, if it is one that is far away."""
    inner = store
    while isinstance(inner, WrappedStore):
        if isinstance(inner, RetryingStore | DraftStore):
            return store  # a view that was made here, of a store that does so
        inner = inner.inner
    return store if store.seekable else RetryingStore(store)


def attempt(call: Callable[[], T]) -> T:
    """Return what a call gives, made again after transient failures."""
    pause = _Pauses()
    while True:
        try:
            return call()
        except Exception as error:
            if not pause.after(error):
                raise


def _resumed(ask: Callable[[list[Any]], Iterator[T]], wanted: list[Any]) -> Iterator[T]:
    """Yield an answer for each thing that is wanted; after a failure those that are left."""
    at, pause = 0, _Pauses()
    while at < len(wanted):
        answers = ask(wanted[at:])
        while at < len(wanted):
            try:
                answer = next(answers)
            except StopIteration:
                return
            except Exception as error:
                if not pause.after(error):
                    raise
                break
            at += 1
            pause = _Pauses()
            yield answer


class _Pauses:
    """The pauses between the attempts at one thing."""

    def __init__(self) -> None:
        self.tried = 0

    def after(self, error: Exception) -> bool:
        """Wait after a failure, and return True; False if waiting won't help, or has not."""
        if self.tried >= config.get("retries") or not is_transient(error):
            return False
        most = min(0.1 * 2**self.tried, config.get("retry-delay"))
        time.sleep(random.uniform(0, most))  # all at different times: a crowd would come back
        self.tried += 1
        return True
