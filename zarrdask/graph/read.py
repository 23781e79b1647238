"""``from_zarr``: read stored arrays as Dask arrays."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from zarrdask import config
from zarrdask.chunks.missing import Missing, check_skipping
from zarrdask.chunks.region import ArrayRegion
from zarrdask.dtypes.base import DataType
from zarrdask.errors import MetadataError, SelectionError
from zarrdask.execution.client import check_visible
from zarrdask.execution.expressions import EXPRESSIONS
from zarrdask.graph.fuse.optimization import register
from zarrdask.graph.missing import read_layer
from zarrdask.grids.axis import Axis, edges_of
from zarrdask.grids.base import Shape
from zarrdask.grids.regular import RegularGrid
from zarrdask.indexing.regions import compose_axis
from zarrdask.indexing.selection import (
    Region,
    basic,
    first_out_of_bounds,
    index_by_name,
    is_basic,
    pick_size,
    region_shape,
)
from zarrdask.metadata.lengths import by_axis
from zarrdask.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.nodes.array import Array, chunks_of
from zarrdask.nodes.open import open_array
from zarrdask.nodes.options import suggests_arguments
from zarrdask.plan.align import Chunks, auto_block
from zarrdask.storage.places import store_token

#: A slice is read by itself if it overlaps at most this fraction of the units of its blocks; a
#: larger one is cut from blocks that other slices may share.
_MAX_NARROW_FRACTION = 0.5
#: A slice that overlaps more blocks than this is read by itself, too. Dask would make a task for
#: each of them at once, and such a task costs as much as reading a small block a second time.
MAX_SHARED_BLOCKS = 1000

#: The largest number of blocks along an axis. Dask holds an integer for each.
_MAX_BLOCKS = 2**26


@suggests_arguments
def from_zarr(
    url: Any,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    chunks: Any = "auto",
    name: str | None = None,
    region: Any = None,
    *,
    skip_missing: bool = False,
    inline_array: bool = True,
    zarr_format: ZarrFormat | None = None,
    consolidated: bool | None = None,
    strict: bool | None = None,
    missing: Missing | None = None,
) -> da.Array:
    """Return a stored array as a Dask array.

    A drop-in replacement for `dask.array.from_zarr`. Only metadata is read now. Basic slices of
    the result read just the chunks that they overlap, whatever its blocks.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store, Group or Array
        The stored array, or the hierarchy that contains it: a path, an fsspec URL, a mapping of
        keys to bytes, a store, or an open node.
    component : str, optional
        The path of the array within `url`.
    storage_options : dict, optional
        Options for fsspec, if `url` is a URL.
    chunks : "auto", "stored", or chunks in any form that Dask accepts, default "auto"
        The blocks of the Dask array. ``"auto"``: whole chunks or shards, joined
        until a block reaches ``zarrdask.block-size`` (16 MiB), or four times that in a store with
        latency. ``"stored"``: one chunk or shard per block. The keys of a dict are axes or names of
        dimensions.
    name : str, optional
        The name of the Dask array. The default is derived from the location, the metadata and, if
        the store has one at no cost, the time of the last change of the metadata.
    region : basic index, or dict of names to slices or integers, optional
        The part of the array to return; the rest is not part of the graph. The keys of a dict are
        names of dimensions. Slices are clipped to the array, as in NumPy, with a warning.
    skip_missing : bool, default False
        Whether to list the stored chunks or shards now, and to use one constant, without memory of
        its own and read-only, for all blocks that have none of them. What is computed from such
        blocks alone is computed once. See the notes.
    inline_array : bool, default True
        Accepted for compatibility. The array is part of each task if it is small when pickled.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        The format to look for; by default, any.
    consolidated, strict : bool, optional
        As in `zarrdask.open_array`.
    missing : {"fill", "error"}, optional
        As in `zarrdask.open_array`: how the tasks read chunks that are not stored.

    Returns
    -------
    dask.array.Array
        The array, or the requested region of it.

    Raises
    ------
    NodeNotFoundError, NodeTypeError, MetadataError, UnsupportedError
        As in `zarrdask.open_array`.
    SelectionError
        If the region does not fit the array.
    StoreError
        If the store is in memory and the workers of the current client are other processes.
    UnsupportedError
        If `skip_missing` is true and the store can't be listed.

    Notes
    -----
    Where many small blocks are reduced, or merged to larger ones, one task reads several of them:
    up to ``zarrdask.fuse-blocks`` blocks, of ``zarrdask.fuse-size`` bytes together.

    With ``skip_missing=True``, the result is that of what is stored at the time of the call. All
    equal tasks on missing blocks become one, so functions are called once for all missing blocks
    of a shape, and must not depend on anything but their arguments.

    Both are part of how Dask optimises an array that reads stored ones. Neither is done with array
    expressions, nor if Dask's settings ``array_optimize`` or ``optimization.fuse.active`` are set.

    See Also
    --------
    to_zarr : Store a Dask array.
    open_array : Open an array for reading with NumPy.

    Examples
    --------
    >>> import zarrdask
    >>> store = {}
    >>> z = zarrdask.create_array(store, shape=(4, 6), dtype="i4", chunks=(2, 3))
    >>> z[...] = 7
    >>> int(zarrdask.from_zarr(store).sum().compute())
    168
    """
    array = open_array(
        url,
        component,
        storage_options=storage_options,
        zarr_format=zarr_format,
        consolidated=consolidated,
        strict=strict,
        missing=missing,
    )
    if skip_missing:
        check_skipping(array.missing)
    if isinstance(region, Mapping):
        region = index_by_name(region, array.dimension_names)
    selection = basic(() if region is None else region, array.shape)
    outside = None if region is None else first_out_of_bounds(region, array.shape)
    if outside is not None:
        warnings.warn(
            f"region={region!r} extends beyond the array along axis {outside[0]}, which has "
            f"{array.shape[outside[0]]} elements, and was clipped there, as in NumPy",
            stacklevel=3,
        )
    source = region_source(array, selection.slices, selection.kept)
    blocks = region_blocks(array, selection.slices, chunks)
    blocks = tuple(blocks[axis] for axis in selection.kept)
    # As bytes, so that a million lengths are hashed quickly.
    lengths = [np.array(axis).tobytes() for axis in blocks]
    is_stored = array.stored_map() if skip_missing and not EXPRESSIONS else None
    # Not another name if nothing is skipped.
    seen = () if is_stored is None else (is_stored,)
    default = f"{source.stored.task_name('read')}-{tokenize(source, lengths, *seen)}"
    x = _lazy(source, blocks, name or default, is_stored)
    return x if selection.turn is None else x[selection.turn]


def region_source(array: Array, region: Region, axes: tuple[int, ...] | None = None) -> ArrayRegion:
    """Return a region of a stored array as what tasks read; `axes` as in `ArrayRegion`."""
    check_visible(array.store)
    register()
    node, stored = array.node_path, chunks_of(array)
    stamp = node.version_stamp(array.metadata.format.documents)
    token = tokenize(store_token(node.store), node.path, stamp, stored.documents, array.missing)
    return ArrayRegion(stored, region, axes, token)


def region_blocks(array: Array, region: Region, chunks: Any) -> Chunks:
    """Return the blocks of a region; `chunks` as in `from_zarr`."""
    metadata = array.metadata
    if chunks is None or (isinstance(chunks, str) and chunks == "auto"):
        extent = tuple(s.stop - s.start for s in region)
        limit = block_bytes(chunks_of(array).units.capabilities.block_factor)
        return _cut(region, _auto_axes(metadata, extent, limit))
    previous = _cut(region, metadata.grid.axes)
    if isinstance(chunks, str) and chunks == "stored":
        return previous
    chunks = by_axis(chunks, len(region), metadata.dimension_names, "chunks")
    try:
        blocks: Chunks = normalize_chunks(
            chunks, region_shape(region), dtype=metadata.dtype, previous_chunks=previous
        )
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise MetadataError(
            f"these are not chunks of the array: {error}",
            key="chunks",
            found=chunks,
            expected="lengths, a size such as '16 MiB', 'auto', or 'stored'",
        ) from error
    return blocks


def block_bytes(factor: int) -> int:
    """Return up to which size in bytes units are joined; `factor` is that of their store."""
    return int(config.get("block-size")) * factor


def _auto_axes(metadata: ArrayMetadata, extent: Shape, limit: int) -> tuple[Axis, ...]:
    """Return the blocks along each axis, for a region with some extent."""
    grid, inner = metadata.grid, metadata.read_grid.chunk_shape
    block = auto_block(extent, grid.chunk_shape, inner, metadata.dtype.itemsize, limit)
    units = zip(block, grid.chunk_shape, extent, strict=True)
    if any(length < min(unit, n) for length, unit, n in units):
        return RegularGrid(grid.shape, block).axes  # Large shards are cut along inner chunks.
    return tuple(axis.join(length) for axis, length in zip(grid.axes, block, strict=True))


def _cut(region: Region, axes: Sequence[Axis]) -> Chunks:
    """Return the lengths of blocks if a region is cut at boundaries of the stored array."""
    for pick, axis in zip(region, axes, strict=True):
        count = len(axis.numbers(pick))
        if count > _MAX_BLOCKS:
            raise MetadataError(
                "there would be more blocks along an axis than Dask can hold",
                key="chunks",
                found=count,
                expected=f"at most {_MAX_BLOCKS}: pass a smaller region, or larger chunks",
            )
    return tuple(axis.blocks(pick) for pick, axis in zip(region, axes, strict=True))


def _lazy(
    source: ArrayRegion, chunks: Chunks, name: str, is_stored: np.ndarray | None = None
) -> da.Array:
    """Return the Dask array of a source: one symbolic layer, for any number of blocks.

    If `is_stored` is given, blocks without stored chunks or shards become a constant.
    """
    meta = np.empty((0,) * source.ndim, source.dtype)
    if is_stored is not None:
        layer = read_layer(name, source, chunks, is_stored)
        graph = HighLevelGraph.from_collections(name, layer)
        return StoredArray.wrap(da.Array(graph, name, chunks, meta=meta), source, is_stored)
    inline = source.stored.is_small
    if EXPRESSIONS:  # They have names of their own.
        return da.from_array(source, chunks=chunks, inline_array=inline, meta=meta)
    x = da.from_array(source, name=name, chunks=chunks, inline_array=inline, meta=meta)
    return StoredArray.wrap(x, source)


def data_type_of(x: da.Array) -> DataType | np.dtype[Any]:
    """Return the data type for storing an array.

    That is the dtype of the array, unless it was read as it is from a stored array with a data type
    that has no dtype of its own, such as text as objects, or that NumPy would change, such as times
    with a multiple of the generic unit.
    """
    if x.dtype.kind in "OmM" and isinstance(x, StoredArray) and x.name == x.read_name:
        data_type = x.source.metadata.data_type
        if type(data_type) is not DataType:
            return data_type
    dtype: np.dtype[Any] = x.dtype
    return dtype


class StoredArray(da.Array):  # type: ignore[misc]
    """A Dask array with a reference to its source, whose narrow slices are reads of their own.

    Dask pushes a slice down to the read only if nothing else uses the block. Here, a basic slice
    that needs few of the chunks in its blocks, or very many blocks, becomes a separate read, which
    is one symbolic layer; one that needs most of the chunks of a few blocks remains a slice of the
    blocks, which other slices may share. All other operations return ordinary Dask arrays.

    Attributes
    ----------
    source : ArrayRegion
        The region of a stored array that this array reads.
    read_name : str
        The name of the layer that reads. Assignment changes an array, and its name, in place.
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
        x = _lazy(source, chunks, name, self.is_stored)
        return x if selection.turn is None else da.Array.__getitem__(x, selection.turn)

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

    def __reduce__(self) -> tuple[Any, ...]:
        plain = da.Array(self.dask, self.name, self.chunks, meta=self._meta)
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
