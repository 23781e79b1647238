"""`plan_read`: plan what reading a Dask array or a stored array would fetch and decode."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from dask.base import is_dask_collection

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.arrays.nodes.open import open_array
from zarrdask.errors import SelectionError, ZarrdaskError
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.selection import Region, basic, index_by_name, is_basic
from zarrdask.parallel.execution.dask_private import Task, convert_legacy_graph
from zarrdask.parallel.graph.dependencies import reads_of
from zarrdask.parallel.graph.encoded_sizes import EncodedSizes
from zarrdask.parallel.graph.fuse.optimization import unfused_tasks
from zarrdask.parallel.plan.read_plan import ArrayReads, ReadPlan
from zarrdask.parallel.plan.request_costs import RequestCosts

#: The most objects and chunks whose sizes are looked up.
_MAX_SIZED_UNITS, _MAX_SIZED_CHUNKS = 10_000, 2**20


def plan_read(
    x: Any,
    region: Any = None,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
) -> ReadPlan:
    """Plan a read: which chunks would be decoded, how often, and by how many requests.

    Only metadata is read; on a local disk and in memory, also the sizes of up to 10,000 stored
    objects, and the shard indexes. The headers of large Blosc chunks that are read in parts are
    read, too, in remote stores only if there are at most 64. The plan prints as text; a notebook
    and its method `svg` show a drawing. The tasks of a Dask array are counted after its
    optimisation; chunks that several tasks decode are a reason to choose other blocks
    (``from_zarr(..., chunks=...)``) or other chunks (`rechunk`).

    Parameters
    ----------
    x : dask.array.Array, Array, str, os.PathLike, MutableMapping, Store or Group
        A Dask array (or xarray's object with Dask arrays) that is computed from stored arrays; or a
        stored array, which is read without Dask.
    region : basic index, or dict of names of dimensions to integers and slices, optional
        The part of `x` that would be read. Only stored arrays take a dict. An xarray Dataset takes
        none: select by its methods.
    component : str, optional
        The path of the array within `x`, if `x` is a URL, a path or a store.
    storage_options : dict, optional
        Options for fsspec, if `x` is a URL.

    Returns
    -------
    ReadPlan
        The plan: for each stored array the number of objects, requests, chunks and bytes.

    Raises
    ------
    SelectionError
        If the region is not a basic index, or does not fit.
    NodeNotFoundError, NodeTypeError, MetadataError, UnsupportedError
        As in `zarrdask.open_array`.

    See Also
    --------
    plan_write : Plan a write by `to_zarr`.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=(100, 90), dtype="f8", chunks=(10, 90))
    >>> z[...] = 1
    >>> plan = plan_read(zarrdask.from_zarr(z, chunks=(15, 90))[:, 0])
    >>> plan.requests, plan.repeated, plan.amplification
    (13, 3, 117.0)
    """
    if region is not None and not isinstance(region, Mapping) and not is_basic(region):
        raise SelectionError(
            "only a basic index can be planned: integers, slices, '...' and None", found=region
        )
    if is_dask_collection(x):
        return _plan_of(x if region is None else x[region])
    array = open_array(x, component, storage_options=storage_options)
    if isinstance(region, Mapping):
        region = index_by_name(region, array.dimension_names)
    selection = basic(() if region is None else region, array.shape)
    return ReadPlan((_reads(chunks_of(array), [selection.slices]),))


def _plan_of(x: Any) -> ReadPlan:
    """Return the plan of computing a Dask collection."""
    graph = convert_legacy_graph(unfused_tasks(x))
    regions: dict[str, tuple[StoredChunks, list[Region]]] = {}
    for node in graph.values():
        if isinstance(node, Task):
            for read in reads_of([node], graph):
                regions.setdefault(read.canonical_location, (read.stored, []))[1].append(
                    read.region
                )
    return ReadPlan(tuple(_reads(chunks, parts) for chunks, parts in regions.values()))


def _reads(chunks: StoredChunks, regions: list[Region]) -> ArrayReads:
    metadata = chunks.metadata
    ordered = sorted(regions, key=lambda region: [pick.start for pick in region])
    reads = ArrayReads(
        chunks.location, metadata, metadata.read_grid.axes, metadata.grid.axes, tuple(ordered)
    )
    sizes = _sizes(chunks, reads)
    return replace(reads, sizes=sizes, sent=_sent(chunks, reads, sizes))


def _sent(chunks: StoredChunks, reads: ArrayReads, sizes: np.ndarray | None) -> RequestCosts | None:
    """Return the requests for parts of shards and chunks; None if all chunks are read whole.

    The index of a shard, and the first bytes of a chunk, say where its parts are.
    """
    units = reads.units(_MAX_SIZED_UNITS)
    encoded = EncodedSizes(
        chunks, None if units is None else _unit_sizes(chunks, reads, units, sizes)
    )
    is_sharded = chunks.metadata.shard is not None
    if units is None or not encoded.reads_parts or (is_sharded and sizes is None):
        return None
    if not encoded.are_planned(reads.overlapped_units, len(units)):
        return None
    total = RequestCosts({"GET": 0}, 0)
    try:
        for region in reads.regions:
            total += encoded.read(region)
    except (ZarrdaskError, OSError):
        return None  # a plan does not fail because of what is wrong with the store
    return total


def _unit_sizes(
    chunks: StoredChunks, reads: ArrayReads, units: set[Index], sizes: np.ndarray | None
) -> dict[Index, int] | None:
    """Return the sizes of stored units; chunks that are not stored are left out."""
    if chunks.metadata.shard is not None:
        return dict.fromkeys(units, 0)
    if sizes is None:
        return None
    unit_sizes = ((unit, int(sizes[reads.cell(unit)])) for unit in units)
    return {unit: size for unit, size in unit_sizes if size >= 0}


def _sizes(chunks: StoredChunks, reads: ArrayReads) -> np.ndarray | None:
    """Return the stored bytes of the chunks that are read, or None if that would take long."""
    units = reads.units(_MAX_SIZED_UNITS) if chunks.store.capabilities.is_listed_fast else None
    lengths = [high - low + 1 for low, high in reads.box]
    if units is None or prod(lengths) > _MAX_SIZED_CHUNKS or chunks.metadata.transformers:
        return None
    sizes = np.full(lengths, -1)
    try:
        for first, part in StoredUnits(chunks).chunk_sizes(sorted(units)):
            starts = [at - low for at, (low, _) in zip(first, reads.box, strict=True)]
            box = tuple(
                slice(max(at, 0), max(at + n, 0)) for at, n in zip(starts, part.shape, strict=True)
            )
            inside = tuple(
                slice(max(-at, 0), max(-at, 0) + n)
                for at, n in zip(starts, sizes[box].shape, strict=True)
            )
            sizes[box] = part[inside]
    except (ZarrdaskError, OSError):
        return None  # a plan does not fail because of what is wrong with the store
    return sizes
