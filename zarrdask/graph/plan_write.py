"""`plan_write`: what `to_zarr` would do."""

from typing import Any

import numpy as np

from zarrdask import config
from zarrdask.errors import NodeNotFoundError, NodeTypeError
from zarrdask.graph.placement import chunk_options, find_place, known_blocks
from zarrdask.hierarchy.find import find_node
from zarrdask.hierarchy.path import locate_node, node_location
from zarrdask.metadata.chunking import GridLike
from zarrdask.metadata.create import plan_array
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.metadata.options import ArrayOptions
from zarrdask.nodes.options import check_options
from zarrdask.plan.write import WritePlan, plan_writes
from zarrdask.storage.base import Store


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
    """Return which task of `to_zarr` would write which stored unit, and why. Nothing is written.

    The plan prints, and draws itself: in a notebook, or by its method `svg`.

    Parameters
    ----------
    x : dask.array.Array, or anything with shape, dtype and chunks
        What would be stored. Chunks are lengths along each axis, or one length for all.
    target : Array, ArrayMetadata, str, os.PathLike, MutableMapping or Store, optional
        Where to: a stored array, as it is. If there is none yet, or if options are given, it is
        a new one.
    region : tuple of slice, or dict of names to slices, optional
        Which part of the stored array, as in `to_zarr`.
    component, storage_options
        As in `to_zarr`.
    grid, **create_kwargs
        Options of a new array, as in `to_zarr`.

    Returns
    -------
    WritePlan
        It names the owner of each unit: ``plan.owner(index)``, or with the reasons
        ``plan.unit(index)``; it has the blocks that are written, how many units are whole, merged
        and changed, and what that costs in tasks, bytes moved, and memory.

    Raises
    ------
    MetadataError, UnsupportedError
        If sizes are unknown, or an option is wrong.
    NodeTypeError
        If a group is there.
    SelectionError
        If the region does not fit `x`.

    Examples
    --------
    >>> import dask.array as da
    >>> plan = plan_write(da.ones((150, 4), chunks=50), chunks=(64, 4))
    >>> print(plan)
    array   (150, 4) float64, in units of 64 x 4
    units   3: 1 whole, 2 merged from several Dask blocks
    tasks   3 tasks write; 6 more cut and join blocks before
    moved   1.31 KiB of 4.69 KiB move to another block
    memory  at most 10 KiB a task (block 2 KiB, unit 2 KiB)
    axis 0  3 x 50 become 2 x 64, 22
    axis 1  4 stay
    >>> plan.unit((1, 0)).why
    'Dask blocks meet in it along axis 0 at 100'
    """
    check_options(create_kwargs, plan_write, ArrayOptions)
    blocks = known_blocks(x.shape, x.chunks)
    found = None
    if not (create_kwargs or grid != "regular" or target is None):
        if isinstance(target, ArrayMetadata):
            found = target
        else:
            found = _stored(*locate_node(target, component, storage_options))
    metadata = found or _new(x, chunk_options(blocks, grid, create_kwargs) | create_kwargs)
    place = find_place(tuple(x.shape), region, metadata)
    return plan_writes(
        blocks,
        np.dtype(x.dtype),
        metadata,
        place,
        block_size=config.get("block-size"),
        keeps=found is not None,
    )


def _new(x: Any, options: dict[str, Any]) -> ArrayMetadata:
    """Return the metadata of a new array."""
    return plan_array(ArrayOptions(**{"shape": x.shape, "dtype": x.dtype} | options))


def _stored(store: Store, path: str) -> ArrayMetadata | None:
    """Return the metadata of the array that is there, if there is one."""
    try:
        _, found = find_node(store, path)
    except NodeNotFoundError:
        return None
    if isinstance(found, ArrayMetadata):
        return found
    raise NodeTypeError(
        "a group is here", key=node_location(store, path), found="group", expected="array"
    )
