"""A batch of chunks that zarr-python passes to a codec pipeline, as a `Projection`."""

from collections.abc import Iterator, Sequence
from operator import index as as_integer
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from zarrdask.formats.grids.chunk_grid import Index, Shape
from zarrdask.formats.grids.keys import ChunkKeyEncoding
from zarrdask.formats.indexing.projection import Points, Projection
from zarrdask.formats.indexing.selection import Pick

#: A chunk of a batch of zarr-python: its location in a store, a specification, the selected
#: elements of the chunk, their index in the result, and whether they are all that the array has.
Item = tuple[Any, Any, Any, Any, bool]


class Batch(NamedTuple):
    """The chunks of a batch."""

    #: The prefix of the keys of the array: "" or ends with "/".
    prefix: str
    projection: Projection
    #: The axes that an integer selects from, which the values of zarr-python do not have.
    dropped: tuple[int, ...]
    #: Whether each chunk is written as a whole, as far as it is within the array.
    is_complete: bool

    def view(self, values: np.ndarray) -> np.ndarray:
        """Return the values with all axes."""
        return np.expand_dims(values, self.dropped) if self.dropped else values

    def source(self, values: np.ndarray) -> np.ndarray | None:
        """Return values to write with all axes, a scalar repeated; None if they do not fit."""
        outsides = [outside for outside in self.projection.outsides if outside is not ...]
        if not outsides:
            return values if values.ndim == 0 else None
        picks = [outside if isinstance(outside, tuple) else (outside,) for outside in outsides]
        extent = tuple(max(map(_end, along)) for along in zip(*picks, strict=True))
        if values.ndim == 0:
            return np.broadcast_to(values, extent)
        if values.ndim + len(self.dropped) != len(extent):
            return None
        values = self.view(values)
        return values if values.shape == extent else None


def as_batch(items: Sequence[Item], keys: ChunkKeyEncoding, ndim: int) -> Batch | None:
    """Return a batch that is not empty; None if it selects elements in a way that is unknown.

    Parameters
    ----------
    items : sequence of tuple
        What a codec pipeline of zarr-python is called with.
    keys : ChunkKeyEncoding
        The keys of the array.
    ndim : int
        The number of axes of the array.
    """
    parts = keys.key((0,) * ndim).count("/") + 1
    prefix = _prefix(items[0][0].path, parts)
    indices, insides, outsides = list[Index](), list[Any](), list[Any]()
    first = items[0][2]
    dropped = tuple(_integers(first)) if isinstance(first, tuple) else ()
    for location, spec, selection, target, _ in items:
        path: str = location.path
        index = keys.index(path[len(prefix) :], ndim)
        if index is None or not path.startswith(prefix):
            return None
        inside = _inside(selection, spec.shape)
        outside = _outside(target, dropped, ndim)
        if inside is _UNKNOWN or outside is _UNKNOWN:
            return None
        indices.append(index)
        insides.append(inside)
        outsides.append(outside)
    is_complete = all(item[4] for item in items)
    return Batch(prefix, Projection(indices, insides, outsides), dropped, is_complete)


#: A selection that is not one of zarr-python's indexers.
_UNKNOWN: Any = object()


def _prefix(path: str, parts: int) -> str:
    """Return the beginning of a path, before its last parts, with the separator."""
    names = path.split("/")
    return "".join(f"{name}/" for name in names[:-parts])


def _integers(selection: tuple[Any, ...]) -> Iterator[int]:
    return (axis for axis, pick in enumerate(selection) if _is_integer(pick))


def _is_integer(pick: Any) -> bool:
    # Slices first: each chunk has some, and the protocol takes microseconds to check.
    if isinstance(pick, slice | np.ndarray):
        return False
    # Such as the integers of NumPy, but not its durations.
    return isinstance(pick, SupportsIndex)


def _inside(selection: Any, shape: Shape) -> Any:
    """Return the selected elements of a chunk as `Projection.insides` has them."""
    if not isinstance(selection, tuple) or len(selection) != len(shape):
        return _UNKNOWN
    # The elements of several one-dimensional arrays are coordinates; orthogonal ones have all axes.
    arrays = [pick for pick in selection if isinstance(pick, np.ndarray)]
    if len(arrays) > 1 and len(arrays) == len(shape) and all(a.ndim == 1 for a in arrays):
        return Points(tuple(map(_positions, arrays)))
    picks, is_whole = list[Pick](), True
    for axis, (pick, length) in enumerate(zip(selection, shape, strict=True)):
        if isinstance(pick, slice):
            start, stop, step = pick.indices(length)
            is_whole = is_whole and (start, stop, step) == (0, length, 1)
            picks.append(slice(start, stop, step))
        elif _is_integer(pick):
            is_whole = is_whole and length == 1
            at = as_integer(pick)
            picks.append(slice(at, at + 1, 1))
        elif isinstance(pick, np.ndarray) and _is_along(pick, axis, len(arrays)):
            is_whole = False
            picks.append(_positions(pick))
        else:
            return _UNKNOWN
    return None if is_whole else tuple(picks)


def _is_along(pick: np.ndarray, axis: int, arrays: int) -> bool:
    """Whether an array of positions selects along one axis only."""
    if pick.ndim == 1:
        return arrays == 1
    return all(length == 1 for i, length in enumerate(pick.shape) if i != axis)


def _positions(pick: np.ndarray) -> np.ndarray:
    flat = pick.reshape(-1)
    return np.flatnonzero(flat) if flat.dtype == bool else flat


def _outside(outside: Any, dropped: tuple[int, ...], ndim: int) -> Any:
    """Return the index of the elements, with all axes, as `Projection.outsides` has it."""
    if not isinstance(outside, tuple):
        return outside if isinstance(outside, slice | np.ndarray) and not dropped else _UNKNOWN
    if not ndim:
        return ...
    if len(outside) + len(dropped) != ndim:
        return _UNKNOWN
    if not dropped:
        return outside
    picks = iter(outside)
    return tuple(slice(0, 1, 1) if axis in dropped else next(picks) for axis in range(ndim))


def _end(pick: Any) -> int:
    """Return where the positions end that an index along one axis selects."""
    if isinstance(pick, slice):
        return int(pick.stop)
    if pick.dtype == bool:
        return int(pick.size)
    return int(pick.max(initial=-1)) + 1
