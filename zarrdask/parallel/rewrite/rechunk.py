"""``rechunk``: arrays rewritten with other chunks, codecs or format, in bounded memory."""

from typing import Any, Protocol, TypedDict, Unpack, overload

import dask.array as da

from zarrdask import config
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import check_options, checks_booleans
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.open_group import open as open_node
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.convert import Changes
from zarrdask.parallel.execution.executor import workers
from zarrdask.parallel.graph.writing.write_job import as_dask_array, is_labelled
from zarrdask.parallel.rewrite.array_plan import RechunkPlan
from zarrdask.parallel.rewrite.group_plan import GroupPlan, plan_group
from zarrdask.parallel.rewrite.node_plan import locate_target
from zarrdask.parallel.rewrite.planning import (
    RechunkOptions,
    plan_append,
    plan_from_dask,
    plan_new_array,
)
from zarrdask.storage.resolve import options_of_each


class _DaskArray(Protocol):
    """A Dask array, also where type checkers can't import Dask."""

    @property
    def numblocks(self) -> Any:
        """The number of blocks along each axis."""


class RechunkArguments(TypedDict, total=False):
    """The keyword arguments of `rechunk`, for type checkers; see there."""

    component: str | None
    chunks: Any
    shards: Any
    max_mem: int | str
    temp: Any
    overwrite: bool
    source_region: Any
    append: int | str | None
    scheduler: Any
    storage_options: dict[str, Any] | None
    source_options: dict[str, Any] | None
    target_options: dict[str, Any] | None
    temp_options: dict[str, Any] | None
    zarr_format: Any
    dtype: Any
    fill_value: Any
    codecs: Any
    compressors: Any
    filters: Any
    attributes: Any
    dimension_names: Any
    chunk_key_encoding: Any


@overload
def rechunk(
    source: Array | _DaskArray, target: Any, **arguments: Unpack[RechunkArguments]
) -> RechunkPlan: ...


@overload
def rechunk(source: Group, target: Any, **arguments: Unpack[RechunkArguments]) -> GroupPlan: ...


@overload
def rechunk(
    source: Any, target: Any, **arguments: Unpack[RechunkArguments]
) -> RechunkPlan | GroupPlan: ...


@checks_booleans
def rechunk(
    source: Any,
    target: Any,
    component: str | None = None,
    *,
    chunks: Any = None,
    shards: Any = None,
    max_mem: int | str = "256 MiB",
    temp: Any = None,
    overwrite: bool = False,
    source_region: Any = None,
    append: int | str | None = None,
    scheduler: Any = None,
    storage_options: dict[str, Any] | None = None,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
    temp_options: dict[str, Any] | None = None,
    **changes: Any,
) -> RechunkPlan | GroupPlan:
    """Plan to rewrite stored arrays with other chunks, codecs, data type or format.

    Nothing is written before the plan is executed: ``plan.execute()``.

    Parameters
    ----------
    source : URL, Store, Array, Group, dask.array.Array or xarray object
        The array to read, or a group: then all its arrays are rewritten. A URL is a str,
        os.PathLike, MutableMapping or Store. If each chunk or shard of the target lies in one block
        of a Dask array, the blocks are written directly; otherwise they are stored first, and
        rewritten from there. The variables of a Dataset, DataArray or DataTree become the arrays of
        a group: unchanged variables that zarrdask's engine opened are rewritten in their stored
        form; the others are computed and encoded.
    target : str, os.PathLike, MutableMapping, Store or Group
        The location of the new array or group.
    component : str, optional
        The path of the new node within `target`.
    chunks, shards : int, str, sequence or mapping, optional
        As in `zarrdask.create_array`, also by dimension: ``{"time": -1, "lat": 30}``. The default
        is the length in the source, also for an axis whose length is None or not in the dict; with
        `chunks` alone, the new array has no shards. For a group: one value for all arrays, or a
        dict, from which each array takes the dimensions that it has. The other keys of that dict
        are paths, such as ``"/time"`` for the array of that name, with chunks for one array; and
        None, with chunks for all arrays without another key in the dict.
    max_mem : int or str, default "256 MiB"
        The bytes by which each process may grow.
    temp : str, os.PathLike, MutableMapping or Store, optional
        The location of temporary objects between passes. The default is beside the target.
    overwrite : bool, default False
        Whether a node at the target is removed when the plan is executed. Otherwise it
        raises an error.
    source_region : tuple of slice, or dict of str to slice, optional
        The part of the source array to read, by axis or by dimension name. The default is all.
    append : int or str, optional
        The axis, by number or dimension name, along which the target grows. The target must exist
        then. The new elements are `source_region`, or by default the elements of the source beyond
        the target's end.
    scheduler : str or Client, optional
        The scheduler that will execute the plan, as in `RechunkPlan.execute`.
    storage_options : dict, optional
        Options of fsspec for `source`, `target` and `temp`. A local path takes none, and is
        exempt.
    source_options, target_options, temp_options : dict, optional
        Options of fsspec for one of the three, instead of `storage_options`.
    **changes
        Other properties of the new array: ``zarr_format``, ``dtype``, ``fill_value``, ``codecs``,
        ``compressors``, ``filters``, ``attributes``, ``dimension_names``,
        ``chunk_key_encoding``.

    Returns
    -------
    RechunkPlan or GroupPlan
        The plan prints, is drawn in notebooks, and has a method `execute`. Type checkers infer
        which of the two it is if `source` is an array or a group, but not from its URL.

    Raises
    ------
    MetadataError, UnsupportedError
        If options do not fit together, or if `max_mem` is too small: the error names the smallest
        value that works.
    NodeExistsError
        If there is a node at the target, or if the target lies in the source or around it.
    SelectionError
        If the region does not fit the source, or the appended elements do not fit the target.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrdask
    >>> root = zarrdask.create_group({})
    >>> z = root.create_array("z", shape=(4, 4), dtype="i4", chunks=(1, 4))
    >>> z[...] = np.arange(16).reshape(4, 4)
    >>> zarrdask.rechunk(z, {}, chunks=(4, 1)).execute(progress=False).chunks
    (4, 1)
    """
    check_options(changes, rechunk, ArrayOptions if isinstance(source, da.Array) else Changes)
    of_source, of_target, of_temp = options_of_each(
        storage_options, (source, source_options), (target, target_options), (temp, temp_options)
    )
    memory = config.parse_size(max_mem, "max_mem")
    workspace = None if temp is None else locate_node(temp, None, of_temp)
    target_node = locate_target(target, component, of_target)
    if (
        append is None
        and changes.get("zarr_format") is None
        and (above := target_node.format_above())
    ):
        changes["zarr_format"] = above
    selects = {"source_region": source_region, "append": append}
    if source_options is not None and (isinstance(source, da.Array) or is_labelled(source)):
        raise MetadataError(
            "the source is open already; pass its options where it is opened",
            key="source_options",
            found=sorted(source_options),
        )
    with workers(scheduler) as on:
        options = RechunkOptions(chunks, shards, memory, workspace, overwrite, on, changes)
        if isinstance(source, da.Array):
            _check_whole(
                selects,
                "index the Dask array instead of passing source_region; zarrdask.append appends a "
                "Dask array to a stored array",
            )
            return plan_from_dask(as_dask_array(source), target_node, options)
        if is_labelled(source):
            _check_whole(selects, "select by the source itself, such as ds.isel(time=slice(9))")
            return _plan_labelled(source, target_node, options)
        node = open_node(source, storage_options=of_source, consolidated=False)
        if isinstance(node, Group):
            _check_whole(selects, "a group is rewritten as a whole; pass one of its arrays instead")
            return plan_group(node, target_node, options)
        if append is not None:
            return plan_append(node, source_region, target_node, append, options)
        return plan_new_array(node, source_region, target_node, options)


def _plan_labelled(source: Any, target_node: NodePath, options: RechunkOptions) -> GroupPlan:
    """Return the plan to write an object of xarray, which zarrdask's accessor of it makes."""
    accessor = getattr(source, "zarrdask", None)
    if accessor is None:
        raise UnsupportedError(
            "objects of xarray are rewritten by zarrdask.xarray; import zarrdask.xarray first",
            key="source",
            found=type(source).__name__,
        )
    plan: GroupPlan = accessor.plan_rechunk(target_node, options)
    return plan


def _check_whole(selects: dict[str, Any], message: str) -> None:
    """Check that neither a region nor an axis is passed with a source that has no use for them."""
    for name, value in selects.items():
        if value is not None:
            raise MetadataError(message, key=name, found=value)
