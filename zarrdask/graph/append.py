"""``append``: Dask arrays at the end of stored ones."""

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import dask.array as da
import numpy as np
from dask.core import flatten

from zarrdask import hierarchy
from zarrdask.array import Array
from zarrdask.chunkio import Chunks
from zarrdask.errors import StoreError
from zarrdask.graph.client import check_visible
from zarrdask.graph.destination import Destination
from zarrdask.graph.jobs import batches, begin, check_deferrable, do, known
from zarrdask.graph.locks import shape_lock
from zarrdask.graph.tasks import gather
from zarrdask.grids import Shape
from zarrdask.opening import open_array
from zarrdask.resizing import appended, check_shape, grow, now, take_back
from zarrdask.storage.base import Store


def append(
    x: Any,
    url: Any,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    *,
    axis: int = 0,
    compute: bool = True,
) -> Any:
    """Add a Dask array at the end of an axis of a stored one.

    The blocks are stored first, each by one task, then the shape: who reads meanwhile sees the
    array as it was, then as it is. If it fails, it is as it was. Of two appends at once, one comes
    after the other.

    Parameters
    ----------
    x : dask.array.Array or array_like
        Of the array's shape but for the length of the axis; its chunk sizes must be known.
    url, component, storage_options
        Of the array, as in `zarrdask.open_array`.
    axis : int
        Which.
    compute : bool
        Whether to do it now. Otherwise it comes after those that were asked for before and are
        not computed yet: computing it computes these, too, but for those that threads of this
        process have computed meanwhile.

    Returns
    -------
    None or Delayed
        None after computing; what does it, if `compute` is false.

    Raises
    ------
    SelectionError
        If `x` does not fit the array.
    StoreError
        If it was given another shape meanwhile, between asking for it and computing it.

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
    store, path = hierarchy.locate(url, component, storage_options)
    check_visible(store)
    if isinstance(url, Array) and not component:
        url.check_writable()
        array = Array(store, path, url.metadata, "r+")
    else:
        array = open_array(store, path, mode="r+", consolidated=False)
    if not compute:
        check_deferrable([array])
        return _later(x, array, axis)
    with shape_lock(array.store, path):
        shape = array.refreshed().metadata.shape
        to, x = _destination(x, array, axis, shape)
        new = to.array.shape
        commit = partial(grow, array.store, path, shape, new)
        give_up = partial(take_back, array.store, path, to.chunks, shape)
        to = replace(to, commit=commit, give_up=give_up)
        with batches([to]):
            do(begin([(x, to)]))
    return None


def _destination(
    x: da.Array, array: Array, axis: int, shape: Shape, *after: da.Array
) -> tuple[Destination, da.Array]:
    """Return where blocks go at the end of an array of some shape, and the blocks, checked."""
    chunks = array.refreshed()
    chunks = replace(chunks, metadata=chunks.metadata.resized(shape))
    grown, region = appended(chunks, x.shape, axis)
    to = Destination(
        Array(array.store, array.path, grown.metadata, "r+"),
        region,
        grown,
        "the array is as it was",
    )
    # Each block looks before it is written: an append may be computed long after it was made,
    # and another come between.
    check = partial(_unless_changed, array.store, array.path, shape)
    return to, x.map_blocks(check, *after, dtype=x.dtype, meta=x._meta)


def _unless_changed(store: Store, path: str, shape: Shape, block: Any, *after: Any) -> Any:
    """Return a block, if the array that it is added to still has its shape."""
    check_shape(now(store, path), (shape,), hierarchy.location(store, path))
    return block


# --------------------------------------------------------------------------------------------
# Appends that are computed later


class Growth:
    """An append that is computed later: the last of its tasks, and what the next one must know.

    Parameters
    ----------
    store, path
        Of the array.
    shapes : tuple of tuple of int
        That it has before this append, and before those that this one comes after; the last is
        its own.
    new : tuple of int
        The shape that it has afterwards.
    stamp : str
        Of the array's documents, when the append was asked for.
    name : str
        Of the task.

    Attributes
    ----------
    receipts : dask.array.Array, optional
        Of its blocks; not where tasks run.
    kept : tuple of key
        Of tasks that must have the same names in the graphs of appends that come after.
    is_done : bool
        Whether it is, as far as this process can tell.
    """

    # No dataclass: Dask would look into it, and make another one where the task runs.

    def __init__(
        self,
        store: Store,
        path: str,
        shapes: tuple[Shape, ...],
        new: Shape,
        stamp: str,
        name: str,
    ) -> None:
        self.store = store
        self.path = path
        self.shapes = shapes
        self.new = new
        self.stamp = stamp
        self.name = name
        self.is_done = False
        self.receipts: da.Array | None = None
        self.kept: tuple[Hashable, ...] = ()

    def __call__(self) -> None:
        """Give the array its new shape: the task."""
        with shape_lock(self.store, self.path):
            grow(self.store, self.path, self.shapes[-1], self.new)
        self.is_done = True

    def __reduce__(self) -> tuple[Any, ...]:
        return Growth, (self.store, self.path, self.shapes, self.new, self.stamp, self.name)

    def delayed(self) -> Any:
        """Return all of it as one thing to compute."""
        return gather([self.receipts], [self], name=self.name, kept=self.kept)


#: The last append to each array that was asked for here. It is there as long as its graph is.
_ASKED: "WeakValueDictionary[str, Growth]" = WeakValueDictionary()


def _later(x: da.Array, array: Array, axis: int) -> Any:
    chunks, stamp = array.refreshed(), hierarchy.stamp(array.store, array.path)
    before = _unfinished(chunks, stamp)
    shapes, kept, after = (chunks.metadata.shape,), (), []  # type: Any, Any, list[da.Array]
    if before is not None:
        shapes, kept = (*before.shapes, before.new), before.kept
        after = [da.from_delayed(before.delayed(), (), meta=np.empty((), object))]
    to, x = _destination(x, array, axis, shapes[-1], *after)
    name = f"append-zarr-{uuid4().hex}"
    growth = Growth(array.store, array.path, shapes, to.array.shape, stamp, name)
    (job,) = begin([(x, to)])
    growth.receipts = job.receipts
    growth.kept = (*kept, name, *flatten(job.receipts.__dask_keys__()))
    _ASKED[chunks.place] = growth
    return growth.delayed()


def _unfinished(chunks: Chunks, stamp: str) -> Growth | None:
    """Return the append that the next one comes after, if there is one.

    Raises
    ------
    StoreError
        If that can't be told, or the next one can't come after it.
    """
    found = _ASKED.get(chunks.place)
    if found is None or found.is_done or chunks.metadata.shape not in found.shapes:
        return None
    # With other documents, it may have been done elsewhere, and the array be another one now.
    # Array expressions can't make tasks wait for others.
    if found.stamp != stamp or da.ARRAY_EXPR_ENABLED:
        raise StoreError(
            "an append to this array was asked for before, and may not be computed yet: compute "
            "it first, or drop it",
            key=hierarchy.location(found.store, found.path),
            found=f"{found.shapes[-1]} to {found.new}",
        )
    return found
