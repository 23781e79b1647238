"""``rechunked``: other blocks of a Dask array, through temporary objects where they are needed.

The tasks of a packed pass (see `passes`) and those that read its pieces are parts
of one graph: each block depends on the tasks that pack its pieces.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.array import core
from dask.highlevelgraph import HighLevelGraph

from zarrdask import config
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.fetch_chunks import divided_axes
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeTypeError, UnsupportedError
from zarrdask.formats.grids.axis import Axis, Uneven, edges_of
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.parallel.execution.dask_private import Task, TaskRef
from zarrdask.parallel.execution.executor import check_reached, workers
from zarrdask.parallel.execution.expressions import as_users_array
from zarrdask.parallel.execution.workspace import Slot
from zarrdask.parallel.graph.blocks import normal_blocks
from zarrdask.parallel.graph.fuse.limits import FuseLimits
from zarrdask.parallel.graph.stored_array import source_of
from zarrdask.parallel.graph.writing.write_job import as_dask_array
from zarrdask.parallel.plan.align import Chunks
from zarrdask.parallel.plan.owned_regions import Cutting
from zarrdask.parallel.plan.rechunk_strategies import packing
from zarrdask.parallel.plan.strategies import Costs, Grids, Stage
from zarrdask.parallel.rewrite.array_plan import SharedPass
from zarrdask.parallel.rewrite.passes import (
    ArrayTiles,
    PackedRegions,
    RegionBuffer,
    RegionReader,
    TaskContext,
    WholeBuffer,
)
from zarrdask.parallel.rewrite.planning import holders_of
from zarrdask.parallel.rewrite.temporary import TemporaryPrefix
from zarrdask.runtime.system import after_fork

_ADVICE = (
    "compute again while the process that called zarrdask.rechunked uses the array, with a URL "
    "that all workers see as temp="
)


def rechunked(
    x: da.Array,
    chunks: Any,
    *,
    temp: Any = None,
    max_mem: int | str = "256 MiB",
    temp_options: dict[str, Any] | None = None,
) -> da.Array:
    """Return a Dask array with other blocks, which are exchanged through a temporary store.

    Nothing is computed now. If `x` is read from a stored array, and reading each new block by
    itself is cheaper, the result is that read, and nothing is stored. Otherwise the tasks of the
    result first pack the pieces of the new blocks into few temporary objects, and then read them.
    For any number of blocks, only a few are in memory at a time.

    Parameters
    ----------
    x : dask.array.Array
        The array, from `from_zarr` or any other.
    chunks : int, str, tuple or dict
        The new blocks in any form that Dask accepts: ``(876, 18, 36)``, ``{0: -1}``. For an array
        from `from_zarr`, the keys of a dict may be names of dimensions.
    temp : str, os.PathLike, MutableMapping, Store or Group, optional
        The location of temporary objects, which all workers must see; they get a folder of their
        own there. The default is the setting ``temporary-directory`` of Dask, or the directory of
        the system for temporary files. See the notes.
    max_mem : int or str, default "256 MiB"
        The bytes by which each process may grow while it packs pieces. Blocks that Dask keeps in
        memory are not included.
    temp_options : dict, optional
        Options of fsspec for `temp`.

    Returns
    -------
    dask.array.Array
        The array with the new blocks, not computed.

    Raises
    ------
    MetadataError
        If the chunks do not fit the array, or if `max_mem` is too small: the error names the
        smallest value that works.
    NodeTypeError
        If `x` is not an array.
    StoreError
        If `temp` is in memory and the workers of the current client are other processes.
    UnsupportedError
        If elements have no fixed size and `x` is not read from a stored array.

    Notes
    -----
    Temporary objects take as many bytes as the array in memory. Each computation writes them. They
    belong to this process, and are erased when neither the result nor anything derived from it is
    in use here, and when it exits; objects of a killed process when `rechunked` is called again
    with the same `temp`, at once on the same machine, or else after a week. A pickled copy can be
    computed in another process as long as this one uses the result. Once this process has ended,
    that raises an error, and leaves no objects.

    See Also
    --------
    rechunk : Store an array with other chunks.

    Examples
    --------
    >>> import dask.array as da
    >>> import zarrdask
    >>> x = da.ones((8, 6), chunks=(1, 6))
    >>> y = zarrdask.rechunked(x, (8, 2))
    >>> y.chunks, float(y.sum().compute())
    (((8,), (2, 2, 2)), 48.0)
    """
    if not hasattr(x, "shape"):
        raise NodeTypeError(
            "only an array can have other blocks; zarrdask.from_zarr(url) returns a stored one",
            key="x",
            found=x,
            expected="a Dask array",
        )
    memory = config.parse_size(max_mem, "max_mem")
    root = None if temp is None else locate_node(temp, None, temp_options)
    return as_users_array(_exchanged(as_dask_array(x, may_be_masked=True), chunks, memory, root))


def _exchanged(x: da.Array, chunks: Any, memory: int, root: NodePath | None) -> da.Array:
    """Return an array with other blocks, in the cheapest of the ways that give it these."""
    names = x.source.metadata.dimension_names if (is_stored := _is_stored(x)) else None
    blocks = normal_blocks(chunks, x.shape, x.dtype, names, x.chunks)
    if blocks == x.chunks:
        return x
    if not x.size or (not is_stored and _is_local(x.chunks, blocks)):
        return x.rechunk(blocks)
    if type(x._meta) is not np.ndarray:
        raise UnsupportedError(
            "only Dask arrays of NumPy arrays can be exchanged through a store; use x.rechunk",
            key="x",
            found=type(x._meta).__name__,
        )
    if x.dtype.hasobject and not is_stored:
        raise UnsupportedError(
            "elements without a fixed size can't be stored as temporary objects; use x.rechunk, "
            "or store the array and rechunk it",
            key="x",
            found=x.dtype,
        )
    stores = [] if root is None else [root.store]
    if is_stored:
        stores.append(x.source.stored.units)
    with workers() as on:
        if root is not None:
            check_reached(on, root.store)
        costs = Costs(memory, on.threads, on.processes, packs=not x.dtype.hasobject)
        costs = costs.for_stores(stores)
    if is_stored:
        stages = _plan_stored(x.source, blocks, costs)
        if not stages:
            return x.in_blocks(blocks)
    else:
        x, stages = _plan_blocks(x, blocks, costs)
    return _packed(x, blocks, stages, TemporaryPrefix.create(root))


def _is_stored(x: da.Array) -> bool:
    """Whether an array is read as it is from a region of a stored array with all its axes."""
    source = source_of(x)
    if source is None:
        return False
    return source.ndim == len(source.region) and all(pick.step == 1 for pick in source.region)


def _is_local(old: Chunks, new: Chunks) -> bool:
    """Whether all new blocks consist of whole old ones, or are parts of one: Dask's own case."""
    axes = [
        ({*edges_of(a).tolist()}, {*edges_of(b).tolist()}) for a, b in zip(old, new, strict=True)
    ]
    return all(b <= a for a, b in axes) or all(a <= b for a, b in axes)


def _axes(chunks: Chunks) -> tuple[Axis, ...]:
    """Return the blocks along each axis, but those without elements."""
    edges = [np.unique(edges_of(lengths)) for lengths in chunks]
    return tuple(Uneven(int(each[-1]), each) for each in edges)


def _plan_stored(source: ArrayRegion, blocks: Chunks, costs: Costs) -> tuple[Stage, ...]:
    """Return the passes that pack a region of a stored array; none if blocks are read from it."""
    axes = zip(source.metadata.read_grid.axes, source.region, strict=True)
    pieces = tuple(axis.part(pick) for axis, pick in axes)
    parts = divided_axes(source.stored, source.region)
    holders = holders_of(source.metadata, source.region)
    grids = Grids(source.dtype.itemsize, pieces, _axes(blocks), divided=parts, holders=holders)
    return packing(grids, costs, reads_units=True)


def _plan_blocks(x: da.Array, blocks: Chunks, costs: Costs) -> tuple[da.Array, tuple[Stage, ...]]:
    """Return the array with small blocks joined, and the passes that pack its blocks."""
    itemsize, target = x.dtype.itemsize, _axes(blocks)
    # Each thread has blocks in memory, and the pieces that it packs.
    own = costs.memory // (2 * costs.threads)
    costs = costs._replace(threads=1, processes=costs.processes * costs.threads)

    def plan(x: da.Array, memory: int) -> tuple[Stage, ...]:
        grids = Grids(itemsize, _axes(x.chunks), target)
        return packing(grids, costs._replace(memory=memory), reads_units=False)

    # Small blocks that are read and joined are fused to one task, up to some number.
    block_bytes = itemsize * prod(map(max, x.chunks))
    fused = FuseLimits.current().length(x.npartitions, block_bytes)
    if fused > 1:
        edges = plan(x, fused * block_bytes)[0].regions.edges
        x = x.rechunk(tuple(tuple(np.diff(each).tolist()) for each in edges))
    return x, plan(x, own)


# --------------------------------------------------------------------------------------------
# The graph


def _packed(
    x: da.Array, blocks: Chunks, stages: Sequence[Stage], temporary: TemporaryPrefix
) -> da.Array:
    """Return the array whose tasks pack another one, and read the blocks."""
    pieces, ends = (Cutting(tuple(map(edges_of, chunks))) for chunks in (x.chunks, blocks))
    regions = [*(stage.regions for stage in stages), ends]
    objects = [
        PackedRegions(temporary.store, f"{temporary.prefix}{number}/", *pair, _ADVICE)
        for number, pair in enumerate(pairwise(regions))
    ]
    casting = Casting.chosen()
    shared = SharedPass(
        _Passes(temporary, x.dtype, tuple(stages), tuple(objects), pieces, ends, casting)
    )
    # Each result has temporary objects of its own, so its tasks have names of their own.
    token = uuid4().hex
    names = [*(f"rechunk-pack{number}-{token}" for number in range(len(stages)))]
    names.append(f"rechunked-{token}")
    if _is_stored(x):
        layers = {names[0]: _tasks(names[0], regions[0], None, _pack_stored, shared, x.source)}
        dependencies = {names[0]: set[str]()}
    else:
        layers = {names[0]: _tasks(names[0], regions[0], (x.name, pieces), _pack_blocks, shared)}
        dependencies = {names[0]: {x.name}}
    for number, (below, name) in enumerate(pairwise(names)):
        needs = below, regions[number]
        if name == names[-1]:
            layers[name] = _tasks(name, ends, needs, _read_block, shared)
        else:
            layers[name] = _tasks(name, regions[number + 1], needs, _pack_again, shared, number + 1)
        dependencies[name] = {below}
    graph = HighLevelGraph({**x.dask.layers, **layers}, {**x.dask.dependencies, **dependencies})
    meta = np.empty((0,) * x.ndim, x.dtype)
    return core.Array(graph.cull_layers([names[-1]]), names[-1], blocks, meta=meta)


def _tasks(
    name: str,
    regions: Cutting,
    needs: tuple[str, Cutting] | None,
    function: Callable[..., Any],
    *arguments: Any,
) -> dict[tuple[Any, ...], Task]:
    """Return a task for each region, which needs those whose regions overlap its own."""
    tasks = {}
    for index in np.ndindex(regions.counts):
        below = []
        if needs is not None:
            below = [(needs[0], *at) for at, _ in needs[1].overlapping(regions.at(index))]
        key = (name, *index)
        tasks[key] = Task(key, function, *arguments, index, *map(TaskRef, below))
    return tasks


def _pack_stored(shared: SharedPass, source: ArrayRegion, index: Shape) -> int:
    """Pack a region of a stored array: a task."""
    return shared.work.pack(0, index, ArrayTiles(source))  # type: ignore[no-any-return]


def _pack_blocks(shared: SharedPass, index: Shape, *blocks: np.ndarray) -> int:
    """Pack blocks: a task."""
    return shared.work.pack_blocks(index, blocks)  # type: ignore[no-any-return]


def _pack_again(shared: SharedPass, stage: int, index: Shape, *receipts: int) -> int:
    """Pack pieces of packed objects: a task."""
    return shared.work.pack(stage, index, shared.work.objects[stage - 1])  # type: ignore[no-any-return]


def _read_block(shared: SharedPass, index: Shape, *receipts: int) -> np.ndarray:
    """Read a block from packed objects: a task."""
    return shared.work.read(index)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Blocks in memory, by their regions."""

    blocks: Sequence[tuple[Region, np.ndarray]]
    dtype: np.dtype[Any]
    casting: Casting

    def read(self, region: Region, buffer: RegionBuffer, context: TaskContext) -> None:
        """Copy the blocks, which make up the region, into a buffer."""
        for part, values in self.blocks:
            values = self.casting.cast_block(values, region_shape(part), self.dtype, "x")
            buffer.put(part, values)


@dataclass(frozen=True, eq=False)
class _Passes:
    """The source, plan and temporary objects of a result, which exist as long as its graph."""

    temporary: TemporaryPrefix
    dtype: np.dtype[Any]
    stages: tuple[Stage, ...]
    #: The temporary objects that each pass writes.
    objects: tuple[PackedRegions, ...]
    #: The blocks before and after.
    pieces: Cutting
    blocks: Cutting
    #: The rule by which blocks of another data type than `x` declares are cast.
    casting: Casting

    def pack(self, stage: int, index: Shape, source: RegionReader) -> int:
        """Pack a region of a pass; the pass limits how many tasks of this process do that."""
        with _turns(self.stages[stage].costs.at_once):
            return self._write(stage, index, source)

    def pack_blocks(self, index: Shape, blocks: Sequence[np.ndarray]) -> int:
        """Pack blocks in memory, which are the region of a task of the first pass."""
        meeting = self.pieces.overlapping(self.stages[0].regions.at(index))
        parts = [part for _, part in meeting]
        source = _Blocks([*zip(parts, blocks, strict=True)], self.dtype, self.casting)
        return self._write(0, index, source)

    def _write(self, number: int, index: Shape, source: RegionReader) -> int:
        stage = self.stages[number]
        context = TaskContext(self.dtype, stage.costs.slab, Slot(stage.threads))
        written = self.objects[number].write(stage.regions.at(index), source, context)
        self.temporary.check_owned()
        return written

    def read(self, index: Shape) -> np.ndarray:
        """Return a block."""
        region, objects = self.blocks.at(index), self.objects[-1]
        values = np.empty(region_shape(region), self.dtype)
        threads = objects.store.capabilities.costs.in_flight
        context = TaskContext(self.dtype, self.stages[-1].costs.slab, Slot(threads))
        objects.read(region, WholeBuffer(region, values), context)
        return values


@cache
def _turns(count: int) -> threading.Semaphore:
    """Return the semaphore for the tasks of this process that pack at a time."""
    return threading.Semaphore(count)


# The threads of the parent process, which hold some, do not run in a forked one.
after_fork(_turns.cache_clear)
