"""Which chunks of a stored array tasks decode, how often, and by how many requests. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from zarrdask.errors import SelectionError
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.plan.request_costs import RequestCosts
from zarrdask.parallel.plan.write_plan import Target

#: The largest number of chunks in the box around all regions; a chunk needs two bytes, or four if
#: there are many regions.
_MAX_CHUNKS = 2**27


class _Overlap(NamedTuple):
    """The chunks and objects that a region overlaps along one axis.

    Each chunk has a length, and a number of elements that are in the region.
    """

    chunks: np.ndarray
    lengths: np.ndarray
    picked: np.ndarray
    units: np.ndarray
    chunks_of_whole_units: int


@dataclass(frozen=True, eq=False, repr=False)
class ReadCounts:
    """The chunks of one stored array that tasks decode: numbers without text and drawings.

    `zarrdask.parallel.plan.read_plan.ArrayReads` describes the attributes.
    """

    location: str
    stored: Target
    chunk_axes: tuple[Axis, ...]
    unit_axes: tuple[Axis, ...]
    regions: tuple[Region, ...]
    sizes: np.ndarray | None = None
    sent: RequestCosts | None = None

    @cached_property
    def _overlaps(self) -> list[tuple[_Overlap, ...]]:
        """The chunks that each region overlaps along each axis."""
        find = lru_cache(maxsize=None)(self._overlap_of)
        return [
            tuple(find(axis, *bounds(pick)) for axis, pick in enumerate(region))
            for region in self.regions
        ]

    def _overlap_of(self, number: int, start: int, stop: int, step: int) -> _Overlap:
        pick, axis = slice(start, stop, step), self.chunk_axes[number]
        unit_axis = self.unit_axes[number]
        chunks, units = (
            self._numbers(pick, axis),
            self._numbers(pick, unit_axis),
        )
        first, last = axis.start(chunks), axis.start(chunks + 1)
        # The elements of the slice before each end, by dividing upwards.
        picked = -(-np.clip(last - start, 0, max(stop - start, 0)) // step)
        picked += np.clip(first - start, 0, max(stop - start, 0)) // -step
        whole = 0
        if step == 1 and len(units):
            # A shard that is needed as a whole is one request.
            begins, ends = unit_axis.start(units), unit_axis.start(units + 1)
            needed = units[(begins >= start) & (ends <= stop)]
            whole = int(np.isin(unit_axis.number(first), needed).sum())
        return _Overlap(chunks, last - first, picked, units, whole)

    def _numbers(self, pick: slice, axis: Axis) -> np.ndarray:
        """Return the numbers of the chunks that a slice overlaps along an axis."""
        if pick.step > 1 and pick.step > min(axis.lengths):
            return np.unique(axis.number(np.arange(pick.start, pick.stop, pick.step)))
        numbers = axis.numbers(pick)
        self._check_size(len(numbers))
        return np.arange(numbers.start, numbers.stop)

    def _check_size(self, count: int) -> None:
        if count > _MAX_CHUNKS:
            raise SelectionError(
                "there are too many chunks to plan this read; plan a smaller selection",
                key=self.location,
                found=count,
                expected=f"at most {_MAX_CHUNKS}",
            )

    @cached_property
    def box(self) -> tuple[tuple[int, int], ...]:
        """The first and the last chunk along each axis that any region overlaps."""
        overlaps = [axes for axes in self._overlaps if all(len(axis.chunks) for axis in axes)]
        if not overlaps:
            return ((0, -1),) * len(self.stored.shape)
        return tuple(
            (
                min(int(m[i].chunks[0]) for m in overlaps),
                max(int(m[i].chunks[-1]) for m in overlaps),
            )
            for i in range(len(self.stored.shape))
        )

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each chunk in `box` is decoded (unsigned integers)."""
        return self._uses if self.sizes is None else self._uses * (self.sizes >= 0)

    @cached_property
    def _uses(self) -> np.ndarray:
        """How many regions overlap each chunk in `box`, stored or not."""
        shape = tuple(max(last - first + 1, 0) for first, last in self.box)
        self._check_size(prod(shape))
        counts = np.zeros(shape, np.promote_types("u2", np.min_scalar_type(len(self.regions))))
        for overlap in self._overlaps:
            counts[self._cells(overlap)] += 1
        return counts

    def _cells(self, overlap: tuple[_Overlap, ...]) -> tuple[np.ndarray, ...]:
        """Return the index in an array over `box` of the chunks that a region overlaps."""
        return np.ix_(
            *(axis.chunks - low for axis, (low, _) in zip(overlap, self.box, strict=True))
        )

    def _total(self, weights: Callable[[_Overlap], np.ndarray]) -> int:
        """Return the sum over all decodes of the product of a chunk's weights along each axis."""
        if self.sizes is None:
            return sum(
                prod(int(weights(axis).sum()) for axis in overlap) for overlap in self._overlaps
            )
        total = 0
        for overlap in self._overlaps:
            part = self.sizes[self._cells(overlap)] >= 0
            for axis in overlap:
                part = np.tensordot(weights(axis), part, 1)
            total += int(part)
        return total

    def count_at(self, index: Index) -> int:
        """Return how often a chunk is decoded."""
        inside = all(low <= i <= high for i, (low, high) in zip(index, self.box, strict=True))
        return int(self.counts[self.cell(index)]) if inside else 0

    def cell(self, index: Index) -> Index:
        """Return the index of a chunk in an array over `box`."""
        return tuple(i - low for i, (low, _) in zip(index, self.box, strict=True))

    @property
    def tasks(self) -> int:
        """The number of tasks that read; 1 for a read without Dask."""
        return len(self.regions)

    @property
    def chunks(self) -> int:
        """The number of different chunks that are decoded."""
        return int(np.count_nonzero(self.counts))

    @property
    def missing(self) -> int | None:
        """The number of different chunks that would be decoded, but are not stored; None: unknown.

        Their elements are the fill value.
        """
        if self.sizes is None:
            return None
        return int(np.count_nonzero(self._uses)) - self.chunks

    @property
    def decodes(self) -> int:
        """How often any chunk is decoded."""
        return self._total(lambda axis: np.ones_like(axis.chunks))

    @property
    def repeated(self) -> int:
        """The number of chunks that are decoded by more than one task."""
        return int(np.count_nonzero(self.counts > 1))

    def repeated_chunks(self) -> Iterator[Index]:
        """Yield the indices of the chunks that are decoded by more than one task."""
        first = [low for low, _ in self.box]
        for offset in zip(*np.nonzero(self.counts > 1), strict=True):
            yield tuple(int(i) + low for i, low in zip(offset, first, strict=True))

    @property
    def objects(self) -> int:
        """The number of different stored objects that are read."""
        is_read = self.counts > 0
        if is_read.size == 0:
            return 0
        for number, (low, high) in enumerate(self.box):
            starts = self.chunk_axes[number].start(np.arange(low, high + 1))
            units = self.unit_axes[number].number(starts)
            firsts = np.flatnonzero(np.diff(units, prepend=-1))
            is_read = np.logical_or.reduceat(is_read, firsts, number)
        return int(np.count_nonzero(is_read))

    @property
    def requests(self) -> int:
        """The largest number of requests, of chunks that are not stored, too.

        One for each chunk that a task reads, or for each range of it. A shard counts as one if it
        is needed as a whole, or else as one for the index and one for each chunk. There are fewer
        where neighbouring chunks of a shard are requested together; where the indexes of shards are
        known, these are counted.
        """
        if self.sent is not None:
            return self.sent.requests["GET"]
        chunks = sum(prod(len(axis.chunks) for axis in overlap) for overlap in self._overlaps)
        if not self.is_sharded:
            return chunks
        whole = sum(
            prod(axis.chunks_of_whole_units for axis in overlap) for overlap in self._overlaps
        )
        return self.overlapped_units + chunks - whole

    @property
    def overlapped_units(self) -> int:
        """The number of objects that regions overlap, each counted once per region."""
        return sum(prod(len(axis.units) for axis in overlap) for overlap in self._overlaps)

    def units(self, limit: int) -> set[Index] | None:
        """Return the objects that regions overlap, or None if they are more than a number."""
        if self.overlapped_units > limit:
            return None
        axes = ([axis.units.tolist() for axis in overlap] for overlap in self._overlaps)
        return {unit for lists in axes for unit in product(*lists)}

    @property
    def needed(self) -> int:
        """The bytes of the elements in the regions that decoded chunks hold."""
        return self._total(lambda axis: axis.picked) * self._itemsize

    @property
    def fetched(self) -> int | None:
        """The stored bytes that are read of the decoded chunks, without indexes; None: unknown.

        The bytes of a chunk count as often as it is decoded.
        """
        if self.sent is not None and not self.is_sharded:
            return self.sent.fetched
        return None if self.sizes is None else int((self.sizes * self.counts).sum())

    @property
    def decoded(self) -> int:
        """The bytes of the chunks that are decoded, each as often as it is."""
        return self._total(lambda axis: axis.lengths) * self._itemsize

    @property
    def amplification(self) -> float:
        """The decoded bytes for each needed byte."""
        return self.decoded / max(self.needed, 1)

    @property
    def _itemsize(self) -> int:
        return self.stored.dtype.itemsize

    @property
    def is_sharded(self) -> bool:
        """Whether stored objects hold several chunks."""
        return self.chunk_axes != self.unit_axes


def bounds(pick: slice) -> tuple[int, int, int]:
    """Return the start, the stop and the step of a slice."""
    return pick.start, pick.stop, pick.step
