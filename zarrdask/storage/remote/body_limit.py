"""Limit the length of the bodies of responses, as a server may send an endless one.

A thread has a limit, which applies to the requests that it sends. It is checked while the body is
read, so that a longer one is never in memory as a whole.
"""

import threading
from typing import Any

from zarrdask.storage.base import Store
from zarrdask.storage.policy_store import PolicyStore
from zarrdask.storage.request import Answer, Request, Send

#: The maximum size in bytes of a body whose size is not known beforehand, such as a document.
MAX_BODY_BYTES = 2**31


class _Limit(threading.local):
    size = MAX_BODY_BYTES


_LIMIT = _Limit()


class BodyTooLongError(ValueError):
    """The body of an answer is longer than any value that the request is for."""


def body_limit() -> int:
    """Return the longest body that a request of this thread may be answered with, in bytes."""
    return _LIMIT.size


def check_body(size: int, limit: int) -> None:
    """Check the number of bytes of a body, or of the part that was received.

    Raises
    ------
    BodyTooLongError
        If there are more bytes than the limit.
    """
    if size > limit:
        raise BodyTooLongError(
            f"the server sent more than {limit} bytes, the maximum for this chunk, shard or "
            "document"
        )


class BoundedStore(PolicyStore):
    """A store whose values are read only up to a number of bytes.

    Parameters
    ----------
    inner : Store
        A store that checks bodies by `check_body`.
    limit : int
        The number of bytes.
    """

    def __init__(self, inner: Store, limit: int) -> None:
        super().__init__(inner)
        self._limit = limit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner, self._limit)

    def policy(self, request: Request, send: Send) -> Answer:
        """Return an answer within this length, in the thread that sends the request."""
        if request.verb not in ("GET", "PUT"):  # a write may look the value up first
            return send(request)
        outer, _LIMIT.size = _LIMIT.size, self._limit
        try:
            return send(request)
        finally:
            _LIMIT.size = outer


def bounded(store: Store, limit: int | None) -> Store:
    """Return a store that reads values up to a number of bytes, if it requests them of a server."""
    return (
        store
        if limit is None or not store.capabilities.bodies_limited
        else BoundedStore(store, limit)
    )
