"""The index of a shard: the range of bytes of each chunk in it (conformance S-5, S-6, S-8)."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from zarrdask.errors import CodecError
from zarrdask.formats.byte_ranges import Range
from zarrdask.formats.grids.chunk_grid import Index, Shape

#: The offset and the length of a chunk that is not stored.
MISSING = np.uint64(2**64 - 1)
#: Ranges end before this offset: no value is longer, and sums of entries beyond could overflow.
_END_LIMIT = 2**62


class ShardIndex:
    """The ranges of bytes of the chunks in a shard.

    Parameters
    ----------
    entries : ndarray of uint64
        The (offset, length) of each chunk, in the shape ``(*counts, 2)``, where counts are the
        numbers of chunks along the axes of the shard.

    Examples
    --------
    >>> index = ShardIndex.contiguous((2, 2), {(0, 0): 10, (1, 0): 4})
    >>> index.range_of((1, 0)), index.range_of((1, 1)), int(index.stored.sum())
    ((10, 4), None, 2)
    """

    __slots__ = ("entries",)

    def __init__(self, entries: np.ndarray) -> None:
        self.entries = entries

    @classmethod
    def contiguous(
        cls, counts: Shape, lengths: Mapping[Index, int], start: int = 0
    ) -> "ShardIndex":
        """Return the index of a shard whose chunks follow one another, from the offset `start`.

        `counts` is the number of chunks along each axis; `lengths` has their lengths in bytes, by
        chunk index, in the order of the chunks.
        """
        entries = np.full((*counts, 2), MISSING, "u8")
        for index, length in lengths.items():
            entries[index] = start, length
            start += length
        return cls(entries)

    @property
    def counts(self) -> Shape:
        """The number of chunks along each axis."""
        return self.entries.shape[:-1]

    @property
    def stored(self) -> np.ndarray:
        """Whether each chunk is stored: an array of bool."""
        is_stored: np.ndarray = (self.entries != MISSING).any(axis=-1)
        return is_stored

    @property
    def stored_bytes(self) -> np.ndarray:
        """The encoded size of each chunk in bytes, -1 for chunks that are not stored."""
        return np.where(self.stored, self.entries[..., 1].astype(np.int64), -1)

    def range_of(self, index: Index) -> Range | None:
        """Return the range of a chunk, or None if it is not stored."""
        start, length = self.entries[index].tolist()
        if start == length == int(MISSING):
            return None
        if not _is_possible((start, length)):
            raise CodecError(
                "invalid entry in the shard index",
                key=f"inner chunk {index}",
                found=(start, length),
            )
        return start, length

    def locate(self, indices: Sequence[Index]) -> tuple[list[int], list[int], list[Range]]:
        """Find several chunks.

        Returns
        -------
        missing : list of int
            The positions, in `indices`, of the chunks that are not stored.
        stored : list of int
            The positions of the others, in the order of their offsets.
        ranges : list of (start, length)
            The ranges of these.
        """
        missing: list[int] = []
        entries: list[tuple[Range, int]] = []
        for position, index in enumerate(indices):
            each = self.range_of(index)
            if each is None:
                missing.append(position)
            else:
                entries.append((each, position))
        entries.sort()
        return missing, [position for _, position in entries], [each for each, _ in entries]

    def unchecked(self) -> Iterator[tuple[Index, Range, bool]]:
        """Yield the index and the range of each stored chunk, and whether that is possible."""
        missing = (int(MISSING), int(MISSING))
        ranges = map(tuple, self.entries.reshape(-1, 2).tolist())
        for index, each in zip(np.ndindex(*self.counts), ranges, strict=True):
            if each != missing:
                yield index, each, _is_possible(each)


def _is_possible(each: Range) -> bool:
    """Whether a value can have a range."""
    return sum(each) < _END_LIMIT
