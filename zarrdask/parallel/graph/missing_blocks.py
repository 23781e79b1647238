"""Replace blocks without stored data, and blocks computed from these alone, by one constant.

No layer of Dask can say that blocks are the same. Here, the layer that reads an array lists equal
blocks, and `classes_of` finds equal blocks of other symbolic layers.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

import dask.array as da
import numpy as np
from dask.array import core
from dask.array.core import getter
from dask.blockwise import Blockwise, blockwise, optimize_blockwise
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArrayBlockwiseDep

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.formats.codecs.decode import put_fill
from zarrdask.formats.grids.axis import Axis, edges_of
from zarrdask.formats.grids.chunk_grid import Index, Shape
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.plan.align import Chunks

#: The class of a block that is not the same as others.
_DISTINCT = -1


class Fill:
    """An array-like of one value, without memory for its elements."""

    __slots__ = ("value", "values")

    def __init__(self, value: np.ndarray, shape: Shape) -> None:
        self.value = value
        self.values = np.broadcast_to(value, shape)

    def __getitem__(self, index: Any) -> np.ndarray:
        part: np.ndarray = self.values[index]
        return part

    def __reduce__(self) -> tuple[Any, ...]:
        return Fill, (self.value, self.values.shape)


class ReadArguments(ArrayBlockwiseDep):  # type: ignore[misc]
    """The arguments of the tasks that read blocks, which are equal for all missing blocks.

    If the array is a concatenation, a task gets the members that it reads.
    """

    def __init__(self, source: ArrayRegion, chunks: Chunks, is_stored: np.ndarray) -> None:
        super().__init__(chunks)
        self.source = source
        self.is_stored = is_stored
        value = np.empty((), source.dtype)
        put_fill(value, ..., source.metadata.fill)
        self.fill = Fill(value, tuple(max(axis, default=0) for axis in chunks))
        self._edges = tuple(map(edges_of, chunks))

    def __getitem__(self, index: Index) -> Any:
        if not self.is_stored[index]:
            return self.fill
        return self.source.narrowed(self._part(index)) if self.is_narrowed else self.source

    @property
    def is_narrowed(self) -> bool:
        """Whether tasks get parts of the source."""
        return self.source.stored.elements is not None

    def _part(self, index: Index) -> tuple[slice, ...]:
        """Return the region of the source that is a block."""
        starts = [int(edges[i]) for edges, i in zip(self._edges, index, strict=True)]
        lengths = [axis[i] for axis, i in zip(self.chunks, index, strict=True)]
        return tuple(slice(at, at + n, 1) for at, n in zip(starts, lengths, strict=True))

    @property
    def block_bytes(self) -> int:
        """The bytes of the largest block."""
        size: int = prod(map(max, self.chunks)) * self.source.dtype.itemsize
        return size

    def classes(self) -> np.ndarray:
        """Return a number for each block: the same for missing blocks of the same shape."""
        shapes = np.zeros(self.numblocks, np.intp)
        for lengths, along in zip(self.chunks, np.ix_(*map(range, self.numblocks)), strict=True):
            unique, numbers = np.unique(lengths, return_inverse=True)
            shapes = shapes * len(unique) + numbers[along]
        return np.where(self.is_stored, _DISTINCT, shapes)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return type(self).__name__, self.source, self.chunks, self.is_stored

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.source, self.chunks, self.is_stored)


class ReadSlices(ReadArguments):
    """The slices of the source, or of its `Fill`, for each block."""

    def __getitem__(self, index: Index) -> tuple[slice, ...]:
        part = self._part(index)
        if self.is_narrowed or not self.is_stored[index]:
            return tuple(slice(0, pick.stop - pick.start, None) for pick in part)
        return tuple(slice(pick.start, pick.stop, None) for pick in part)


def blocks_with_data(
    is_stored: np.ndarray, axes: Iterable[Axis], region: Region, chunks: Chunks
) -> np.ndarray:
    """Return whether each block of a region overlaps a stored unit; `axes` divide it into units."""
    spans = []
    for axis, pick, lengths in zip(axes, region, chunks, strict=True):
        edges = pick.start + edges_of(lengths) * pick.step
        # The units of the first element of each block, and after its last one. A block without
        # elements overlaps none.
        end = axis.number(edges[1:] - pick.step) + 1
        spans.append((np.minimum(axis.number(edges[:-1]), end), end))
    counts = is_stored[tuple(slice(first.min(), end.max()) for first, end in spans)]
    for number, (first, end) in enumerate(spans):
        before = np.insert(np.cumsum(counts, axis=number), 0, 0, axis=number)
        low = first.min()
        counts = before.take(end - low, axis=number) - before.take(first - low, axis=number)
    return counts > 0


def read_layer(
    name: str, source: ArrayRegion, chunks: Chunks, is_stored: np.ndarray | None
) -> Blockwise:
    """Return the symbolic layer that reads a region, of whose units some, or all, are stored."""
    if is_stored is None:
        return _read_layer(name, source, chunks, np.ones([len(each) for each in chunks], bool))
    # An axis that the source does not have has one block.
    every: list[Shape] = [(1,)] * len(source.region)
    for axis, lengths in zip(source.axes, chunks, strict=True):
        every[axis] = lengths
    blocks = blocks_with_data(is_stored, source.metadata.grid.axes, source.region, tuple(every))
    return _read_layer(name, source, chunks, blocks.reshape([len(lengths) for lengths in chunks]))


def _read_layer(name: str, source: ArrayRegion, chunks: Chunks, blocks: np.ndarray) -> Blockwise:
    axes, parts = tuple(range(source.ndim)), (source, chunks, blocks)
    return blockwise(
        getter,
        name,
        axes,
        *(ReadArguments(*parts), axes, ReadSlices(*parts), axes),
        numblocks={},
        _data_producer=True,
    )


def read_source(source: ArrayRegion, chunks: Chunks, name: str, meta: np.ndarray) -> da.Array:
    """Return the plain Dask array of a source: one symbolic layer, for any number of blocks."""
    if source.stored.elements is not None:
        layer = read_layer(name, source, chunks, None)
        graph = HighLevelGraph.from_collections(name, layer)
        return core.Array(graph, name, chunks, meta=meta)
    inline = source.stored.is_small
    return core.from_array(source, name=name, chunks=chunks, inline_array=inline, meta=meta)


def missing_parts(layer: Any) -> Iterator["ReadSlices"]:
    """Yield the slices of blocks that a symbolic layer reads, if it has a list of missing ones."""
    if isinstance(layer, Blockwise):
        yield from (part for part in layer.io_deps.values() if isinstance(part, ReadSlices))


def sources_of(layer: Any) -> Iterator[ArrayRegion]:
    """Yield the regions that the tasks of a symbolic layer read."""
    yield from (part.source for part in missing_parts(layer))
    indices = getattr(layer, "indices", ())
    yield from (item for item, index in indices if index is None and isinstance(item, ArrayRegion))


def equal_blocks(x: da.Array) -> np.ndarray | None:
    """Return a number for each block, the same for blocks that are equal as they read no data.

    The number of other blocks is -1. None if no two blocks are known to be equal.
    """
    layers = getattr(x.dask, "layers", {})
    if not any(part for layer in layers.values() for part in missing_parts(layer)):
        return None
    graph, known = optimize_blockwise(x.dask, [x.name]), dict[str, np.ndarray]()
    for name in graph._toposort_layers():
        classes = classes_of(graph.layers[name], known)
        if classes is not None:
            known[name] = classes
    return known.get(x.name)


def classes_of(layer: Any, known: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return a number for each block of a layer, the same for blocks with the same value.

    None if no block is known to have the value of another one; `known` has the numbers of other
    layers.
    """
    if not isinstance(layer, Blockwise):
        return None
    order = layer.output_indices
    classes = None
    for name, indices in layer.indices:
        if indices is None:
            continue
        part = layer.io_deps.get(name)
        own = part.classes() if isinstance(part, ReadArguments) else known.get(name)
        if own is None or len({*indices}) < len(indices) or not {*indices} <= {*order}:
            return None
        axes = sorted(range(own.ndim), key=lambda axis: order.index(indices[axis]))
        spread = [own.shape[indices.index(i)] if i in indices else 1 for i in order]
        own = own.transpose(axes).reshape(spread)
        classes = own if classes is None else _both(classes, own)
    if classes is None or not classes.ndim or (classes < 0).all():
        return None
    return np.broadcast_to(classes, tuple(layer.dims[index] for index in order))


def _both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the classes of blocks that are computed from blocks of two arrays."""
    both = one * (other.max(initial=0) + 1) + other
    both = np.where((one < 0) | (other < 0), _DISTINCT, both)
    # As small as they can be: there may be further arrays.
    unique, numbers = np.unique(both, return_inverse=True)
    numbers = numbers.reshape(both.shape)
    return numbers - 1 if unique.size and unique[0] == _DISTINCT else numbers
