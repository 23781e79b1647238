"""The versions of the stored chunks and shards of an array, by which changes are detected later."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from typing import Any
from zlib import crc32

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.errors import UnsupportedError
from zarrdask.formats.grids.chunk_grid import Index, Shape
from zarrdask.runtime.scratch import Scratch

#: The number of groups of units that have a digest each: up to so many units have one of their own.
MAX_GROUPS = 2**14
#: The bytes of a digest.
_DIGEST_SIZE = 4


@dataclass(frozen=True, eq=False)
class UnitVersions:
    """Digests of the versions of the units of an array, one for each group of neighbouring units.

    A digest is the XOR of the digests of the stored units in its group, so that the digest of a
    larger group follows from the digests of its parts.

    Attributes
    ----------
    lengths : tuple of int
        The number of units in a group along each axis: powers of two.
    digests : array of uint32
        The digest of each group; 0 if nothing is stored of it.
    location : str
        A hash of the location of the array, if versions are the ETags in a listing; "" if they are
        checksums of the stored bytes, which are the same in each store.
    """

    lengths: Shape
    digests: np.ndarray
    location: str

    @classmethod
    def of(cls, chunks: StoredChunks, like: "UnitVersions | None" = None) -> "UnitVersions":
        """Return the versions of the stored units, of the same kind as others if these are passed.

        Without these, they are taken from a listing; if it has none, stored units are read.
        """
        listed = None if like is not None and not like.location else _listed(chunks)
        counts = chunks.metadata.grid.counts
        lengths = _group_lengths(counts)
        groups = tuple(-(-count // n) for count, n in zip(counts, lengths, strict=True))
        digests = np.zeros(groups, np.uint32)
        for index, version in _checksums(chunks) if listed is None else listed:
            digest = blake2b(f"{index}{version}".encode(), digest_size=_DIGEST_SIZE).digest()
            group = tuple(i // n for i, n in zip(index, lengths, strict=True))
            digests[group] ^= np.uint32(int.from_bytes(digest, "little"))
        return cls(lengths, digests, "" if listed is None else _location(chunks))

    def changed(self, now: "UnitVersions") -> "np.ndarray | None":
        """Return which groups of `now` have changed since; None if the versions do not say it.

        They do not if the array was copied to another location by other software.
        """
        if len(self.lengths) != len(now.lengths):
            return None
        lengths = tuple(map(max, self.lengths, now.lengths))
        before, after = self._folded(lengths), now._folded(lengths)
        shape = tuple(map(max, before.shape, after.shape))
        before, after = _padded(before, shape), _padded(after, shape)
        is_equal = before == after
        # Digests of another kind, or of a copy, are all different.
        if self.location != now.location and before.any() and not (is_equal & (before != 0)).any():
            return None
        for axis, (length, n) in enumerate(zip(lengths, now.lengths, strict=True)):
            is_equal = is_equal.repeat(length // n, axis)
        changed: np.ndarray = ~is_equal[tuple(map(slice, now.digests.shape))]
        return changed

    def marked(self, changed: np.ndarray) -> "UnitVersions":
        """Return versions from which these groups differ."""
        return replace(self, digests=self.digests ^ changed.astype(np.uint32))

    def to_json(self) -> dict[str, Any]:
        """Return the versions as values that JSON can represent."""
        data = self.digests.astype("<u4").tobytes()
        return {
            "group": self.lengths,
            "counts": self.digests.shape,
            "digests": base64.b64encode(data).decode(),
            "location": self.location,
        }

    @classmethod
    def from_json(cls, value: Any) -> "UnitVersions":
        """Return the versions that `to_json` represents.

        Raises
        ------
        ValueError, TypeError, KeyError
            If they are damaged.
        """
        lengths, counts = tuple(value["group"]), tuple(value["counts"])
        if len(lengths) != len(counts) or any(n < 1 or n & (n - 1) for n in lengths):
            raise ValueError(f"groups of {lengths} chunks or shards")
        digests = np.frombuffer(base64.b64decode(value["digests"]), "<u4").reshape(counts)
        return cls(lengths, digests.astype(np.uint32), str(value["location"]))

    def _folded(self, lengths: Shape) -> np.ndarray:
        """Return the digests of larger groups."""
        digests = self.digests
        for axis, (length, n) in enumerate(zip(lengths, self.lengths, strict=True)):
            starts = np.arange(0, digests.shape[axis], length // n)
            if length > n and len(starts):
                digests = np.bitwise_xor.reduceat(digests, starts, axis)
        return digests


def _group_lengths(counts: Shape) -> Shape:
    """Return the number of units in a group along each axis, so that there are not too many."""
    lengths = [1] * len(counts)
    while prod(groups := [-(-c // n) for c, n in zip(counts, lengths, strict=True)]) > MAX_GROUPS:
        lengths[groups.index(max(groups))] *= 2
    return tuple(lengths)


def _padded(digests: np.ndarray, shape: Shape) -> np.ndarray:
    """Return digests of a larger array, in which nothing else is stored."""
    padded = np.zeros(shape, digests.dtype)
    padded[tuple(map(slice, digests.shape))] = digests
    return padded


def _location(chunks: StoredChunks) -> str:
    return blake2b(
        chunks.canonical_location.encode(errors="surrogateescape"), digest_size=8
    ).hexdigest()


def _listed(chunks: StoredChunks) -> list[tuple[Index, str]] | None:
    """Return the stored units and their versions; None if listings of the store have none."""
    if not chunks.units.capabilities.listable:
        return None
    listed = list[tuple[Index, str]]()
    try:
        for index, each in StoredUnits(chunks).objects():
            if each.tag is None:
                return None
            listed.append((index, f"{each.tag}/{each.size}"))
    except UnsupportedError:
        return None
    return listed


def _checksums(chunks: StoredChunks) -> Iterator[tuple[Index, str]]:
    """Yield the stored units, and a checksum of each."""
    is_listed = chunks.units.capabilities.listable
    indices = [*(StoredUnits(chunks).indices() if is_listed else chunks.metadata.grid.indices())]
    values = chunks.units.get_many(map(chunks.key, indices), Scratch())
    for index, value in zip(indices, values, strict=True):
        if value is not None:
            yield index, f"{crc32(value):x}/{len(value)}"
