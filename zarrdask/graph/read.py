"""``from_zarr``: stored arrays as Dask arrays."""

import warnings
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import tokenize

from zarrdask import config
from zarrdask.dtypes.base import DataType
from zarrdask.errors import MetadataError, SelectionError
from zarrdask.execution.client import check_visible
from zarrdask.execution.expressions import EXPRESSIONS
from zarrdask.execution.handle import Handle, Source, compose_axis, identity
from zarrdask.grids.base import Axis, Shape
from zarrdask.indexing.selection import Region, basic, first_out_of_bounds, is_basic, pick_size
from zarrdask.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.nodes.array import Array
from zarrdask.nodes.open import open_array
from zarrdask.nodes.options import suggests_arguments
from zarrdask.plan.align import Chunks, auto_block, blocks_of, join

#: A slice that meets at most this part of the units in the blocks that it touches is read by
#: itself; a larger one shares the blocks with whatever else reads them.
_NARROW = 0.5

#: Blocks along an axis, each of which is an integer in memory.
_MOST = 2**26


@suggests_arguments
def from_zarr(
    url: Any,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    chunks: Any = "auto",
    name: str | None = None,
    region: Any = None,
    *,
    inline_array: bool = True,
    zarr_format: ZarrFormat | None = None,
    consolidated: bool | None = None,
    strict: bool | None = None,
) -> da.Array:
    """Return a stored array as a Dask array. A drop-in for `dask.array.from_zarr`.

    Only metadata is read. Basic slices of the result read just the chunks that they meet,
    whatever its blocks.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store or Array
        Where it is: a path, any fsspec URL, a mapping of keys to bytes, a store, or an array.
    component : str, optional
        The array's path within.
    storage_options : dict, optional
        For fsspec.
    chunks : "auto", "stored" or what Dask takes for chunks
        ``"auto"``: whole stored units (chunks, or shards), joined until a block reaches
        ``zarrdask.block-size`` (16 MiB). ``"stored"``: one unit a block.
    name : str, optional
        Of the Dask array. By default it tells location, metadata and, where that costs nothing,
        the time of the last rewrite.
    region : basic index, optional
        What of the array is wanted; the rest has no part in the graph. A slice that goes beyond
        the array is cut at its end, as in NumPy, with a warning.
    inline_array : bool
        Taken for compatibility; the array is in the tasks where it is small there.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
    consolidated, strict : bool, optional
        As in `zarrdask.open_array`.

    Returns
    -------
    dask.array.Array

    Raises
    ------
    NodeNotFoundError, NodeTypeError, MetadataError, UnsupportedError
        As `zarrdask.open_array`.
    SelectionError
        If the region does not fit the array.
    StoreError
        If the store is in memory and the current client's workers are elsewhere.

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
    )
    selection = basic(() if region is None else region, array.shape)
    outside = None if region is None else first_out_of_bounds(region, array.shape)
    if outside is not None:
        warnings.warn(
            f"region={region!r} goes beyond the array along axis {outside[0]}, which has "
            f"{array.shape[outside[0]]} elements: it was cut there, as NumPy does",
            stacklevel=3,
        )
    source = region_source(array, selection.slices)
    blocks = region_blocks(array, selection.slices, chunks)
    # As bytes: a million lengths are hashed in no time.
    lengths = [np.array(axis).tobytes() for axis in blocks]
    x = _lazy(source, blocks, name or f"from-zarr-{tokenize(source, lengths)}")
    return x if selection.plain else x[selection.finish]


def region_source(array: Array, region: Region) -> Source:
    """Return a region of a stored array as what tasks read.

    Raises
    ------
    StoreError
        If the store is in memory and the current client's workers are elsewhere.
    """
    check_visible(array.store)
    handle = Handle(array.stored)
    return Source(handle, region, tokenize(identity(array), handle.documents))


def region_blocks(array: Array, region: Region, chunks: Any) -> Chunks:
    """Return the blocks of a region; `chunks` as in `from_zarr`.

    Raises
    ------
    MetadataError
        If the chunks do not fit the region.
    """
    metadata = array.metadata
    shape = tuple(len(range(s.start, s.stop, s.step)) for s in region)
    if chunks is None or (isinstance(chunks, str) and chunks == "auto"):
        extent = tuple(s.stop - s.start for s in region)
        return _cut(region, _auto_axes(metadata, extent))
    previous = _cut(region, metadata.grid.axes)
    if isinstance(chunks, str) and chunks == "stored":
        return previous
    try:
        found: Chunks = normalize_chunks(
            chunks, shape, dtype=metadata.dtype, previous_chunks=previous
        )
    except (TypeError, ValueError) as error:
        raise MetadataError(f"not chunks for this array: {error}", key="chunks") from error
    return found


def _auto_axes(metadata: ArrayMetadata, extent: Shape) -> tuple[Axis, ...]:
    """Return how the blocks of a region of an extent lie along each axis."""
    grid, inner = metadata.grid, metadata.read_grid.chunk_shape
    size, limit = metadata.dtype.itemsize, config.get("block-size")
    block = auto_block(extent, grid.chunk_shape, inner, size, limit)
    units = zip(block, grid.chunk_shape, extent, strict=True)
    if any(length < min(unit, n) for length, unit, n in units):
        return block  # cut along the chunks in the shards
    return join(grid.axes, block)


def _cut(region: Region, axes: Sequence[Axis]) -> Chunks:
    """Cut a region where the boundaries of units lie in the stored array."""
    for pick, axis in zip(region, axes, strict=True):
        if isinstance(axis, int) and (pick.stop - pick.start) // max(axis, 1) > _MOST:
            raise MetadataError(
                "more blocks along an axis than Dask could hold",
                key="chunks",
                found=(pick.stop - pick.start) // axis,
                expected=f"at most {_MOST}: a smaller region=, or larger blocks",
            )
    return tuple(blocks_of(pick, axis) for pick, axis in zip(region, axes, strict=True))


def _lazy(source: Source, chunks: Chunks, name: str) -> da.Array:
    """Return the Dask array of a source: a symbolic layer, whatever the number of blocks."""
    options: dict[str, Any] = {
        "chunks": chunks,
        "inline_array": source.handle.is_small,
        "meta": np.empty((0,) * source.ndim, source.dtype),
    }
    if EXPRESSIONS:
        return da.from_array(source, **options)  # it names arrays itself
    x = da.from_array(source, name=name, **options)
    return StoredArray.wrap(x, source)


def stored_type(x: da.Array) -> DataType | np.dtype[Any]:
    """Return what an array is to be stored as.

    Of objects only their source knows the type; of times NumPy forgets a multiple of the generic
    unit.
    """
    if x.dtype.kind in "OmM" and isinstance(x, StoredArray) and x.name == x.read_name:
        found = x.source.metadata.data_type
        if type(found) is not DataType:
            return found
    dtype: np.dtype[Any] = x.dtype
    return dtype


class StoredArray(da.Array):  # type: ignore[misc]
    """A Dask array that knows where it comes from, so that narrow slices of it are new reads.

    Dask pushes a slice down to the read only if nothing else uses the block. Here a basic
    slice that needs few of a block's chunks becomes a read of its own; one that needs most of
    them stays a slice of the block, which others may share. Anything else that is done with
    the array gives ordinary Dask arrays.
    """

    source: Source
    #: The name of the layer that reads: assignment changes an array, and its name, in place.
    read_name: str

    @classmethod
    def wrap(cls, x: da.Array, source: Source) -> "StoredArray":
        """Return a Dask array as one that knows its source."""
        found = cls(x.dask, x.name, x.chunks, dtype=x.dtype, meta=x._meta)
        found.source = source
        found.read_name = x.name
        return found

    def __getitem__(self, index: Any) -> da.Array:
        if self.name != self.read_name or not is_basic(index):
            return super().__getitem__(index)
        try:
            selection = basic(index, self.shape)
        except SelectionError:
            return super().__getitem__(index)  # Dask's own errors
        region = selection.slices
        if not self._is_narrow(region):
            return super().__getitem__(index)
        chunks = tuple(_sliced(c, pick) for c, pick in zip(self.chunks, region, strict=True))
        source = self.source.view(region)
        x = _lazy(source, chunks, f"from-zarr-{tokenize(source, self.name)}")
        return x if selection.plain else da.Array.__getitem__(x, selection.finish)

    def _is_narrow(self, region: Region) -> bool:
        """Whether a region meets few of the units that its blocks hold."""
        units = self.source.metadata.read_grid.axes
        wanted = held = 1
        for axis, pick in enumerate(region):
            whole = self.source.region[axis]
            if pick.start >= pick.stop:
                return True
            unit = units[axis]
            blocks = _touched(self.chunks[axis], pick)
            wanted *= _count(compose_axis(whole, pick), unit)
            held *= _count(compose_axis(whole, blocks), unit)
        return wanted <= held * _NARROW

    def __reduce__(self) -> tuple[Any, ...]:
        plain = da.Array(self.dask, self.name, self.chunks, meta=self._meta)
        if self.name != self.read_name:
            return plain.__reduce__()  # type: ignore[no-any-return]
        return StoredArray.wrap, (plain, self.source)


def _count(pick: slice, axis: Axis) -> int:
    """How many units along an axis a pick meets; at most, where units and step are uneven."""
    ends = np.array([pick.start, pick.stop - 1])
    first, last = ends // axis if isinstance(axis, int) else axis.searchsorted(ends, "right")
    return min(int(last - first) + 1, pick_size(pick))


def _touched(blocks: tuple[int, ...], pick: slice) -> slice:
    """Return the stretch of an axis that the blocks cover which a pick meets."""
    edges = np.concatenate([[0], np.cumsum(blocks)])
    first = int(np.searchsorted(edges, pick.start, "right")) - 1
    last = int(np.searchsorted(edges, pick.stop, "left"))
    return slice(int(edges[first]), int(edges[last]), 1)


def _sliced(blocks: tuple[int, ...], pick: slice) -> tuple[int, ...]:
    """Return what a pick leaves of each block, as Dask would; empty blocks vanish."""
    edges = np.concatenate([[0], np.cumsum(blocks)])
    # How many picked elements lie before each edge.
    before = np.clip(
        -(-(edges - pick.start) // pick.step), 0, len(range(pick.start, pick.stop, pick.step))
    )
    sizes = np.diff(before)
    return tuple(sizes[sizes > 0].tolist()) or (0,)
