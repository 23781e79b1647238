"""Change values that writers on other machines may change at the same time."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from zarrdask.errors import StoreError, UnsupportedError
from zarrdask.formats.byte_ranges import Buffer, Tag
from zarrdask.storage.base import Store
from zarrdask.storage.policy_store import PolicyStore
from zarrdask.storage.request import DONE, NOT_MET, Absent, Answer, Form, Request, Send

T = TypeVar("T")

#: The number of attempts to change a value that others change at the same time.
MAX_ATTEMPTS = 100


class ChangedError(StoreError):
    """Another writer changed a value after it was read, so nothing was stored."""


class UnchangedStore(PolicyStore):
    """A store that replaces a value only if it is unchanged since it was read here.

    It is compared with the first value that was read, or the value that was stored here since. The
    inner store has `compare_and_swap`. Values that were not read here are stored in any case, and
    values are erased in any case, as stores can't erase on a condition.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._tags: dict[str, Tag | None] = {}
        self._stored: dict[str, Buffer] = {}

    def policy(self, request: Request, send: Send) -> Answer:
        """Read whole values with their tags, and replace those that were read on this condition."""
        key = request.key
        match request:
            case Request("GET", form=Form.BYTES | Form.BUFFER, version=None) if request.is_whole:
                answer = send(request._replace(form=Form.TAGGED))
                self._tags.setdefault(key, answer.tag)
                return answer
            case Request("PUT", unless=None, if_match=None) if key in self._tags:
                if self._replace(request, send).meaning is not None:
                    raise ChangedError(
                        f"other writers changed this value during each of {MAX_ATTEMPTS} attempts "
                        "to change it; align regions that are written at the same time with "
                        "chunks, or shards",
                        key=f"{self.url}/{key}",
                    )
                return DONE
            case Request("PUT", unless=None) if request.if_match is not None:
                return self._swap(request, send)
            case Request("PUT") if request.unless is not None:
                if self.policy(Request("GET", key), send).value is not None:
                    return NOT_MET
                return self.policy(request._replace(unless=None), send)
            case Request("DELETE", call=None):
                self._tags.pop(key, None)
                self._stored.pop(key, None)
        return send(request)

    def _swap(self, request: Request, send: Send) -> Answer:
        """Replace a value for a change within this one, which has read it itself."""
        answer, key = send(request), request.key
        is_first = key not in self._stored and self._tags.get(key) == request.if_match
        if answer.meaning is None and is_first and request.value is not None:
            self._stored[key] = request.value
        return answer

    def _replace(self, request: Request, send: Send) -> Answer:
        """Replace a value, unless another writer has changed it."""
        key, tag = request.key, self._tags[request.key]
        if key in self._stored:  # a server does not say which tag a value has that it stored
            present = send(Request("GET", key, form=Form.TAGGED))
            tag = present.tag
            if present.value != self._stored[key]:
                return NOT_MET
        answer = send(request._replace(if_match=Absent.ABSENT if tag is None else tag))
        if answer.meaning is None and request.value is not None:
            self._stored[key] = request.value
        return answer


def until_unchanged(store: Store, change: Callable[[Store], T], seen: Store | None = None) -> T:
    """Change values, and repeat that if another writer has changed them since they were read.

    The store has `compare_and_swap`. `change` takes the store to read the values from and to store
    them in. The first time that is `seen`, if given: a view of an `UnchangedStore` through which
    values were read beforehand.

    Raises
    ------
    StoreError
        If others change the values all the time.
    UnsupportedError
        If the server behind the store can't store a value on a condition.
    """
    for attempt in range(MAX_ATTEMPTS - 1):
        try:
            return change(seen or UnchangedStore(store))
        except ChangedError:
            seen = None
            time.sleep(random.uniform(0, min(0.01 * 2**attempt, 1)))
    return change(UnchangedStore(store))


def change_if_unchanged(store: Store, change: Callable[[Store], T], seen: Store | None = None) -> T:
    """Change values as `until_unchanged` if the store and its server can do that, else once.

    Within another such change, it is repeated by itself.
    """
    if store.capabilities.compare_and_swap or isinstance(store, UnchangedStore):
        # Not every server of S3 has conditional writes.
        with suppress(UnsupportedError):
            return until_unchanged(store, change, seen)
    return change(store)
