"""Check whether the arrays of many groups are equal, by the digests of their stored chunks."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter

import numpy as np

from zarrdask.arrays.chunks.members.concatenation import Member
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.runtime.in_flight import window
from zarrdask.runtime.scratch import Scratch


def different_members(tables: Sequence[Sequence[Member]]) -> Iterator[int | None]:
    """Yield the number of the first member of each table whose elements differ from the first's.

    Members with equal metadata are compared by the digests of their stored chunks, which are
    requested together. Members whose digests differ, and all others, are compared by their
    elements.
    """
    alike = [
        [n for n, each in enumerate(members) if each.metadata is members[0].metadata]
        for members in tables
    ]
    digests = _digests(
        [members[n].chunks() for members, own in zip(tables, alike, strict=True) for n in own]
    )
    for members, own in zip(tables, alike, strict=True):
        yield _different(members, dict(zip(own, digests, strict=False)))


def _different(members: Sequence[Member], digests: Mapping[int, bytes]) -> int | None:
    expected = None
    for number, member in enumerate(members):
        if number and digests.get(number) != digests[0]:
            if expected is None:
                expected = _elements(members[0])
            if not _are_equal(expected, _elements(member)):
                return number
    return None


def _digests(arrays: Sequence[StoredChunks]) -> Iterator[bytes]:
    """Yield a digest of the stored chunks of each array."""
    values = _values(arrays)
    for each in arrays:
        digest = blake2b(digest_size=16)
        for _ in each.metadata.grid.indices():
            value = next(values)
            digest.update(b"-" if value is None else b"%d:" % len(value))
            digest.update(value or b"")
        yield digest.digest()


def _values(arrays: Sequence[StoredChunks]) -> Iterator[Buffer | None]:
    """Yield the stored chunks of arrays; they are requested together where that is faster."""
    requests = (
        (each.units, each.key(index)) for each in arrays for index in each.metadata.grid.indices()
    )
    if any(each.costs.overlaps for each in arrays):
        yield from window(lambda request: request[0].get_range(request[1], 0), requests)
        return
    for store, own in groupby(requests, key=itemgetter(0)):
        yield from store.get_many([key for _, key in own], Scratch())


def _elements(member: Member) -> np.ndarray:
    return read_region(member.chunks(), member.region)


def _are_equal(one: np.ndarray, other: np.ndarray) -> bool:
    has_nan = one.dtype.kind in "fc" and other.dtype.kind in "fc"
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=has_nan)
