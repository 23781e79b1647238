"""Regions of stored arrays with margins around them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.graph.overlap.margins import Assembly, Margins
from zarrdask.runtime import buffers


class PaddedRegion(ArrayRegion):
    """A region of a stored array with margins, which are made from its elements.

    `shape` is the shape with the margins; `region` is the region of the array.
    """

    __slots__ = ("margins",)

    def __init__(self, region: ArrayRegion, margins: tuple[Margins, ...]) -> None:
        stored = region.stored
        # Chunks that this process can't open raise why when they are read.
        if isinstance(stored, StoredChunks) and not stored.is_shared:
            stored = replace(stored, is_shared=True)
        super().__init__(stored, region.region, region.axes, region.token)
        self.margins = margins
        pairs = zip(margins, self.shape, strict=True)
        self.shape = tuple([each.before + size + each.after for each, size in pairs])

    def regions(self, part: Region) -> list[Region]:
        """Return the regions of the stored array that are read for a part, in order."""
        return [self.in_array(box) for _, box in _reads(self._assemblies(part))]

    def read(self, part: Region, *, out: np.ndarray | None = None) -> np.ndarray:
        """Return a part, read in this thread; in `out`, if that is given."""
        axes = self._assemblies(part)
        if _is_plain(axes):
            return super().read(tuple(axis.reads[0][1] for axis in axes), out=out)
        values = self._assembled(axes, map(super().read, [box for _, box in _reads(axes)]))
        if out is None:
            return values
        out[...] = values
        return out

    def read_each(self, parts: Sequence[Region]) -> Iterator[np.ndarray]:
        """Yield parts, whose reads are planned together, in this thread."""
        every = [self._assemblies(part) for part in parts]
        boxes = super().read_each([box for axes in every for _, box in _reads(axes)])
        return (next(boxes) if _is_plain(axes) else self._assembled(axes, boxes) for axes in every)

    def _assembled(self, axes: list[Assembly], boxes: Iterator[np.ndarray]) -> np.ndarray:
        """Return a part, made from the regions of the array that it is read from."""
        values = buffers.empty(tuple(axis.length for axis in axes), self.dtype)
        for target, _ in _reads(axes):
            values[target] = next(boxes)
        # Margins of a later axis are made from margins of an earlier one, too.
        for number, (axis, margins) in enumerate(zip(axes, self.margins, strict=True)):
            before = (slice(None),) * number
            for to, source, is_reversed in axis.copies:
                copied = values[*before, source]
                values[*before, to] = np.flip(copied, number) if is_reversed else copied
            for to in axis.fills:
                values[*before, to] = margins.value
        part: np.ndarray = values[tuple(axis.pick for axis in axes)]
        return part

    def _assemblies(self, part: Region) -> list[Assembly]:
        axes = zip(self.margins, self.shape, part, strict=True)
        return [m.assembly(n - m.before - m.after, pick) for m, n, pick in axes]

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        margins = [(m.before, m.after, m.kind, m.value) for m in self.margins]
        return "zarrdask.padded", *super().__dask_tokenize__(), margins

    def __reduce__(self) -> tuple[Any, ...]:
        return PaddedRegion, (self.as_stored(), self.margins)


def _is_plain(axes: list[Assembly]) -> bool:
    """Whether a part is a single region of the array."""
    return not any(axis.copies or axis.fills or len(axis.reads) > 1 for axis in axes)


def _reads(axes: list[Assembly]) -> list[tuple[Region, Region]]:
    """Return where in the buffer regions go, and which."""
    return [
        (tuple(target for target, _ in pairs), tuple(source for _, source in pairs))
        for pairs in product(*(axis.reads for axis in axes))
    ]
