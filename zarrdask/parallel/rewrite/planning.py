"""Plans to rewrite one array: from a stored array, from a Dask array, or onto an existing array."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import dask.array as da

from zarrdask import config
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.fetch_chunks import divided_axes
from zarrdask.arrays.hierarchy.changes.append import appended
from zarrdask.arrays.hierarchy.changes.recorded import check_begun
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.open import open_array
from zarrdask.errors import MetadataError, NodeExistsError
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.indexing.selection import (
    Region,
    axis_number,
    find_region,
    region_shape,
    whole_region,
)
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.convert import convert
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.parallel.execution.executor import Workers
from zarrdask.parallel.graph.dependencies import Inputs
from zarrdask.parallel.graph.placement import chunk_options
from zarrdask.parallel.graph.stored_array import data_type_of
from zarrdask.parallel.plan.rechunk_strategies import as_blocks, schemes
from zarrdask.parallel.plan.strategies import Costs, Grids
from zarrdask.parallel.plan.write_plan import plan_writes
from zarrdask.parallel.rewrite.array_plan import RechunkPlan
from zarrdask.parallel.rewrite.copying.move import encoded_transfer
from zarrdask.parallel.rewrite.destination import Destination, KeyPrefix
from zarrdask.parallel.rewrite.member_lengths import check_member_lengths, lengths_of_member
from zarrdask.parallel.rewrite.node_plan import check_apart


@dataclass(frozen=True)
class RechunkOptions:
    """The options of a plan that apply to every kind of source; see `zarrdask.rechunk`.

    Each process may grow by `memory` bytes, and `on` are the workers that will execute the plan.
    """

    chunks: Any
    shards: Any
    memory: int
    temp: NodePath | None
    overwrite: bool
    on: Workers
    changes: Mapping[str, Any]

    def of_member(self, path: str, metadata: ArrayMetadata) -> "RechunkOptions":
        """Return the options of one array of a group."""
        chunks = lengths_of_member(self.chunks, path, metadata)
        shards = lengths_of_member(self.shards, path, metadata)
        return replace(self, chunks=chunks, shards=shards)

    def check_members(self, arrays: Mapping[str, ArrayMetadata]) -> None:
        """Check that chunks and shards are for arrays or dimensions of the group."""
        check_member_lengths("chunks", self.chunks, arrays)
        check_member_lengths("shards", self.shards, arrays)

    def converted(self, metadata: ArrayMetadata) -> ArrayMetadata:
        """Return the metadata of the new array from the metadata of the source."""
        shards = self.shards
        if self.chunks is not None and shards is None and metadata.shard is not None:
            shards = False  # the old shards need not fit the new chunks
        return convert(metadata, chunks=self.chunks, shards=shards, **self.changes)

    def temp_of(self, node: NodePath) -> KeyPrefix:
        """Return the store and the key prefix for the temporary objects of an array."""
        if self.temp is None:
            return node.workspace()
        # Several plans may use the same location at a time.
        location = node.canonical_location.encode(errors="surrogateescape")
        name = sha256(location).hexdigest()[:16]
        return self.temp.store, f"{self.temp.prefix}.zarrdask-rewrite-{name}/"


def plan_new_array(
    array: Array, source_region: Any, node: NodePath, options: RechunkOptions
) -> RechunkPlan:
    """Return the plan to write a region of a stored array to a new array."""
    region = find_region(source_region, array.shape, array.dimension_names, "source_region")
    metadata = options.converted(array.metadata.resized(region_shape(region)))
    check_apart(array.node_path, node, replaces=True)
    _, view = check_begun(node, metadata, overwrite=options.overwrite)
    target = Destination.new(node, view, metadata)
    return plan_target(array, region, target, options)


def plan_from_dask(x: da.Array, node: NodePath, options: RechunkOptions) -> RechunkPlan:
    """Return the plan to write a Dask array to a new array."""
    names = {**options.changes, "shards": options.shards, "chunks": options.chunks}
    changes = {name: value for name, value in names.items() if value is not None}
    lengths = chunk_options(x.chunks, "regular", changes)
    changes = {"dtype": data_type_of(x), **changes, **lengths}
    metadata = plan_array(ArrayOptions(shape=x.shape, **changes))
    if Inputs([x]).are_below(node.canonical_location):
        raise NodeExistsError(
            "the source reads the array that would be overwritten; write to another location",
            key=node.location,
        )
    _, view = check_begun(node, metadata, overwrite=options.overwrite)
    return plan_blocks(x, Destination.new(node, view, metadata), options, data_type_of(x))


def plan_blocks(
    x: da.Array, target: Destination, options: RechunkOptions, data_type: Any
) -> RechunkPlan:
    """Return the plan to write a Dask array to a target; its elements have the `data_type`."""
    temp_store, prefix = options.temp_of(target.view)
    blocks = plan_array(
        ArrayOptions(
            shape=x.shape,
            dtype=data_type,
            chunks=tuple(map(_block_lengths, x.chunks)),
        )
    )
    array = Array(NodePath(temp_store, f"{prefix}blocks"), blocks, "r+", missing="fill")
    plan = plan_target(array, whole_region(x.shape), target, options)
    size = config.get("block-size")
    writes = plan_writes(x.chunks, x.dtype, target.metadata, plan.region, block_size=size)
    strategies = plan.schemes if writes.extra_tasks else (as_blocks(plan.grids, plan.costs),)
    return replace(plan, schemes=strategies, blocks=x)


def _block_lengths(lengths: tuple[int, ...]) -> int | tuple[int, ...]:
    """Return the lengths of blocks along an axis: one number if the blocks are alike."""
    lengths = tuple(n for n in lengths if n) or (1,)
    alike = all(n == lengths[0] for n in lengths[:-1]) and lengths[-1] <= lengths[0]
    return lengths[0] if alike else lengths


def plan_append(
    array: Array,
    source_region: Any,
    node: NodePath,
    axis: int | str,
    options: RechunkOptions,
) -> RechunkPlan:
    """Return the plan to append elements of a stored array to an existing array."""
    target = open_array(*node, mode="r+", consolidated=False)
    if options.chunks is not None or options.shards is not None or options.changes:
        raise MetadataError(
            "append= extends an existing array, whose chunks, codecs and type can't change; leave "
            "these options out",
            key="append",
            found=sorted(options.changes) or ["chunks" if options.shards is None else "shards"],
        )
    check_apart(array.node_path, node, replaces=True)
    along = axis_number(axis, target.ndim, target.dimension_names, "append")
    if source_region is None:
        length = array.shape[along] if along < array.ndim else 0
        beyond = slice(min(target.shape[along], length), length)
        source_region = (*(slice(None),) * along, beyond)
    region = find_region(source_region, array.shape, array.dimension_names, "source_region")
    grown, added = appended(chunks_of(target), region_shape(region), along)
    start = tuple(pick.start for pick in added)
    longer = Destination(target.node_path, target.node_path, grown.metadata, start, along)
    return plan_target(array, region, longer, options)


def plan_target(
    array: Array, region: Region, target: Destination, options: RechunkOptions
) -> RechunkPlan:
    """Return the plan to write a region of a stored array to a target, with its strategies."""
    metadata, start = target.metadata, target.start
    Casting.chosen().check(array.dtype, metadata.dtype, target.view)
    is_part = any(start) or region != whole_region(array.shape)
    added = tuple(slice(n, n + s, 1) for n, s in zip(start, region_shape(region), strict=True))
    # Encoded chunks are copied without a look at those that are missing.
    decodes = is_part or array.missing == "error"
    transfer = None if decodes else encoded_transfer(array.metadata, metadata)
    unpacks_shards = transfer == "inner" and metadata.shard is None
    grids = Grids(
        max(array.dtype.itemsize, metadata.dtype.itemsize),
        _axes_within(array.metadata.read_grid.axes, region),
        _axes_within(metadata.grid.axes, added),
        transfer,
        array.metadata.grid.axes if unpacks_shards else None,
        None if transfer else divided_axes(chunks_of(array), region),
        holders_of(array.metadata, region),
    )
    costs = Costs(
        options.memory,
        options.on.threads,
        options.on.processes,
        packs=not array.dtype.hasobject,
        exchanges=options.on.client is not None,
    ).for_stores([array.store, target.node.store])
    return RechunkPlan(
        grids=grids,
        costs=costs,
        schemes=tuple(schemes(grids, costs)),
        source=array,
        region=region,
        target=target,
        temp=options.temp_of(target.view),
        overwrite=options.overwrite,
    )


def holders_of(metadata: ArrayMetadata, region: Region) -> tuple[Axis, ...] | None:
    """Return the shards of a region along each axis; None if there are none."""
    return None if metadata.shard is None else _axes_within(metadata.grid.axes, region)


def _axes_within(axes: tuple[Axis, ...], region: Region) -> tuple[Axis, ...]:
    """Return the chunks of a region along each axis, counted from where the region begins."""
    return tuple(axis.part(pick) for axis, pick in zip(axes, region, strict=True))
