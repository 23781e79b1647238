"""Read large values of remote stores by several requests, within the limit of bytes in flight.

One connection to an object store transfers some 100 MB/s, several of them many times that.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from math import inf
from operator import itemgetter

import numpy as np

from zarrdask import config
from zarrdask.formats.byte_ranges import Buffer, Part, Tag, Version
from zarrdask.runtime.in_flight import window
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store

#: Values of fewer ranges take longer in two round trips than by one request.
MIN_RANGES = 4
#: Bytes: many requests for values of this size reach the limit of bytes in flight.
MIN_COUNTED_BYTES = 2**20


@dataclass
class _Value:
    """A value, or the memory for one whose ranges are read."""

    key: str
    #: None for a missing value.
    content: Buffer | None
    tag: Tag | None = None
    #: Where the ranges begin that are requested after the first one. A value without any has None,
    #: which requests nothing, but counts among what is in memory.
    starts: Sequence[int | None] = (None,)
    #: Whether it has to be read again, as it changed between two ranges.
    is_torn: bool = False

    @property
    def version(self) -> Version:
        """The value with its tag."""
        return Version(self.content, len(self.content or b""), self.tag)


def large_size(store: Store) -> float:
    """Return the size in bytes above which values of a store are read by `get_large`."""
    return (store.capabilities.etags and MIN_RANGES * config.get("range-size")) or inf


def get_values(
    store: Store, keys: Iterable[str], nbytes: int, scratch: Scratch
) -> Iterator[Buffer | None]:
    """Yield the value of each key, of up to about `nbytes` bytes, until the next one is requested.

    Large values of a store with ETags are read in ranges that are in flight together.
    """
    if nbytes > large_size(store):
        return get_large(store, ((key, nbytes) for key in keys))
    if nbytes >= MIN_COUNTED_BYTES and store.capabilities.concurrent:
        return _counted(store, keys, nbytes)
    return store.get_many(keys, scratch)


def _counted(store: Store, keys: Iterable[str], nbytes: int) -> Iterator[Buffer | None]:
    """Yield the value of each key; requests in flight count with the size of the largest value."""
    largest = 0

    def fetch(key: str) -> Buffer | None:
        nonlocal largest
        value = store.get_range(key, 0)
        largest = max(largest, len(value or b""))
        return value

    # Until the first value is there, only its size before it was compressed is known.
    return window(fetch, keys, size=lambda _: largest or nbytes)


def get_large(store: Store, sizes: Iterable[tuple[str, int]]) -> Iterator[Buffer | None]:
    """Yield the value of each key, or None if it is missing, while later ones are fetched.

    The answer to the request for the first range of a value has its size and its version. The other
    ranges are requested of that version, concurrently: two round trips, or one if the first range
    is all. A value that changes between two ranges is read again by one request.

    Parameters
    ----------
    store : Store
        A store with ETags.
    sizes : iterable of (str, int)
        The keys, and the estimated size of each value in bytes.
    """
    length = config.get("range-size")

    def begin(item: tuple[str, int]) -> _Value:
        return _begun(store, item[0], store.get_part(item[0], 0, length), length)

    for value in _completed(store, window(begin, sizes, size=itemgetter(1)), length):
        yield store.get(value.key) if value.is_torn else value.content


def get_large_if_changed(
    store: Store, items: Iterable[tuple[str, int, Tag | None]]
) -> Iterator[Version]:
    """Yield the version of each value as `Store.get_if_changed` returns it; see `get_large`.

    The items are the keys, the estimated size of each value in bytes, and tags. The store has the
    capabilities `etags` and `versions`.
    """
    length = config.get("range-size")

    def begin(item: tuple[str, int, Tag | None]) -> _Value:
        key, _, tag = item
        first = store.get_if_changed(key, tag, 0, length)
        if first.value is None:  # It is missing or unchanged.
            return _Value(key, None, first.tag)
        return _begun(store, key, first, length)

    for value in _completed(store, window(begin, items, size=itemgetter(1)), length):
        yield store.get_if_changed(value.key, None) if value.is_torn else value.version


def _begun(store: Store, key: str, first: Part | Version | None, length: int) -> _Value:
    """Return a value whose first range of some length was requested, with memory for the others."""
    if first is None or first.value is None:
        return _Value(key, None)
    if len(first.value) == first.size:
        return _Value(key, first.value, first.tag)
    if first.tag is None or len(first.value) != length:
        return _Value(key, store.get(key))  # the server sends no ETag
    # A bytearray would be cleared first, and filled while no other thread can run Python.
    content = np.empty(first.size, np.uint8)
    content[:length] = np.frombuffer(first.value, np.uint8)
    return _Value(key, content.data, first.tag, range(length, first.size, length))


def _completed(store: Store, begun: Iterable[_Value], length: int) -> Iterator[_Value]:
    """Yield values when their other ranges have been requested, all at once."""

    def go_on(item: tuple[_Value, int | None]) -> None:
        value, start = item
        if start is None:
            return
        part = store.get_part(value.key, start, length, value.tag)
        place = np.frombuffer(value.content or b"", np.uint8)[start : start + length]
        if part is None or len(part.value) != len(place):
            value.is_torn = True
        else:
            place[:] = np.frombuffer(part.value, np.uint8)

    def nbytes(item: tuple[_Value, int | None]) -> int:
        value, start = item
        return len(value.content or b"") if start is None else length

    values, ahead = tee(begun)
    ranges = ((value, start) for value in ahead for start in value.starts)
    rest = window(go_on, ranges, size=nbytes)
    for value in values:
        for _ in value.starts:
            next(rest)
        yield value
