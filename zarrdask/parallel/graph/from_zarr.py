"""``from_zarr``: read stored arrays as Dask arrays."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import dask.array as da
import numpy as np
from dask.base import tokenize

from zarrdask.arrays.chunks.missing_chunks import Missing, check_skipping
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.snapshot import Snapshot
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.open import open_array
from zarrdask.errors import MetadataError
from zarrdask.formats.indexing.selection import (
    Region,
    basic,
    first_out_of_bounds,
    index_by_name,
)
from zarrdask.formats.metadata.model import ZarrFormat
from zarrdask.parallel.execution.client import check_visible
from zarrdask.parallel.execution.expressions import EXPRESSIONS
from zarrdask.parallel.graph.blocks import region_blocks
from zarrdask.parallel.graph.fuse.optimization import register
from zarrdask.parallel.graph.stored_array import read_array


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
    snapshot: Snapshot | None = None,
    depth: Any = None,
    boundary: Any = "none",
    array_module: Literal["dask.array", "dask_array"] = "dask.array",
) -> da.Array:
    """Return a stored array as a Dask array.

    A drop-in replacement for `dask.array.from_zarr`. Only metadata is read now. Basic slices of the
    result read only the chunks that they overlap, for any blocks.

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
        The blocks of the Dask array. ``"auto"``: whole chunks or shards, joined until a block
        reaches ``zarrdask.block-size`` (16 MiB), or four times that in a remote store.
        ``"stored"``: one chunk or shard per block. The keys of a dict are axes or names of
        dimensions.
    name : str, optional
        The name of the Dask array. The default is derived from the location, the metadata and, if
        the store has one at no cost, the time of the last change of the metadata.
    region : basic index, or dict of names to slices or integers, optional
        The part of the array to return; the rest is not part of the graph. The keys of a dict are
        names of dimensions. Slices are clipped to the array, as in NumPy, with a warning.
    skip_missing : bool, default False
        Whether to list the stored chunks or shards now, and to use one constant, without memory of
        its own and read-only, for all blocks that have none of them. Values computed from such
        blocks alone are computed once. See the notes.
    inline_array : bool, default True
        Accepted for compatibility. The array is part of each task if its pickled form is small.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        The format to look for; by default, any.
    consolidated, strict : bool, optional
        As in `zarrdask.open_array`.
    missing : {"fill", "error"}, optional
        As in `zarrdask.open_array`: how the tasks read chunks that are not stored.
    snapshot : Manifest, str or os.PathLike, optional
        A manifest of the node at `url`, or the local file that it is saved in: the tasks read
        exactly the listed versions of the objects, also while others write to a bucket that keeps
        versions. In other stores, a chunk that has changed since raises `SnapshotError`.
    depth : int, tuple, or dict of axes or names of dimensions to depths, optional
        The number of elements by which blocks overlap their neighbours: along all axes, each axis,
        or some. An axis may have a pair, before and after the block, if it has no boundary. Each
        block is the same as from `dask.array.overlap.overlap`, but is read from the store by one
        task; blocks that are shorter than the depth are joined. Default blocks are joined along
        these axes. Chunks that blocks share are cached, up to half of ``zarrdask.keep-memory``.
    boundary : "reflect", "nearest", "periodic", "none" or a value, default "none"
        The elements beyond the ends of the array in the first and the last blocks, if there is a
        depth: the elements in reverse order, the last element, the elements of the other end, none,
        or a value. A tuple has one for each axis, and a dict some; the others are "none".
    array_module : {"dask.array", "dask_array"}, default "dask.array"
        The package of the result. Arrays of the package dask-array are expressions: also slices and
        rechunks after other operations become part of the read.

    Returns
    -------
    dask.array.Array or dask_array.Array
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

    With ``skip_missing=True``, the result reflects what is stored at the time of the call. All
    equal tasks on missing blocks become one, so functions are called once for all missing blocks
    of a shape, and must not depend on anything but their arguments.

    Both are part of the graph optimisation of arrays that read stored ones. Neither is done with
    array expressions, nor if Dask's settings ``array_optimize`` or ``optimization.fuse.active`` are
    set.

    See Also
    --------
    map_overlap : Map a function over blocks that overlap, and trim the results.
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
    if depth is None and not (isinstance(boundary, str) and boundary == "none"):
        raise MetadataError(
            "a boundary applies to overlapping blocks only; pass their depth, too",
            key="boundary",
            found=boundary,
            expected="'none', or depth=",
        )
    if name is not None and not isinstance(name, str):
        raise MetadataError("invalid name of a Dask array", key="name", found=name, expected="text")
    array = open_array(
        url,
        component,
        storage_options=storage_options,
        zarr_format=zarr_format,
        consolidated=consolidated,
        strict=strict,
        missing=missing,
        snapshot=snapshot,
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
    blocks = region_blocks(source, chunks)
    # As bytes, so that a million lengths are hashed quickly.
    lengths = [np.array(axis).tobytes() for axis in blocks]
    is_stored = array.stored_map() if skip_missing and not EXPRESSIONS else None
    # Not another name if nothing is skipped.
    seen = () if is_stored is None else (is_stored,)
    default = f"{source.stored.task_name('read')}-{tokenize(source, lengths, *seen)}"
    if array_module == "dask.array" and not EXPRESSIONS:
        x = read_array(source, blocks, name or default, is_stored)
    else:
        # Imported here: few users have expressions.
        from zarrdask.parallel.graph.expression_array import expression_of

        x = expression_of(array_module, source, blocks, name)
    x = x if selection.turn is None else x[selection.turn]
    if depth is None:
        return x
    # Imported here: few arrays have blocks that overlap.
    from zarrdask.parallel.graph.overlap.overlap import (
        axis_overlaps,
        dimension_names,
        in_blocks,
        overlapped,
    )

    names = None if selection.turn is not None else dimension_names(source)
    overlaps = axis_overlaps(depth, boundary, x.dtype, x.ndim, names)
    return overlapped(in_blocks(x, overlaps, chunks), overlaps, name=name)


def region_source(array: Array, region: Region, axes: tuple[int, ...] | None = None) -> ArrayRegion:
    """Return a region of a stored array as what tasks read; `axes` as in `ArrayRegion`."""
    check_visible(array.store)
    register()
    node, stored = array.node_path, chunks_of(array)
    stamp = node.version_stamp(array.metadata.format.documents)
    token = tokenize(node.store.identity.token, node.path, stamp, stored.documents, array.missing)
    return ArrayRegion(stored, region, axes, token)
