"""The border to stores that may fail: transient failures are retried, others are store errors."""

import errno
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, NoReturn, TypeVar

from zarrdask import config
from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.byte_ranges import Buffer, KeyRange, Range
from zarrdask.storage.keys import Names
from zarrdask.storage.memory import MappingStore
from zarrdask.storage.v3_draft import DraftStore
from zarrdask.storage.wrapper import WrappedStore

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
    """A store whose transient failures are not seen, and whose other failures are store errors.

    Each operation is tried again up to ``zarrdask.retries`` times, after a random while of up to
    0.1 s, 0.2 s, 0.4 s ... (at most ``zarrdask.retry-delay`` seconds). What isn't transient is
    raised at once. All operations may be done twice with the same result.

    Whatever a store raises that is no `ZarrdaskError`, be it an `OSError` or an error of some
    package, is raised as a `StoreError` that names the key, with the original error as its cause.

    Parameters
    ----------
    inner : Store
        The store itself.
    """

    def get(self, key: str) -> bytes | None:
        return self._attempt(key, partial(self.inner.get, key))

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        return self._attempt(key, partial(self.inner.get_range, key, start, length))

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        keys = list(keys)
        return self._resumed(keys, lambda at: self.inner.get_many(keys[at:], scratch))

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        return self._resumed(
            [key] * len(ranges), lambda at: self.inner.get_ranges(key, ranges[at:], scratch)
        )

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        ranges = list(key_ranges)
        return self._attempt("", partial(self.inner.get_partial_values, ranges))

    def set(self, key: str, value: Buffer) -> None:
        self._attempt(key, partial(self.inner.set, key, value))

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

        return self._attempt(key, once)

    def check_erasable(self, keys: Iterable[str]) -> None:
        self._attempt("", partial(self.inner.check_erasable, list(keys)))

    def tidy(self, prefix: str) -> None:
        self._attempt(prefix, partial(self.inner.tidy, prefix))

    def erase(self, key: str) -> None:
        self._attempt(key, partial(self.inner.erase, key))

    def erase_values(self, keys: Iterable[str]) -> None:
        self._attempt("", partial(self.inner.erase_values, list(keys)))

    def erase_prefix(self, prefix: str) -> None:
        self._attempt(prefix, partial(self.inner.erase_prefix, prefix))

    def list_dir(self, prefix: str) -> Names:
        return self._attempt(prefix, partial(self.inner.list_dir, prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return iter(self._attempt(prefix, lambda: list(self.inner.list_prefix(prefix))))

    def _attempt(self, key: str, call: Callable[[], T]) -> T:
        """Return the result of a call, which is repeated after transient failures."""
        pause = _Pauses()
        while True:
            try:
                return call()
            except Exception as error:  # noqa: BLE001 - it is raised as a store error
                if not pause.after(error):
                    self._fail(key, error)

    def _resumed(self, keys: list[str], ask: Callable[[int], Iterator[T]]) -> Iterator[T]:
        """Yield an answer for each key; after a failure those from there on are asked for again."""
        at, pause = 0, _Pauses()
        while at < len(keys):
            try:
                answers = iter(ask(at))
                while at < len(keys):
                    answer = next(answers)
                    at += 1
                    pause = _Pauses()
                    yield answer
            except Exception as error:  # noqa: BLE001 - it is raised as a store error
                if not pause.after(error):
                    self._fail(keys[at], error)

    def _fail(self, key: str, error: Exception) -> NoReturn:
        if isinstance(error, ZarrdaskError | MemoryError):
            raise error
        raise StoreError(
            f"the store failed: {str(error) or type(error).__name__}",
            key=f"{self.url}/{key}",
            found=type(error).__name__,
        ) from error


def retrying(store: Store) -> Store:
    """Return a store behind this border, unless its errors are those of this package anyway."""
    inner, is_safe = store, store.seekable and _is_ours(store)
    while isinstance(inner, WrappedStore):
        if isinstance(inner, RetryingStore | DraftStore):
            return store  # a view that was made here, of a store that does so
        inner = inner.inner
        is_safe = is_safe and _is_ours(inner)
    return store if is_safe else RetryingStore(store)


def _is_ours(store: Store) -> bool:
    """Whether a store is of this package, with nothing of a user's in it that may fail."""
    ours = type(store).__module__.startswith("zarrdask.")
    return ours and (not isinstance(store, MappingStore) or type(store.values) is dict)


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
