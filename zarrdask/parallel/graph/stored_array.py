"""Dask arrays backed by a stored array: slicing and rechunking change what is read."""

from collections.abc import Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.array import core
from dask.array.core import normalize_chunks
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.utils import IndexCallable

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.errors import SelectionError
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.grids.axis import Axis, edges_of
from zarrdask.formats.indexing.regions import compose_axis
from zarrdask.formats.indexing.selection import Region, basic, is_basic, pick_size
from zarrdask.formats.metadata.convert import element_type
from zarrdask.parallel.graph.missing_blocks import read_layer, read_source
from zarrdask.parallel.graph.points.pointwise import points_of
from zarrdask.parallel.plan.align import Chunks

#: A slice is read by itself if it overlaps at most this fraction of the units of its blocks; a
#: larger one is cut from blocks that other slices may share.
_MAX_NARROW_FRACTION = 0.5
#: A slice that overlaps more blocks than this is read by itself, too. Dask would make a task for
#: each of them at once, and such a task costs as much as reading a small block a second time.
MAX_SHARED_BLOCKS = 1000
#: The options of Dask's method ``rechunk``.
_OPTIONS = {"threshold", "block_size_limit", "balance", "method"}


def read_array(
    source: ArrayRegion, chunks: Chunks, name: str, is_stored: np.ndarray | None = None
) -> da.Array:
    """Return the Dask array of a source: one symbolic layer, for any number of blocks.

    If `is_stored` is given, blocks without stored chunks or shards become a constant.
    """
    meta = np.empty((0,) * source.ndim, source.dtype)
    if is_stored is not None:
        layer = read_layer(name, source, chunks, is_stored)
        graph = HighLevelGraph.from_collections(name, layer)
        return StoredArray.wrap(core.Array(graph, name, chunks, meta=meta), source, is_stored)
    return StoredArray.wrap(read_source(source, chunks, name, meta), source)


def source_of(x: Any) -> ArrayRegion | None:
    """Return the region of a stored array that a Dask array reads as it is; None for others."""
    return x.source if isinstance(x, StoredArray) and x.name == x.read_name else None


def data_type_of(x: da.Array) -> DataType | np.dtype[Any]:
    """Return the data type for storing an array.

    That is the dtype of the array, unless it was read as it is from a stored array with a data type
    that has no dtype of its own, such as text as objects, or that NumPy would change, such as times
    with a multiple of the generic unit.
    """
    source = source_of(x) if x.dtype.kind in "OmM" else None
    if source is not None:
        data_type = element_type(source.metadata)
        if type(data_type) is not DataType:
            return data_type
    dtype: np.dtype[Any] = x.dtype
    return dtype


def rechunked(
    x: da.Array, source: ArrayRegion, chunks: Any, options: Mapping[str, Any]
) -> Chunks | None:
    """Return the blocks of ``x.rechunk(chunks, **options)`` if they can be read.

    They can if no two blocks need the same chunk, which would be decoded twice, and no shard is
    divided among more blocks, as each block would read its index. The result is None, too, if the
    arguments are wrong: Dask raises its own errors.
    """
    if not options.keys() <= _OPTIONS or options.get("balance"):
        return None
    limit = options.get("block_size_limit")
    try:
        if isinstance(chunks, dict):
            lengths = {range(x.ndim)[axis]: length for axis, length in chunks.items()}
            chunks = tuple(map(lengths.get, range(x.ndim)))
        if isinstance(chunks, tuple | list):
            pairs = zip(chunks, x.chunks, strict=True)
            chunks = tuple(old if new is None else new for new, old in pairs)
        blocks: Chunks = normalize_chunks(chunks, x.shape, limit, x.dtype, x.chunks)
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return None
    if 0 in x.shape or blocks == x.chunks or min(map(min, blocks), default=0) < 0:
        return None
    chunk_axes, unit_axes = source.metadata.read_grid.axes, source.metadata.grid.axes
    for axis, old, new in zip(source.axes, x.chunks, blocks, strict=True):
        pick, edges = source.region[axis], edges_of(new)[1:-1]
        divides_shard = _divides(unit_axes[axis], pick, edges)
        is_added = ~np.isin(edges, edges_of(old))
        if (_divides(chunk_axes[axis], pick, edges) | (divides_shard & is_added)).any():
            return None
    return blocks


def _divides(unit: Axis, pick: slice, edges: np.ndarray) -> np.ndarray:
    """Return which edges between blocks of a slice are within a unit of an axis."""
    first = pick.start + edges * pick.step
    divides: np.ndarray = unit.number(first) == unit.number(first - pick.step)
    return divides


class StoredArray(core.Array):  # type: ignore[misc]
    """A Dask array with a reference to its source, whose narrow slices are reads of their own.

    Dask pushes a slice down to the read only if nothing else uses the block. Here, a basic slice
    that needs few of the chunks in its blocks, or very many blocks, becomes a separate read, which
    is one symbolic layer; one that needs most of the chunks of a few blocks remains a slice of the
    blocks, which other slices may share. A rechunk to blocks of whole chunks is also another read,
    unless it divides shards, and so is a selection of points by ``vindex``. All other operations
    return ordinary Dask arrays.

    Attributes
    ----------
    source : ArrayRegion
        The region of a stored array that this array reads.
    read_name : str
        The name of the layer that reads. Assignment modifies the array and its name.
    is_stored : ndarray of bool or None
        Which units of the stored array are stored, if blocks without any are constants.
    """

    source: ArrayRegion
    read_name: str
    is_stored: np.ndarray | None

    @classmethod
    def wrap(
        cls, x: da.Array, source: ArrayRegion, is_stored: np.ndarray | None = None
    ) -> "StoredArray":
        """Return a Dask array with a reference to its source."""
        array = cls(x.dask, x.name, x.chunks, dtype=x.dtype, meta=x._meta)
        array.source = source
        array.is_stored = is_stored
        array.read_name = x.name
        return array

    def __getitem__(self, index: Any) -> da.Array:
        if self.name != self.read_name or not is_basic(index):
            return super().__getitem__(index)
        try:
            selection = basic(index, self.shape)
        except SelectionError:
            return super().__getitem__(index)  # Dask raises its own errors.
        edges = tuple(map(edges_of, self.chunks))
        if not self._has_own_read(selection.slices, edges):
            return super().__getitem__(index)
        lengths = tuple(map(_sliced, edges, selection.slices))
        source = self.source.select(selection)
        chunks = tuple(lengths[axis] for axis in selection.kept)
        name = f"{source.stored.task_name('read')}-{tokenize(source, self.name)}"
        x = read_array(source, chunks, name, self.is_stored)
        return x if selection.turn is None else core.Array.__getitem__(x, selection.turn)

    def in_blocks(self, blocks: Chunks) -> da.Array:
        """Return this array with other blocks; each is read by itself."""
        lengths = [np.array(axis).tobytes() for axis in blocks]
        name = f"{self.source.stored.task_name('read')}-{tokenize(self.source, lengths, self.name)}"
        return read_array(self.source, blocks, name, self.is_stored)

    def _has_own_read(self, region: Region, edges: Sequence[np.ndarray]) -> bool:
        """Whether a region overlaps few of the units in its blocks, or very many blocks."""
        units = self.source.metadata.read_grid.axes
        needed = available = blocks = 1
        for axis, pick, axis_edges in zip(self.source.axes, region, edges, strict=True):
            if pick.start >= pick.stop:
                return True
            first = int(np.searchsorted(axis_edges, pick.start, "right")) - 1
            last = int(np.searchsorted(axis_edges, pick.stop, "left"))
            touched = slice(int(axis_edges[first]), int(axis_edges[last]), 1)
            whole, unit = self.source.region[axis], units[axis]
            needed *= _count(compose_axis(whole, pick), unit)
            available *= _count(compose_axis(whole, touched), unit)
            blocks *= last - first
        return needed <= available * _MAX_NARROW_FRACTION or blocks > MAX_SHARED_BLOCKS

    @property
    def vindex(self) -> IndexCallable:
        """Selection of points; they are read without the rest of their blocks."""
        return IndexCallable(self._points)

    def _points(self, key: Any) -> da.Array:
        """Return the elements at points, read by one task for each group of chunks with points."""
        points = points_of(self.source, key) if self.name == self.read_name else None
        return super().vindex[key] if points is None else points

    def rechunk(self, chunks: Any = "auto", *args: Any, **options: Any) -> da.Array:
        """Return the array with other blocks; the arguments are the same as for Dask's method."""
        blocks = None
        # A function may modify a block that Dask has rechunked, but no constant.
        is_read = self.name == self.read_name and self.is_stored is None
        if is_read and not args:
            blocks = rechunked(self, self.source, chunks, options)
        if blocks is None:
            return super().rechunk(chunks, *args, **options)
        return self.in_blocks(blocks)

    def __reduce__(self) -> tuple[Any, ...]:
        plain = core.Array(self.dask, self.name, self.chunks, meta=self._meta)
        if self.name != self.read_name:
            return plain.__reduce__()  # type: ignore[no-any-return]
        return StoredArray.wrap, (plain, self.source, self.is_stored)


def _count(pick: slice, axis: Axis) -> int:
    """Return the number of units that a slice overlaps, or an upper bound if it has a step."""
    return min(len(axis.numbers(pick)), pick_size(pick))


def _sliced(edges: np.ndarray, pick: slice) -> tuple[int, ...]:
    """Return the lengths of blocks after slicing, as in Dask: without empty blocks."""
    # The number of selected elements before each edge.
    before = np.clip(-(-(edges - pick.start) // pick.step), 0, pick_size(pick))
    sizes = np.diff(before)
    return tuple(sizes[sizes > 0].tolist()) or (0,)
