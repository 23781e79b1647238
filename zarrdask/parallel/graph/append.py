"""``append``: add Dask arrays at the end of stored arrays."""

from typing import Any
from uuid import uuid4

import dask.array as da
from dask.delayed import delayed

from zarrdask import config
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.changes.append import AppendedArray, appended, guarded
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.resize import check_shape, resized
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.array import Array, chunks_of, set_chunks
from zarrdask.arrays.nodes.node import check_writable
from zarrdask.arrays.nodes.open import open_array
from zarrdask.formats.indexing.selection import axis_number
from zarrdask.parallel.execution.client import check_changeable, check_visible, scheduler_in_task
from zarrdask.parallel.execution.locks import shape_lock
from zarrdask.parallel.graph.writing.resume import has_all_values, resumable
from zarrdask.parallel.graph.writing.target import Resume, WriteTarget, check_resume
from zarrdask.parallel.graph.writing.write_job import (
    as_dask_array,
    cast_in_memory,
    check_deferrable,
    compute,
    keep_manifests,
    write_jobs,
    writing,
)
from zarrdask.runtime.progress import Show
from zarrdask.storage.locks.leases import Lease
from zarrdask.storage.locks.lock_files import lock_place


@suggests_arguments
def append(
    x: Any,
    url: Any,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    *,
    axis: int | str = 0,
    compute: bool = True,
    resume: Resume = False,
    progress: Show = False,
) -> Any:
    """Append a Dask array to a stored array along one axis.

    Each block is written by one task, and the new shape is written last: readers see the old array
    until the append has finished. If the append fails, the array keeps its old shape and content.
    Concurrent appends run one after another.

    Parameters
    ----------
    x : dask.array.Array or array_like
        The array to append. Its shape must equal the shape of the stored array except along `axis`,
        and its chunk sizes must be known.
    url : str, os.PathLike, MutableMapping, Store, Group or Array
        The stored array, or the hierarchy that contains it. An `Array` has the new shape
        afterwards.
    component : str, optional
        The path of the array within `url`.
    storage_options : dict, optional
        Options for fsspec, if `url` is a URL.
    axis : int or str, default 0
        The axis along which to append, by number or by the name of the dimension.
    compute : bool, default True
        Whether to append now. If false, nothing is written yet, but the position of `x` is fixed:
        it is appended to the shape that the array has now.
    resume : bool or "restart", default False
        Whether stored blocks are recorded, so that the same call, made again after
        the process was killed, computes and writes only the missing blocks, as in `to_zarr`. Any
        other append to the array discards the record.
    progress : bool, file or callable, default False
        Whether and how to show a progress bar, as in `to_zarr`. There is none with
        ``compute=False``.

    Returns
    -------
    None or dask.delayed.Delayed
        None if `compute` is true; otherwise a Delayed that appends `x` when it is computed.

    Raises
    ------
    SelectionError
        If the shape of `x` does not fit the stored array.
    StoreError
        If `compute` was false and the shape of the array changed before the result was computed.

    See Also
    --------
    to_zarr : Store a Dask array as a new array, or in a region of an existing one.

    Examples
    --------
    >>> import dask.array as da
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=3, dtype="i4", chunks=2)
    >>> zarrdask.append(da.ones(4, chunks=2), z)
    >>> z[...]
    array([0, 0, 0, 1, 1, 1, 1], dtype=int32)
    """
    check_resume(resume)
    value, x = x, as_dask_array(x, is_view=compute and not resume)
    node = locate_node(url, component, storage_options)
    (check_changeable if compute else check_visible)(node.store)
    if isinstance(url, Array) and not component:
        check_writable(url)
        array = url
    else:
        array = open_array(*node, mode="r+", consolidated=False)
    x = cast_in_memory(x, value, array)
    Casting.chosen().check(x.dtype, array.dtype, array.node_path)
    if not compute:
        check_deferrable([array])
        chunks = array.node_path.refreshed(chunks_of(array))
        # An array that does not fit raises an error now, not later.
        appended(chunks, x.shape, axis)
        deferred = DeferredAppend(chunks, node.path, x, axis, resume)
        return delayed(deferred, pure=False, traverse=False)(
            dask_key_name=f"append-zarr-{uuid4().hex}"
        )
    with shape_lock(array.node_path) as lease, array.store.batch():
        seen = array.node_path.snapshot(array.zarr_format)
        current = seen.refreshed(chunks_of(array))
        how = resume, config.get("manifests")
        set_chunks(array, _append(x, array, axis, current, lease, how, seen, show=progress))
    return None


def _append(
    x: da.Array,
    array: Array,
    axis: int | str,
    chunks: StoredChunks,
    lease: Lease | None,
    how: tuple[Resume, bool],
    seen: NodePath,
    **compute_options: Any,
) -> StoredChunks:
    """Append to an array, given its current chunks, while holding the lock of its shape.

    `how` is whether the append is resumed, and whether digests are computed for the manifest;
    `seen` is the array in the store in which they were read.
    """
    resume, digests = how
    target = _target(x, array, axis, chunks, lease, seen)
    writes = [(x, target)]
    if resume:
        shorter = _before_append(x, axis, chunks)
        if resume != "restart" and shorter is not None:
            # An earlier run may have stored all values, and the new shape.
            before = [(x, _target(x, array, axis, shorter, lease, seen))]
            if has_all_values(before):
                writes = before
        writes = resumable(writes, resume)
    with writing([to for _, to in writes]):
        jobs = write_jobs(writes, digests=digests)
        compute(jobs, **compute_options)
    keep_manifests(jobs)
    return chunks_of(writes[0][1].array)


def _target(
    x: da.Array,
    array: Array,
    axis: int | str,
    chunks: StoredChunks,
    lease: Lease | None,
    seen: NodePath,
) -> WriteTarget:
    """Return the end of an array, given its chunks as they are before the append."""
    grown, region = appended(chunks, x.shape, axis)
    node, old = array.node_path, chunks.metadata.shape
    # Without a lease, a writer on another machine may append while the first block is computed.
    written = guarded(grown, node, old, lease, float("-inf") if lease is None else None)
    change = AppendedArray(node, written, old, lease, seen=seen)
    longer = Array(node, grown.metadata, "r+")
    return WriteTarget(longer, region, written, change, is_new=False)


def _before_append(x: da.Array, axis: int | str, chunks: StoredChunks) -> StoredChunks | None:
    """Return an array as if the end `x` had not been appended; None if it is shorter than `x`."""
    shape = [*chunks.metadata.shape]
    number = axis_number(axis, len(shape), chunks.metadata.dimension_names)
    shape[number] -= x.shape[number]
    return resized(chunks, tuple(shape)) if shape[number] >= 0 else None


class DeferredAppend:
    """The single task of an append with ``compute=False``, which computes the blocks itself.

    The stored array must still have the shape that it had when the append was requested. So the
    append is done once, even if Dask runs the task twice; and of two appends that were requested
    for the same position only one succeeds, wherever and whenever they are computed.
    """

    # Not a dataclass: Dask would search one for tasks, and compute `x` as a single block.
    __slots__ = ("axis", "casting", "chunks", "digests", "locked_at", "path", "resume", "x")

    def __init__(
        self, chunks: StoredChunks, path: str, x: da.Array, axis: int | str, resume: Resume
    ) -> None:
        self.chunks = chunks
        self.path = path
        self.x = x
        self.axis = axis
        self.resume = resume
        self.locked_at = lock_place()
        self.casting = Casting.chosen()
        self.digests = config.get("manifests")

    def __call__(self) -> None:
        """Run the task: append the array."""
        chunks = self.chunks
        array = Array(NodePath(chunks.store, self.path), chunks.metadata, "r+")
        shape = chunks.metadata.shape
        locked = shape_lock(array.node_path, self.locked_at)
        with locked as lease, array.store.batch(), scheduler_in_task() as options:
            seen = array.node_path.snapshot(array.zarr_format)
            current = seen.refreshed(chunks)
            before = [(self.x, _target(self.x, array, self.axis, chunks, lease, seen))]
            if not (self.resume and has_all_values(before)):
                check_shape(current.metadata, (shape,), array.node_path.location)
            with self.casting.requested():
                how = self.resume, self.digests
                _append(self.x, array, self.axis, current, lease, how, seen, **options)
