"""``append``: add Dask arrays at the end of stored arrays."""

from typing import Any
from uuid import uuid4

import dask.array as da
from dask.delayed import delayed

from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.client import check_changeable, check_visible, scheduler_in_task
from zarrdask.execution.locks import shape_lock
from zarrdask.graph.target import WriteTarget
from zarrdask.graph.write_job import (
    as_dask_array,
    check_deferrable,
    compute,
    write_jobs,
    writing,
)
from zarrdask.hierarchy.append import AppendedArray, appended, guarded
from zarrdask.hierarchy.lookup import locate_node
from zarrdask.hierarchy.resize import check_shape
from zarrdask.nodes.array import Array, chunks_of, set_chunks
from zarrdask.nodes.base import check_writable
from zarrdask.nodes.open import open_array
from zarrdask.nodes.options import suggests_arguments
from zarrdask.runtime.progress import Show
from zarrdask.storage.unchanged import Lease


@suggests_arguments
def append(
    x: Any,
    url: Any,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    *,
    axis: int | str = 0,
    compute: bool = True,
    progress: Show = False,
) -> Any:
    """Append a Dask array to a stored array along one axis.

    Each block is written by one task, and the new shape is written last: readers see the old array
    until the append has finished. If the append fails, the array keeps its old shape and content.
    Of two appends at the same time, one waits for the other.

    Parameters
    ----------
    x : dask.array.Array or array_like
        The array to append. Its shape must equal that of the stored array except along `axis`, and
        its chunk sizes must be known.
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
    x = as_dask_array(x)
    node = locate_node(url, component, storage_options)
    (check_changeable if compute else check_visible)(node.store)
    if isinstance(url, Array) and not component:
        check_writable(url)
        array = url
    else:
        array = open_array(*node, mode="r+", consolidated=False)
    if not compute:
        check_deferrable([array])
        chunks = array.node_path.refreshed(chunks_of(array))
        appended(chunks, x.shape, axis)  # An array that does not fit is an error now, not later.
        deferred = DeferredAppend(chunks, node.path, x, axis)
        return delayed(deferred, pure=False, traverse=False)(
            dask_key_name=f"append-zarr-{uuid4().hex}"
        )
    with shape_lock(array.node_path) as lease:
        current = array.node_path.refreshed(chunks_of(array))
        set_chunks(array, _append(x, array, axis, current, lease, show=progress))
    return None


def _append(
    x: da.Array,
    array: Array,
    axis: int | str,
    chunks: StoredChunks,
    lease: Lease | None,
    **compute_options: Any,
) -> StoredChunks:
    """Append to an array, given its current chunks, while holding the lock of its shape."""
    grown, region = appended(chunks, x.shape, axis)
    node, old = array.node_path, chunks.metadata.shape
    # Without a lease, a writer on another machine may append while the first block is computed.
    written = guarded(grown, node, old, lease, float("-inf") if lease is None else None)
    change = AppendedArray(node, written, old, lease)
    longer = Array(*node, grown.metadata, "r+")
    target = WriteTarget(longer, region, written, change, is_new=False)
    with writing([target]):
        compute(write_jobs([(x, target)]), **compute_options)
    return grown


class DeferredAppend:
    """The single task of an append with ``compute=False``, which computes the blocks itself.

    The stored array must still have the shape that it had when the append was requested. So the
    append is done once, even if Dask runs the task twice; and of two appends that were requested
    for the same position only one succeeds, wherever and whenever they are computed.
    """

    # Not a dataclass: Dask would search one for tasks, and compute `x` as a single block.
    __slots__ = ("axis", "chunks", "path", "x")

    def __init__(self, chunks: StoredChunks, path: str, x: da.Array, axis: int | str) -> None:
        self.chunks = chunks
        self.path = path
        self.x = x
        self.axis = axis

    def __call__(self) -> None:
        """Run the task: append the array."""
        chunks = self.chunks
        array = Array(chunks.store, self.path, chunks.metadata, "r+")
        shape = chunks.metadata.shape
        with shape_lock(array.node_path) as lease, scheduler_in_task() as options:
            current = array.node_path.refreshed(chunks)
            check_shape(current.metadata, (shape,), array.node_path.location)
            _append(self.x, array, self.axis, current, lease, **options)
