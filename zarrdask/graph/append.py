"""``append``: Dask arrays at the end of stored ones."""

from functools import partial
from typing import Any
from uuid import uuid4

import dask.array as da
from dask.delayed import delayed

from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.client import check_visible, scheduler_in_task
from zarrdask.execution.handle import Handle
from zarrdask.execution.locks import shape_lock
from zarrdask.graph.target import Destination
from zarrdask.graph.write_job import batches, begin, check_deferrable, do, known
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.path import locate_node, node_location
from zarrdask.hierarchy.resize import appended, check_shape, grow, roll_back_append, stored_metadata
from zarrdask.metadata.model import ZarrFormat
from zarrdask.nodes.array import Array
from zarrdask.nodes.open import open_array
from zarrdask.nodes.options import suggests_arguments
from zarrdask.storage.base import Store


@suggests_arguments
def append(
    x: Any,
    url: Any,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    *,
    axis: int = 0,
    compute: bool = True,
) -> Any:
    """Add a Dask array at the end of an axis of a stored array.

    The blocks are stored first, each by one task, and then the new shape: readers see the old
    array until the append has finished. If it fails, the array stays as it was. Of two appends at
    the same time, one waits for the other.

    Parameters
    ----------
    x : dask.array.Array or array_like
        The array to append. Its shape must be that of the stored array but for the length of
        `axis`, and its chunk sizes must be known.
    url, component, storage_options
        The stored array, as in `zarrdask.open_array`.
    axis : int
        The axis that becomes longer.
    compute : bool
        Whether to append now. If false, nothing is written yet, and the place of `x` is fixed:
        it is appended to the shape that the array has now.

    Returns
    -------
    None or Delayed
        None after computing; if `compute` is false, a Delayed that appends `x`.

    Raises
    ------
    SelectionError
        If `x` does not fit the array.
    StoreError
        If `compute` was false, and the shape of the array changed before the result was computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=3, dtype="i4", chunks=2)
    >>> zarrdask.append(da.ones(4, chunks=2), z)
    >>> zarrdask.open_array(z.store)[...]
    array([0, 0, 0, 1, 1, 1, 1], dtype=int32)
    """
    x = known(x)
    store, path = locate_node(url, component, storage_options)
    check_visible(store)
    if isinstance(url, Array) and not component:
        url.check_writable()
        array = Array(store, path, url.metadata, "r+")
    else:
        array = open_array(store, path, mode="r+", consolidated=False)
    if not compute:
        check_deferrable([array])
        chunks = array.refreshed()
        appended(chunks, x.shape, axis)  # the errors of what does not fit
        later = LaterAppend(Handle(chunks), path, x, axis)
        return delayed(later, pure=False, traverse=False)(
            dask_key_name=f"append-zarr-{uuid4().hex}"
        )
    with shape_lock(array.store, path):
        _append(x, array, axis, array.refreshed())
    return None


def _append(
    x: da.Array, array: Array, axis: int, chunks: StoredChunks, **compute_options: Any
) -> None:
    """Append to an array as it is now, while holding its shape lock."""
    grown, region = appended(chunks, x.shape, axis)
    store, path, zarr_format = array.store, array.path, array.zarr_format
    shape = chunks.metadata.shape
    to = Destination(
        Array(store, path, grown.metadata, "r+"),
        region,
        grown,
        "the array is as it was",
        commit=partial(grow, store, path, zarr_format, shape, grown.metadata.shape),
        give_up=partial(roll_back_append, store, path, grown, shape),
    )
    # The lock does not exclude other machines: no block is written where they have appended.
    check = partial(_unless_changed, store, path, zarr_format, shape)
    with batches([to]):
        do(begin([(x.map_blocks(check, dtype=x.dtype, meta=x._meta), to)]), **compute_options)


def _unless_changed(
    store: Store, path: str, zarr_format: ZarrFormat, shape: Shape, block: Any
) -> Any:
    """Return a block, if the array that it is appended to still has its shape."""
    check_shape(stored_metadata(store, path, zarr_format), (shape,), node_location(store, path))
    return block


class LaterAppend:
    """An append with ``compute=False``: one task, which computes the blocks as `append` does.

    The array must still have the shape that it had when the append was asked for. So an append is
    done once, even if Dask runs its task twice, and appends that exclude each other can't both
    succeed, whoever computes them, and when.

    Parameters
    ----------
    handle : Handle
        The stored array, as it was when the append was asked for.
    path : str
        The path of the array in its store.
    x : dask.array.Array
        The array to append.
    axis : int
        The axis that becomes longer.
    """

    # Not a dataclass, which Dask would search for tasks: it would compute `x` as one block.
    __slots__ = ("axis", "handle", "path", "x")

    def __init__(self, handle: Handle, path: str, x: da.Array, axis: int) -> None:
        self.handle = handle
        self.path = path
        self.x = x
        self.axis = axis

    def __call__(self) -> None:
        """Append: the task."""
        chunks = self.handle.chunks
        array = Array(chunks.store, self.path, chunks.metadata, "r+")
        shape = chunks.metadata.shape
        location = node_location(array.store, self.path)
        with shape_lock(array.store, self.path), scheduler_in_task() as options:
            current = array.refreshed()
            check_shape(current.metadata, (shape,), location)
            _append(self.x, array, self.axis, current, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return LaterAppend, (self.handle, self.path, self.x, self.axis)
