"""The windows of arrays that are the samples of an epoch, and the chunks that they overlap. Pure.

Along the axes with windows, arrays are divided by their chunks into *columns*: all chunks that
differ only along the other axes, which every window reads together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrdask.errors import SelectionError
from zarrdask.formats.grids.chunk_grid import Index, Shape
from zarrdask.formats.indexing.selection import Region, axis_number, is_integer, whole_region
from zarrdask.formats.metadata.model import ArrayMetadata


class WindowAxis(NamedTuple):
    """The windows along an axis that all arrays have in common."""

    #: The name of the axis, or its number.
    name: int | str
    length: int
    stride: int
    #: The length of the axis itself.
    size: int

    @property
    def windows(self) -> int:
        """The number of windows within the axis."""
        return (self.size - self.length) // self.stride + 1


class Piece(NamedTuple):
    """The part of a sample that is in one column."""

    column: int
    #: The region of the array, the region of the column, and the region of the sample.
    region: Region
    inside: Region
    outside: Region


@dataclass(frozen=True)
class ArrayWindows:
    """The windows of one array.

    Attributes
    ----------
    metadata : ArrayMetadata
        The metadata of the array.
    axes : tuple of WindowAxis
        The windows along all axes that have them.
    numbers : tuple of (int or None)
        For each of these the number of the axis of this array; None if it has no such axis, so that
        its elements are in all windows along it.
    is_index : bool
        Whether the samples are single indices of the axis, which samples do not have.
    """

    metadata: ArrayMetadata
    axes: tuple[WindowAxis, ...]
    numbers: tuple[int | None, ...]
    is_index: bool = False

    @property
    def counts(self) -> Shape:
        """The number of windows along each axis."""
        return tuple([axis.windows for axis in self.axes])

    @cached_property
    def window_shape(self) -> Shape:
        """The shape of a window in the array."""
        shape = list(self.metadata.shape)
        for axis, number in zip(self.axes, self.numbers, strict=True):
            if number is not None:
                shape[number] = axis.length
        return tuple(shape)

    @property
    def sample_shape(self) -> Shape:
        """The shape of a sample."""
        return self.window_shape[1:] if self.is_index else self.window_shape

    @property
    def sample_bytes(self) -> int:
        """The size of a sample in bytes."""
        return prod(self.window_shape) * self.metadata.dtype.itemsize

    @cached_property
    def _own(self) -> list[tuple[int, WindowAxis, int]]:
        """For each axis of this array with windows: its position among all, it, and its number."""
        numbered = zip(self.axes, self.numbers, strict=True)
        return [(at, axis, n) for at, (axis, n) in enumerate(numbered) if n is not None]

    @cached_property
    def _column_counts(self) -> Shape:
        grid = self.metadata.read_grid
        return tuple([grid.axes[number].count for _, _, number in self._own])

    def columns(self, samples: np.ndarray) -> np.ndarray:
        """Return the columns that samples overlap, one row a sample; -1 stands for no more."""
        if not self._own:
            return np.zeros((len(samples), 1), np.int64)
        picks = np.unravel_index(samples, self.counts)
        firsts, lasts = [], []
        for at, axis, number in self._own:
            chunks, starts = self.metadata.read_grid.axes[number], picks[at] * axis.stride
            firsts.append(chunks.number(starts))
            lasts.append(chunks.number(starts + (axis.length - 1)))
        spans = [
            int((last - first).max(initial=0)) + 1
            for first, last in zip(firsts, lasts, strict=True)
        ]
        columns = np.empty((len(samples), prod(spans)), np.int64)
        for at, steps in enumerate(product(*map(range, spans))):
            flat, is_there = np.zeros(len(samples), np.int64), True
            for step, first, last, count in zip(
                steps, firsts, lasts, self._column_counts, strict=True
            ):
                flat = flat * count + first + step
                is_there = is_there & (first + step <= last)
            columns[:, at] = np.where(is_there, flat, -1)
        return columns

    def column_region(self, column: int) -> Region:
        """Return the region of the array that a column is."""
        region = list(whole_region(self.metadata.shape))
        for number, index in zip(self._numbers, self._index(column), strict=True):
            region[number] = slice(*self.metadata.read_grid.axes[number].span(index), 1)
        return tuple(region)

    @property
    def _numbers(self) -> list[int]:
        return [number for _, _, number in self._own]

    def _index(self, column: int) -> Index:
        if not self._own:
            return ()  # the only column is all of the array
        return tuple([int(i) for i in np.unravel_index(column, self._column_counts)])

    def column_bytes(self, columns: np.ndarray) -> np.ndarray:
        """Return the decoded size of columns in bytes."""
        size = self.metadata.dtype.itemsize
        others = [n for i, n in enumerate(self.metadata.shape) if i not in self._numbers]
        sizes = np.full(len(columns), size * prod(others), np.int64)
        if self._own:
            indices = np.unravel_index(columns, self._column_counts)
            for number, index in zip(self._numbers, indices, strict=True):
                sizes *= np.diff(self.metadata.read_grid.axes[number].edges)[index]
        return sizes

    @cached_property
    def column_chunks(self) -> int:
        """The number of chunks in a column."""
        counts = self.metadata.read_grid.counts
        return prod(n for i, n in enumerate(counts) if i not in self._numbers)

    def pieces(self, sample: int) -> Iterator[Piece]:
        """Yield the parts of a sample in each column that it overlaps."""
        whole = whole_region(self.metadata.shape)
        picks = np.unravel_index(sample, self.counts)
        parts = []
        for at, axis, number in self._own:
            start = int(picks[at]) * axis.stride
            chunks = self.metadata.read_grid.axes[number]
            parts.append(
                [
                    (part.chunk, part.inside, part.outside, chunks.start(part.chunk))
                    for part in chunks.parts(slice(start, start + axis.length, 1))
                ]
            )
        for combination in product(*parts):
            region, inside, outside, column = list(whole), list(whole), list(whole), 0
            within: Any
            for number, count, (chunk, within, target, begin) in zip(
                self._numbers, self._column_counts, combination, strict=True
            ):
                column = column * count + chunk
                region[number] = slice(begin + within.start, begin + within.stop, 1)
                inside[number], outside[number] = within, target
            yield Piece(column, tuple(region), tuple(inside), tuple(outside))


def window_axes(
    arrays: Mapping[str, ArrayMetadata], window: Any, stride: Any
) -> dict[str, ArrayWindows]:
    """Return the windows of arrays, by their names; see `batches`."""
    is_index = window is None
    window_lengths = _by_axis(1 if is_index else window, "window")
    strides = dict(window_lengths)
    if stride is not None:
        window_strides = dict.fromkeys(window_lengths, stride) if is_integer(stride) else stride
        window_strides = _by_axis(window_strides, "stride")
        unknown = [name for name in window_strides if name not in window_lengths]
        if unknown:
            raise SelectionError(
                "there are no windows along this axis",
                key="stride",
                found=unknown[0],
                expected=f"one of {list(window_lengths)}, for which window has a length",
            )
        strides |= window_strides
    axes, numbers = [], []
    for name, length in window_lengths.items():
        axis_numbers = {key: _number(metadata, name) for key, metadata in arrays.items()}
        axes.append(
            WindowAxis(name, length, strides[name], _size(arrays, axis_numbers, name, length))
        )
        numbers.append(axis_numbers)
    return {
        key: ArrayWindows(metadata, tuple(axes), tuple(each[key] for each in numbers), is_index)
        for key, metadata in arrays.items()
    }


def _by_axis(lengths: Any, key: str) -> dict[int | str, int]:
    """Return lengths by the names or numbers of axes."""
    if is_integer(lengths):
        lengths = {0: lengths}
    elif isinstance(lengths, Sequence) and not isinstance(lengths, str):
        lengths = {axis: each for axis, each in enumerate(lengths) if each is not None}
    elif not isinstance(lengths, Mapping):
        raise SelectionError(
            "invalid lengths along axes",
            key=key,
            found=lengths,
            expected="an integer, one for each of the first axes, or a dict of names to integers",
        )
    for name, length in lengths.items():
        if not is_integer(length) or length < 1:
            raise SelectionError(
                f"invalid length for axis {name!r}",
                key=key,
                found=length,
                expected="an integer from 1",
            )
    if not lengths:
        raise SelectionError("no axis has windows", key=key, found=lengths, expected="a length")
    return {name: int(length) for name, length in lengths.items()}


def _number(metadata: ArrayMetadata, name: int | str) -> int | None:
    """Return the number of an axis; None if the array has no such axis."""
    if isinstance(name, str):
        if name not in (metadata.dimension_names or ()):
            return None
        return axis_number(name, len(metadata.shape), metadata.dimension_names, "window")
    return int(name) if 0 <= name < len(metadata.shape) else None


def _size(
    arrays: Mapping[str, ArrayMetadata],
    found: Mapping[str, int | None],
    name: int | str,
    length: int,
) -> int:
    """Return the length of an axis, which must be the same in all arrays that have it."""
    sizes = {key: arrays[key].shape[n] for key, n in found.items() if n is not None}
    if not sizes:
        axes = [m.dimension_names or range(len(m.shape)) for m in arrays.values()]
        names = sorted({str(axis) for own in axes for axis in own})
        raise SelectionError(
            "no array has this axis", key="window", found=name, expected=f"one of {names}"
        )
    if len({*sizes.values()}) > 1:
        raise SelectionError(
            f"the arrays differ in their lengths along axis {name!r}",
            key="arrays",
            found=sizes,
            expected="one length, so that samples are aligned",
        )
    size = min(sizes.values())
    if length > size:
        raise SelectionError(
            f"the window is longer than axis {name!r}",
            key="window",
            found=length,
            expected=f"at most {size}",
        )
    return size
