"""`plan_write`: plan a write by `to_zarr`."""

from dataclasses import replace
from typing import Any

import numpy as np

from zarrdask import config
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import check_options
from zarrdask.errors import NodeNotFoundError, NodeTypeError
from zarrdask.formats.metadata.array_options import ArrayOptions, GridLike
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.parallel.graph.placement import chunk_options, known_blocks, written_region
from zarrdask.parallel.graph.writing.write_job import as_dask_array
from zarrdask.parallel.plan.write_plan import WritePlan, plan_writes


def plan_write(
    x: Any,
    target: Any = None,
    region: Any = None,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    grid: GridLike = "regular",
    **create_kwargs: Any,
) -> WritePlan:
    """Plan a write by `to_zarr`: which task would write which chunk or shard, and why.

    Nothing is written, and no chunk is read. The plan prints as text; a notebook and its method
    `svg` show a drawing.

    Parameters
    ----------
    x : dask.array.Array, array_like, or an object with shape, dtype and chunks
        The array that would be stored. Chunks are lengths along each axis, or one length for all.
    target : Array, ArrayMetadata, str, os.PathLike, MutableMapping or Store, optional
        The stored array. If it does not exist, or if options of a new array are passed, the plan is
        for a new array.
    region : tuple of slice, or dict of names to slices, optional
        The region of the stored array that would be written, as in `to_zarr`.
    component : str, optional
        The path of the array within `target`.
    storage_options : dict, optional
        Options for fsspec, if `target` is a URL.
    grid : {"regular", "rectilinear"}, dict or ChunkGrid, default "regular"
        The chunk grid of a new array, as in `to_zarr`.
    **create_kwargs
        Options of a new array, as in `zarrdask.create_array`.

    Returns
    -------
    WritePlan
        The plan. ``plan.owner(index)`` is the block that writes a unit, and ``plan.unit(index)``
        has the reasons; other attributes are the written blocks, the number of units that are
        whole, merged and changed, and the tasks, moved bytes and memory that the write would take.

    Raises
    ------
    MetadataError, UnsupportedError
        If chunk sizes are unknown, or an option is wrong.
    NodeTypeError
        If `target` is a group.
    SelectionError
        If the region does not fit `x`.

    See Also
    --------
    to_zarr : Store a Dask array.

    Examples
    --------
    >>> import dask.array as da
    >>> plan = plan_write(da.ones((150, 4), chunks=50), chunks=(64, 4))
    >>> print(plan)
    array   (150, 4) float64, chunks or shards of 64 x 4
    stored  3 chunks or shards: 1 whole, 2 merged from several Dask blocks
    costs   3 PUT, about 6 KiB stored (before compression)
    tasks   3 write tasks; 6 tasks before to split and join blocks
    moved   1.31 KiB of 4.69 KiB move to another block
    memory  up to 10 KiB per task (block 2 KiB, chunk or shard 2 KiB)
    axis 0  3 x 50 become 2 x 64, 22
    axis 1  4 unchanged
    >>> plan.unit((1, 0)).why
    'Dask blocks meet in it along axis 0 at 100'
    """
    check_options(create_kwargs, plan_write, ArrayOptions)
    if getattr(x, "chunks", None) is None:
        x = as_dask_array(x)
    blocks = known_blocks(x.shape, x.chunks)
    existing = None
    if not (create_kwargs or grid != "regular" or target is None):
        if isinstance(target, ArrayMetadata):
            existing = target
        else:
            existing = _existing_metadata(locate_node(target, component, storage_options))
    metadata = existing
    if metadata is None:
        chunks = chunk_options(blocks, grid, create_kwargs)
        options = {"shape": x.shape, "dtype": x.dtype} | create_kwargs | chunks
        metadata = plan_array(ArrayOptions(**options))
    plan = plan_writes(
        blocks,
        np.dtype(x.dtype),
        metadata,
        written_region(tuple(x.shape), region, metadata),
        block_size=config.get("block-size"),
        keeps=existing is not None,
    )
    is_regular = metadata.grid.is_regular
    return replace(plan, encoded_size=metadata.pipeline.encoded_size if is_regular else None)


def _existing_metadata(node: NodePath) -> ArrayMetadata | None:
    """Return the metadata of an existing array; None if there is no node."""
    try:
        _, metadata = node.find()
    except NodeNotFoundError:
        return None
    if isinstance(metadata, ArrayMetadata):
        return metadata
    raise NodeTypeError(
        'expected an array but found a group; pass component="path/to/array"',
        key=node.location,
        found="group",
        expected="array",
    )
