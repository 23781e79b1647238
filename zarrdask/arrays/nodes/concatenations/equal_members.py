"""Whether the arrays of many groups are equal: by the digests of their stored chunks."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np

from zarrdask.arrays.chunks.members.concatenation import Member
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store


def different_member(members: Sequence[Member]) -> int | None:
    """Return the number of the first member whose elements differ from the first member's.

    Members of the same metadata are compared by the digests of their stored chunks, all of which
    are requested together; those that differ, and others, by their elements.
    """
    first = members[0]
    alike = [n for n, each in enumerate(members) if each.metadata is first.metadata]
    digests = dict(zip(alike, _digests([members[n].chunks() for n in alike]), strict=True))
    expected = None
    for number, member in enumerate(members):
        if number and digests.get(number) != digests[0]:
            if expected is None:
                expected = _elements(first)
            if not _are_equal(expected, _elements(member)):
                return number
    return None


def _digests(arrays: Sequence[StoredChunks]) -> Iterator[bytes]:
    """Yield a digest of the stored chunks of each array."""
    keys = [[each.key(index) for index in each.metadata.grid.indices()] for each in arrays]
    values = _values([(each.units, own) for each, own in zip(arrays, keys, strict=True)])
    for own in keys:
        digest = blake2b(digest_size=16)
        for _ in own:
            value = next(values)
            digest.update(b"-" if value is None else b"%d:" % len(value))
            digest.update(value or b"")
        yield digest.digest()


def _values(requests: Iterable[tuple[Store, list[str]]]) -> Iterator[bytes | None]:
    """Yield the values of keys; consecutive keys of one store are requested together."""
    store, keys = None, list[str]()
    for each, own in requests:
        if store is not None and each != store:
            yield from _copied(store, keys)
            keys = []
        store = each
        keys += own
    if store is not None:
        yield from _copied(store, keys)


def _copied(store: Store, keys: list[str]) -> Iterator[bytes | None]:
    for value in store.get_many(keys, Scratch()):
        yield None if value is None else bytes(value)


def _elements(member: Member) -> np.ndarray:
    return read_region(member.chunks(), member.region)


def _are_equal(one: np.ndarray, other: np.ndarray) -> bool:
    has_nan = one.dtype.kind in "fc" and other.dtype.kind in "fc"
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=has_nan)
