"""``rechunk``: arrays rewritten with other chunks, codecs or format, in bounded memory."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import dask.array as da
import numpy as np

from zarrdask import config
from zarrdask.errors import MetadataError, NodeExistsError, SelectionError
from zarrdask.execution.executor import workers
from zarrdask.graph.dependencies import reads
from zarrdask.graph.placement import chunk_options, find_region
from zarrdask.graph.read import stored_type
from zarrdask.graph.write_job import known
from zarrdask.grids.base import Axis, Shape
from zarrdask.hierarchy.create import check_creation
from zarrdask.hierarchy.find import find_node
from zarrdask.hierarchy.journal import beside, is_begun
from zarrdask.hierarchy.path import join_path, key_prefix, locate_node, node_location
from zarrdask.hierarchy.resize import resized
from zarrdask.indexing.regions import cut_axis
from zarrdask.indexing.selection import Region, is_integer, region_shape, whole_region
from zarrdask.metadata import detect
from zarrdask.metadata.convert import Changes, convert, convert_group
from zarrdask.metadata.create import ArrayOptions, plan_array
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group
from zarrdask.nodes.group import open as open_node
from zarrdask.nodes.open import open_array
from zarrdask.nodes.options import check_options
from zarrdask.plan.rechunk import as_blocks, schemes
from zarrdask.plan.strategies import FAR, HANDED_FAR, HANDED_NEAR, NEAR, Costs, Grids
from zarrdask.plan.write import plan_writes
from zarrdask.rewrite.array_plan import Corner, RechunkPlan
from zarrdask.rewrite.group_plan import GroupPlan
from zarrdask.rewrite.move import way_between
from zarrdask.runtime.locks import place_of
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import ConsolidatedStore, plain
from zarrdask.storage.resolve import options_of_each


def rechunk(
    source: Any,
    target: Any,
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

    Nothing is written before the plan is executed.

    Parameters
    ----------
    source : str, os.PathLike, MutableMapping, Store, Array, Group or dask.array.Array
        What is read: an array, or a group, of which all arrays are rewritten. Blocks of a Dask
        array that have no unit in common are written as they are; others are stored first.
    target : str, os.PathLike, MutableMapping, Store or Group
        Where the new array, or group, is to be.
    chunks, shards : optional
        As in `zarrdask.create_array`. What isn't given stays as in the source; if only `chunks`
        are, there are no shards. Of a group: for all arrays, or a dict by their paths, in which
        None stands for those that are not named.
    max_mem : int or str
        Bytes by which each process may grow.
    temp : str, os.PathLike, MutableMapping or Store, optional
        Where passes leave what the next one reads; beside the target, if absent.
    overwrite : bool
        Whether an array that is there goes, when the plan is executed.
    source_region : tuple of slice, or dict of names to slices, optional
        Which part of the source array; all, if absent.
    append : int or str, optional
        An axis, by number or name, along which the target, an array that is there, grows: by
        `source_region`, or else by what the source has beyond the target's end.
    scheduler : optional
        What the plan will be executed on, as in `RechunkPlan.execute`.
    storage_options : dict, optional
        Options of fsspec for `source`, `target` and `temp`; a local path, which takes none, is
        left out.
    source_options, target_options, temp_options : dict, optional
        Options of fsspec for one of the three, instead of `storage_options`.
    **changes
        Other options of the new array: zarr_format, dtype, fill_value, codecs, compressors,
        filters, attributes, dimension_names, chunk_key_encoding.

    Returns
    -------
    RechunkPlan or GroupPlan
        It prints, draws itself, and is executed: ``plan.execute()``.

    Raises
    ------
    MetadataError, UnsupportedError
        If options don't fit, or `max_mem` is too small: the error names the smallest that works.
    NodeExistsError
        If something is there already, or the target lies in the source, or around it.
    SelectionError
        If the region does not fit the source, or what is appended the target.

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
    kind = ArrayOptions if isinstance(source, da.Array) else Changes
    check_options(changes, rechunk, kind)
    source_options, target_options, temp_options = options_of_each(
        storage_options, (source, source_options), (target, target_options), (temp, temp_options)
    )
    wanted = _Wanted(
        chunks,
        shards,
        config.parse_size(max_mem, "max_mem"),
        None if temp is None else locate_node(temp, None, temp_options),
        overwrite,
        scheduler,
        changes,
    )
    store, path = locate_node(target, None, target_options)
    if isinstance(target, Array | Group):
        target.check_writable()
    blocks = known(source) if isinstance(source, da.Array) else None
    if blocks is not None and append is None and source_region is None:
        return _of_blocks(blocks, store, path, wanted)
    if blocks is not None:
        raise MetadataError(
            "take the region of the Dask array; zarrdask.append adds it to an array",
            key="source_region" if append is None else "append",
        )
    found = open_node(source, storage_options=source_options, consolidated=False)
    if isinstance(found, Group):
        if source_region is not None or append is not None:
            raise MetadataError(
                "a group is rewritten as a whole",
                key="source_region" if append is None else "append",
                found=source_region if append is None else append,
            )
        return _of_group(found, store, path, wanted)
    if append is not None:
        return _longer(found, store, path, wanted, append, source_region)
    region = find_region(source_region, found.metadata)
    return _of_array(found, region, store, path, wanted)


@dataclass(frozen=True)
class _Wanted:
    """What a user may say of a rewrite, besides what is read and where it goes."""

    chunks: Any
    shards: Any
    memory: int
    temp: tuple[Store, str] | None
    overwrite: bool
    scheduler: Any
    changes: Mapping[str, Any]
    #: Of a group: the store as the hierarchy of the new one will see it, if what is there goes.
    view: Store | None = None

    def below(self, name: str, names: Collection[str]) -> "_Wanted":
        """Return what is wanted of one array of a group."""
        chunks, shards = (_of(given, name, names) for given in (self.chunks, self.shards))
        return replace(self, chunks=chunks, shards=shards)

    def temp_of(self, store: Store, path: str) -> Corner:
        """Return where passes leave what the next one reads."""
        if self.temp is None:
            where, prefix = beside(store, key_prefix(path))
            return where.beside(f"{prefix}packed/")
        where, above = self.temp
        # Others may have theirs there, too.
        name = sha256(_place(store, path).encode(errors="surrogateescape")).hexdigest()[:16]
        return where, f"{key_prefix(above)}.zarrdask-rewrite-{name}/"


def _of(given: Any, name: str, names: Collection[str]) -> Any:
    """Return what a user says of one array of a group: of all, or by their paths."""
    if not isinstance(given, Mapping):
        return given
    unknown = [key for key in given if key not in names and key is not None]
    if unknown:
        raise MetadataError("no such array", key="chunks", found=unknown, expected=f"{[*names]}")
    return given.get(name, given.get(None))


def _of_array(
    array: Array, region: Region, store: Store, path: str, wanted: _Wanted
) -> RechunkPlan:
    """Return the plan of a new array."""
    shards = wanted.shards
    if wanted.chunks is not None and shards is None and array.metadata.shard is not None:
        shards = False
    sized = array.metadata.resized(region_shape(region))
    metadata = convert(sized, chunks=wanted.chunks, shards=shards, **wanted.changes)
    detect.render(metadata)  # what can't be written must fail before anything is erased
    _check_apart(array, store, path)
    view = wanted.view or _prepared(store, path, metadata, overwrite=wanted.overwrite)
    return _plan(array, region, (store, view, path, metadata), (0,) * len(region), wanted)


def _of_blocks(x: da.Array, store: Store, path: str, wanted: _Wanted) -> RechunkPlan:
    """Return the plan of a new array that a Dask array is written to."""
    options = {**wanted.changes, "shards": wanted.shards, "chunks": wanted.chunks}
    options = {name: value for name, value in options.items() if value is not None}
    options = {**chunk_options(x.chunks, "regular", options), "dtype": stored_type(x)} | options
    metadata = plan_array(ArrayOptions(shape=x.shape, **options))
    if any(read.is_below(_place(store, path)) for read in reads([x])):
        raise NodeExistsError(
            "what is to be written is computed from what is there; write it elsewhere",
            key=node_location(store, path),
        )
    view = _prepared(store, path, metadata, overwrite=wanted.overwrite)
    where, prefix = wanted.temp_of(view, path)
    first = plan_array(
        ArrayOptions(
            shape=x.shape,
            dtype=stored_type(x),
            chunks=tuple(map(_plain, x.chunks)),
            compressors=None,
        )
    )
    array = Array(where, f"{prefix}blocks", first, "r+")
    place = store, view, path, metadata
    plan = _plan(array, whole_region(x.shape), place, (0,) * x.ndim, wanted)
    size = config.get("block-size")
    direct = plan_writes(x.chunks, x.dtype, metadata, plan.region, block_size=size).extra_tasks == 0
    schemes = (as_blocks(plan.grids, plan.costs),) if direct else plan.schemes
    return replace(plan, schemes=schemes, blocks=x)


def _plain(lengths: tuple[int, ...]) -> int | tuple[int, ...]:
    """Return the lengths of blocks along an axis; one if they are alike."""
    found = tuple(n for n in lengths if n) or (1,)
    alike = all(n == found[0] for n in found[:-1]) and found[-1] <= found[0]
    return found[0] if alike else found


def _longer(
    array: Array, store: Store, path: str, wanted: _Wanted, axis: int | str, region: Any
) -> RechunkPlan:
    """Return the plan of an array that grows."""
    target = open_array(store, path, mode="r+", consolidated=False)
    if wanted.chunks is not None or wanted.shards is not None or wanted.changes:
        raise MetadataError(
            "options of a new array make no sense for one that is there",
            key="append",
            found=sorted(wanted.changes) or ["chunks" if wanted.shards is None else "shards"],
        )
    _check_apart(array, store, path)
    at = _axis(axis, target.metadata)
    old = target.shape
    if region is None:
        new = slice(min(old[at], array.shape[at]), array.shape[at]) if at < array.ndim else slice(0)
        region = (*(slice(None),) * at, new)
    picks = find_region(region, array.metadata)
    added = region_shape(picks)
    if len(added) != len(old) or any(
        n != size for i, (n, size) in enumerate(zip(added, old, strict=True)) if i != at
    ):
        raise SelectionError(
            "what is appended does not fit the array", key="append", found=added, expected=f"{old}"
        )
    shape = (*old[:at], old[at] + added[at], *old[at + 1 :])
    start = tuple(old[at] if i == at else 0 for i in range(len(old)))
    metadata = resized(target.stored, shape).metadata
    grown = target.store, target.store, path, metadata
    return replace(_plan(array, picks, grown, start, wanted), along=at)


def _axis(axis: int | str, metadata: ArrayMetadata) -> int:
    names = metadata.dimension_names or ()
    if isinstance(axis, str) and names.count(axis) == 1:
        return names.index(axis)
    if is_integer(axis) and 0 <= int(axis) < len(metadata.shape):
        return int(axis)
    raise SelectionError(
        "no such axis", key="append", found=axis, expected=f"one of {list(names)} or a number"
    )


def _plan(
    array: Array,
    region: Region,
    target: tuple[Store, Store, str, ArrayMetadata],
    start: Shape,
    wanted: _Wanted,
) -> RechunkPlan:
    store, view, path, metadata = target
    part = any(start) or region != whole_region(array.shape)
    added = tuple(slice(n, s, 1) for n, s in zip(start, metadata.shape, strict=True))
    moves = None if part else way_between(array.metadata, metadata)
    opens = moves == "inner" and metadata.shard is None
    grids = Grids(
        region_shape(region),
        max(array.dtype.itemsize, metadata.dtype.itemsize),
        _cut(array.metadata.read_grid.axes, region),
        _cut(metadata.write_axes, added),
        moves,
        array.metadata.grid.axes if opens else None,
    )
    near = array.store.seekable and store.seekable
    with workers(wanted.scheduler) as on:
        costs = Costs(
            wanted.memory,
            on.threads,
            on.processes,
            NEAR if near else FAR,
            packs=not array.dtype.hasobject,
            copies=1 if near else 2,
            exchanges=on.client is not None,
            network=HANDED_NEAR if near else HANDED_FAR,
        )
    return RechunkPlan(
        grids=grids,
        costs=costs,
        schemes=tuple(schemes(grids, costs)),
        source=array,
        region=region,
        store=store,
        view=view,
        path=path,
        metadata=metadata,
        temp=wanted.temp_of(view, path),
        overwrite=wanted.overwrite,
        start=start,
    )


def _cut(axes: tuple[Axis, ...], region: Region) -> tuple[Axis, ...]:
    """Return the chunks of a region along each axis, as seen from where it begins."""
    return tuple(
        axis
        if isinstance(axis, int) and pick.start % max(axis, 1) == 0
        else np.array(cut_axis(axis, pick)) - pick.start
        for axis, pick in zip(axes, region, strict=True)
    )


def _check_apart(node: Array | Group, store: Store, path: str) -> None:
    """Check that what is written does not lie in what is read, nor the other way round."""
    one, other = _place(node.store, node.path), _place(store, path)
    if one.startswith(other) or other.startswith(one):
        raise NodeExistsError(
            "the target is the source, or lies in it, or around it; write it elsewhere",
            key=node_location(store, path),
            found=node_location(node.store, node.path),
        )


def _place(store: Store, path: str) -> str:
    return place_of(plain(store), key_prefix(path))


def _prepared(store: Store, path: str, metadata: ArrayMetadata, *, overwrite: bool) -> Store:
    """Return the store as the new array's hierarchy will see it, if it can be made.

    If there is a record, what is here may be the plan's own: that is looked at when it is executed.
    """
    begun = is_begun(store, key_prefix(path))
    return check_creation(store, path, metadata, overwrite=overwrite or begun)


def _of_group(group: Group, store: Store, path: str, wanted: _Wanted) -> GroupPlan:
    """Return the plan of a new group."""
    _check_apart(group, store, path)
    root = convert_group(group.metadata, wanted.changes.get("zarr_format"))
    begun = is_begun(store, key_prefix(path))
    view = check_creation(store, path, root, overwrite=wanted.overwrite or begun)
    # All of it goes, or is looked at when the plan is executed.
    wanted = replace(wanted, view=view if wanted.overwrite or begun else None)
    groups, plans = {"": root}, {}
    found = dict(group.walk())
    for name, node in found.items():
        if isinstance(node, Group):
            groups[name] = convert_group(node.metadata, root.zarr_format)
            detect.render(groups[name])
        else:
            region = find_region(None, node.metadata)
            plans[name] = _of_array(
                node, region, store, join_path(path, name), wanted.below(name, found)
            )
    held = find_node(group.store, group.path, consolidated="own")[0]
    consolidated = isinstance(held, ConsolidatedStore) and root.zarr_format in (2, 3)
    return GroupPlan(groups, plans, store, path, wanted.overwrite, consolidated)
