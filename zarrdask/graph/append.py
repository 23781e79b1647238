"""``append``: Dask arrays at the end of stored ones."""

from functools import partial
from typing import Any

from zarrdask import hierarchy
from zarrdask.array import Array, open_array
from zarrdask.errors import StoreError
from zarrdask.graph.client import check_visible
from zarrdask.graph.destination import Destination
from zarrdask.graph.jobs import begin, do, known, later
from zarrdask.grids import Shape
from zarrdask.metadata import ArrayMetadata, Metadata
from zarrdask.resizing import appended, take_back
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
    array as it was, then as it is. If it fails, it is as it was.

    Parameters
    ----------
    x : dask.array.Array or array_like
        Of the array's shape but for the length of the axis; its chunk sizes must be known.
    url, component, storage_options
        Of the array, as in `zarrdask.open_array`.
    axis : int
        Which.
    compute : bool
        Whether to do it now.

    Returns
    -------
    None or Delayed
        None after computing; what does it, if `compute` is false.

    Raises
    ------
    SelectionError
        If `x` does not fit the array.
    StoreError
        If it was given another shape meanwhile: two can't append to it at the same time.

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
    array = open_array(store, path, mode="r+", consolidated=False)
    old = array.shape
    grown, region = appended(array.stored, x.shape, axis)
    to = Destination(
        Array(array.store, path, grown.metadata, "r+"),
        region,
        grown,
        "the array is as it was",
        commit=partial(_grow, array.store, path, old, grown.metadata.shape),
        give_up=partial(take_back, array.store, path, grown, old),
    )
    # Each block looks before it is written: an append may be computed long after it was made,
    # and another come between.
    x = x.map_blocks(_unless_changed, array.store, path, old, dtype=x.dtype, meta=x._meta)
    jobs = begin([(x, to)])
    if not compute:
        return later(jobs)
    do(jobs)
    return None


def _unless_changed(block: Any, store: Store, path: str, shape: Shape) -> Any:
    """Return a block, if the array that it is added to still has its shape."""
    _check_shape(hierarchy.read(store, path), (shape,), hierarchy.location(store, path))
    return block


def _check_shape(found: Metadata | None, shapes: tuple[Shape, ...], place: str) -> ArrayMetadata:
    if not isinstance(found, ArrayMetadata) or found.shape not in shapes:
        raise StoreError(
            "the array was given another shape meanwhile, nothing was appended",
            key=place,
            found=getattr(found, "shape", None),
            expected=f"{shapes[0]}",
        )
    return found


def _grow(store: Store, path: str, old: Shape, new: Shape) -> None:
    """Give an array its new shape, if that is not done already."""
    place = hierarchy.location(store, path)
    found = _check_shape(hierarchy.read(store, path), (old, new), place)
    hierarchy.write(store, path, found.resized(new), before=found)
