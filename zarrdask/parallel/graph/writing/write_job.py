"""One or more writes of Dask arrays that begin, run and finish together."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import prod
from numbers import Number
from typing import Any, NamedTuple
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.array import core
from dask.core import flatten
from dask.delayed import Delayed

from zarrdask.arrays.chunks.cast import Casting, check_dense
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.changes.new_array import NewArray
from zarrdask.arrays.hierarchy.changes.transaction import transaction
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.indexers import broadcast
from zarrdask.errors import MetadataError, NodeTypeError, UnsupportedError
from zarrdask.formats.indexing.regions import slabs
from zarrdask.parallel.execution.compute import compute_blocks
from zarrdask.parallel.execution.dask_private import DataNode
from zarrdask.parallel.execution.expected_array import ExpectedArray
from zarrdask.parallel.execution.expressions import as_users_array, is_expression
from zarrdask.parallel.execution.forks import TaskStores
from zarrdask.parallel.graph.fuse.writes import fuse_writes
from zarrdask.parallel.graph.placement import known_blocks
from zarrdask.parallel.graph.writing.block_writes import BlockWrites
from zarrdask.parallel.graph.writing.conflicts import check_disjoint
from zarrdask.parallel.graph.writing.manifests import ManifestUpdate, update_manifests
from zarrdask.parallel.graph.writing.target import WriteTarget
from zarrdask.parallel.graph.writing.tasks import Action, gather, read_blocks, write_blocks
from zarrdask.runtime.progress import Show
from zarrdask.storage.snapshots.digesting_store import DigestingFork

#: The number of elements in memory that are checked at a time.
_CHECKED_ELEMENTS = 2**16


class WriteJob(NamedTuple):
    """A write that has begun: its target is ready, and its tasks exist."""

    target: WriteTarget
    tasks: BlockWrites

    @property
    def nbytes(self) -> int:
        """The size of all blocks in bytes, in the data type of the stored array."""
        itemsize = self.target.array.dtype.itemsize
        return prod(sum(axis) for axis in self.tasks.blocks) * int(itemsize)

    @property
    def commit(self) -> Action | None:
        """The action that finishes the write, if there is one."""
        if self.target.marker is not None:
            return self.target.marker.end
        change = self.target.change
        return None if change is None or not change.has_commit else change.commit

    @property
    def update(self) -> ManifestUpdate | None:
        """The update of the manifest, if digests are computed."""
        target, chunks = self.target, self.tasks.writer.region.stored
        if not isinstance(chunks.store, DigestingFork):
            return None
        is_whole = target.is_new and target.stores_all
        return ManifestUpdate(target.array.node_path, chunks, is_whole)

    def stored(self) -> da.Array:
        """Return the stored array as a Dask array, which is written when it is computed."""
        claims = [] if self.target.claim is None else [self.target.claim]
        return as_users_array(read_blocks(self.tasks, self.target.written, self.commit, claims))


def as_dask_array(x: Any, *, may_be_masked: bool = False, is_view: bool = False) -> da.Array:
    """Return an array-like as a Dask array with known chunk sizes, by default without masks.

    Dask copies the elements of an array of NumPy, and hashes them for a name. If `is_view`, it does
    not: the array must not be changed until it is written, and the name is another one each time.
    """
    check_plain(x)
    if not may_be_masked:
        check_dense(x, "x")
        x = np.asarray(x) if isinstance(x, np.ma.MaskedArray) else x
    if is_view and type(x) is np.ndarray:
        key = (f"values-{uuid4().hex}", *(0 for _ in x.shape))
        return core.Array({key: DataNode(key, x)}, key[0], [(n,) for n in x.shape], dtype=x.dtype)
    if is_expression(x):
        # Imported here: few arrays are expressions.
        from zarrdask.parallel.graph.expression_array import ExpressionArray

        x = ExpressionArray.of(x)
    if not isinstance(
        getattr(x, "dtype", np.dtype(object)), np.dtype
    ) and not dask.is_dask_collection(x):
        x = np.asarray(x)  # of pandas or of a framework, whose data types Dask does not know
    array = core.asanyarray(x)
    is_object = array.dtype == object and not array.ndim
    if is_object and not isinstance(x, Number | np.ndarray | core.Array):
        # NumPy makes an array of any object.
        raise NodeTypeError(
            "only arrays can be stored",
            key="x",
            found=type(x).__name__,
            expected="an array, or a mapping of paths to arrays",
        )
    known_blocks(array.shape, array.chunks)  # Raises the error if any is unknown.
    return array


def cast_in_memory(x: da.Array, value: Any, array: Array) -> da.Array:
    """Return `x` in the data type of an array if it was made of values in memory.

    They are checked now, before anything is changed. Numbers of Python have no data type: NumPy
    checks their range only if they are converted directly to the array's, as an assignment to
    the array does.
    """
    if isinstance(value, np.ndarray | np.generic):
        return _cast_checked(x, np.asarray(value), array)
    if not isinstance(value, list | tuple | int | float | complex) or x.dtype.kind not in "iufc":
        return x
    if any(map(dask.is_dask_collection, flatten([value], container=(list, tuple)))):
        return x
    return core.from_array(broadcast(value, x.shape, array), chunks=x.chunks)


def _cast_checked(x: da.Array, values: np.ndarray, array: Array) -> da.Array:
    """Return a Dask array of values in memory with casts that were checked, piece by piece."""
    dtype = array.dtype
    if values.dtype == dtype or dtype.hasobject or Casting.chosen() is not Casting.EXACT:
        return x  # The data types alone decide, or the codec of objects does.
    for piece in slabs(values.shape, _CHECKED_ELEMENTS):
        Casting.EXACT.cast(values[piece], dtype, array.node_path)
    return x.astype(dtype)


def check_plain(x: Any) -> None:
    """Check that an object is an array: no URL, nothing delayed, no table, and none of xarray."""
    if isinstance(x, str | os.PathLike):
        raise NodeTypeError(
            "the array to write comes first, then the URL; zarrdask.copy(a, b) and "
            "zarrdask.rechunk(a, b, chunks) write what is stored at a URL to another one",
            key="x",
            found=x,
            expected="an array, or a mapping of paths to arrays",
        )
    if isinstance(x, Delayed):
        raise NodeTypeError(
            "the shape of a delayed object is unknown; make an array of it by "
            "dask.array.from_delayed(x, shape=..., dtype=...)",
            key="x",
            found=type(x).__name__,
            expected="an array, or a mapping of paths to arrays",
        )
    if hasattr(x, "columns") and hasattr(x, "dtypes"):
        raise UnsupportedError(
            "a table has columns of different types; pass its values as an array, or an array for "
            "each column: zarrdask.to_zarr({name: df[name].to_numpy() for name in df.columns}, "
            "url); of a Dask DataFrame, df[name].to_dask_array(lengths=True)",
            key="x",
            found=type(x).__name__,
            expected="an array, or a mapping of paths to arrays",
        )
    if is_labelled(x):
        raise UnsupportedError(
            "an object of xarray would lose its dimensions, coordinates and attributes; pass it to "
            "zarrdask.xarray.to_zarr (which also appends), or pass the `data` of a DataArray to "
            "store its values alone",
            key="x",
            found=type(x).__name__,
            expected="an array, or a mapping of paths to arrays",
        )


def is_labelled(x: Any) -> bool:
    """Whether an object is a dataset, data array or tree of xarray."""
    return hasattr(x, "to_zarr") and isinstance(getattr(x, "encoding", None), Mapping)


@contextmanager
def writing(targets: Sequence[WriteTarget], *, commits: bool = True) -> Iterator[None]:
    """Begin the changes of targets, write in the block, then commit; see `transaction`.

    In stores that can do that, all changes in the block appear at once. If two writes overlap, an
    error is raised before anything is written.
    """
    _check_distinct(targets)
    changes = [target.change for target in targets if target.change is not None]
    with ExitStack() as stack:
        for target in targets if commits else ():
            stack.enter_context(target.array.store.batch())
        stack.enter_context(transaction(changes, commits=commits))
        yield


def write_jobs(
    writes: Sequence[tuple[da.Array, WriteTarget]],
    empty: Sequence[bool | None] | None = None,
    *,
    later: bool = False,
    returned: bool = False,
    digests: bool = False,
) -> list[WriteJob]:
    """Create the tasks of writes that have begun.

    For each write, `empty` is whether chunks that hold only the fill value are stored; as
    configured by default. `later` is whether the caller returns the tasks, `returned` whether it
    returns the stored array, and `digests` whether it updates manifests at the end.
    """
    jobs, stores = [], TaskStores.of_scheduler(is_later=later, is_digested=digests)
    for (x, to), stores_empty in zip(writes, empty or [None] * len(writes), strict=True):
        tasks = write_blocks(
            x,
            ArrayRegion(to.chunks, to.region),
            to.beyond,
            empty=stores_empty,
            is_blank=to.is_blank,
            log=None if to.recorded is None else to.recorded.log,
            marker=to.marker,
            expected=to.expected if later or returned else None,
            stores=stores,
        )
        jobs.append(WriteJob(to, tasks if to.recorded is None else tasks.without(to.recorded)))
    return jobs


def keep_manifests(jobs: Iterable[WriteJob]) -> None:
    """Store the manifests of arrays, after all blocks were stored, and the changes committed."""
    update_manifests([job.update for job in jobs if job.update is not None])


def check_deferrable(arrays: Iterable[Array]) -> None:
    """Check that the stores of arrays allow writes that are computed later."""
    for array in arrays:
        if not array.store.capabilities.deferrable:
            raise UnsupportedError(
                "a write to a zip archive can't be computed later, unless both the call and the "
                "computation are within `with store.batch():`; omit compute=False, or write a "
                "directory and zarrdask.copy it",
                key=array.node_path.location,
            )


def _check_distinct(targets: Sequence[WriteTarget]) -> None:
    if len(targets) == 1:
        return
    counts = Counter(target.written.canonical_location for target in targets)
    for target in targets:
        if target.is_new and counts[target.written.canonical_location] > 1:
            raise MetadataError(
                "two arrays would be stored at the same location; give each its own path",
                key=target.array.node_path.location,
            )
    check_disjoint([target.written for target in targets])


def compute(jobs: Sequence[WriteJob], *, show: Show = False, **options: Any) -> None:
    """Write all blocks of all jobs; after an error, no task stores anything more."""
    if not jobs:
        return
    try:
        nbytes = sum(job.nbytes for job in jobs)
        tasks = fuse_writes([job.tasks for job in jobs])
        if tasks:
            is_recorded = any(job.target.recorded is not None for job in jobs)
            compute_blocks(tasks, "write", show, nbytes=nbytes, is_recorded=is_recorded, **options)
    except BaseException:
        for job in jobs:
            job.tasks.writer.abort()
        raise


def _begun_update(update: ManifestUpdate, target: WriteTarget) -> ManifestUpdate:
    """Return an update that is made later, after others may have written to a new array."""
    if not isinstance(target.change, NewArray):
        return update
    update.node.current.begin_manifest()
    return replace(update, is_whole=False)


def deferred(
    jobs: Sequence[WriteJob],
    completions: Sequence[Action] = (),
    updates: Sequence[ManifestUpdate] | None = None,
) -> Delayed:
    """Return one Delayed that writes all blocks of all jobs, commits each, then completes all.

    Then manifests are updated, by default the manifests of the jobs.
    """
    # By then, other writes may have stored chunks that blocks without values have to erase.
    tasks = [job.tasks._replace(equal_blocks=None) for job in jobs]
    # All blocks come first: a commit may replace what another array is computed from.
    claims = {each.write: each for job in jobs if (each := job.target.claim) is not None}
    writers = [job.tasks.writer for job in jobs]
    expected = [one for w in writers if isinstance(one := w.expected, ExpectedArray)]
    commits = [*(job.commit for job in jobs), *completions, *(each.forget for each in expected)]
    if updates is None:
        updates = [_begun_update(job.update, job.target) for job in jobs if job.update is not None]
    return gather(fuse_writes(tasks), commits, updates, [*claims.values()])
