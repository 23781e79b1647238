"""Selections: what the user asks for, in one normal form.

Every selection is reduced to one *pick* an axis: a slice with a positive step, or an array of
positions. `zarrdask.indexing.projection` takes it from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from zarrdask.errors import SelectionError

Pick = slice | np.ndarray
Region = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection in normal form.

    Attributes
    ----------
    picks : tuple
        One slice (0 <= start <= stop <= size, step > 0) or sorted-or-not array of positions an
        axis.
    shape : tuple of int
        The shape of what the picks give, before `finish`.
    finish : tuple
        The basic index that turns it into what NumPy would give: drops axes that an integer
        picked, turns round those with a negative step, adds new axes.
    """

    picks: tuple[Pick, ...]
    shape: tuple[int, ...]
    finish: tuple[Any, ...]

    @property
    def slices(self) -> Region:
        """The picks of a basic selection, which are all slices."""
        return cast(Region, self.picks)

    @property
    def plain(self) -> bool:
        """Whether `finish` changes nothing."""
        return all(isinstance(f, slice) and f == slice(None) for f in self.finish)


def pick_size(pick: Pick) -> int:
    """How many elements a pick takes."""
    if isinstance(pick, slice):
        return len(range(pick.start, pick.stop, pick.step))
    return len(pick)


def region_shape(region: Region) -> tuple[int, ...]:
    """Return the shape of a region."""
    return tuple(map(pick_size, region))


def whole_region(shape: tuple[int, ...]) -> Region:
    """Return the region that is all of an array."""
    return tuple(slice(0, size, 1) for size in shape)


def index_by_name(picks: Mapping[str, Any], names: Sequence[str | None] | None) -> tuple[Any, ...]:
    """Return the index that picks by the names of axes are: all of the other axes.

    Raises
    ------
    SelectionError
        If a name is not that of one axis.

    Examples
    --------
    >>> index_by_name({"x": slice(2, 4)}, ("t", "x"))
    (slice(None, None, None), slice(2, 4, None))
    """
    axis_names = list(names or ())
    for name in picks:
        if axis_names.count(name) != 1:
            raise SelectionError(
                "not the name of an axis"
                if name not in axis_names
                else "several axes have this name",
                found=name,
                expected=f"one of {axis_names}" if names else "slices: the axes have no names",
            )
    return tuple(picks.get(name, slice(None)) if name else slice(None) for name in axis_names)


def expand(index: Any, ndim: int, *, new_axes: bool = True) -> tuple[Any, ...]:
    """Return the index as a tuple with the ellipsis written out: one entry an axis (and None's).

    Raises
    ------
    SelectionError
        If there are more entries than axes, two ellipses, or a None where none may stand.
    """
    entries = index if isinstance(index, tuple) else (index,)
    indexed = sum(1 for e in entries if e is not None and e is not Ellipsis)
    if not new_axes and any(e is None for e in entries):
        raise SelectionError("np.newaxis is not possible in this selection", found=index)
    if sum(e is Ellipsis for e in entries) > 1:
        raise SelectionError("an index can only have a single ellipsis ('...')", found=index)
    if indexed > ndim:
        raise SelectionError(
            "too many indices", found=index, expected=f"at most {ndim} for this array"
        )
    missing = (slice(None),) * (ndim - indexed)
    if not any(e is Ellipsis for e in entries):
        return (*entries, *missing)
    ellipsis = next(i for i, e in enumerate(entries) if e is Ellipsis)
    return (*entries[:ellipsis], *missing, *entries[ellipsis + 1 :])


def first_out_of_bounds(index: Any, shape: tuple[int, ...]) -> tuple[int, slice] | None:
    """Return the first slice of an index that reaches beyond its axis, where NumPy cuts it.

    Returns
    -------
    (int, slice) or None
        The axis and the slice as it is given; None if all slices lie within the array.

    Examples
    --------
    >>> first_out_of_bounds((slice(2, 4), slice(0, 9)), (4, 8))
    (1, slice(0, 9, None))
    """
    entries = [entry for entry in expand(index, len(shape)) if entry is not None]
    for axis, (entry, size) in enumerate(zip(entries, shape, strict=True)):
        if isinstance(entry, slice):
            ends = [end for end in (entry.start, entry.stop) if end is not None]
            if any(not -size <= end <= size for end in ends):
                return axis, entry
    return None


def is_integer(entry: Any) -> bool:
    """Whether an index entry is one integer: of Python or NumPy (also 0-d), not a bool."""
    if isinstance(entry, np.ndarray):
        return entry.ndim == 0 and entry.dtype.kind in "iu"
    return isinstance(entry, int | np.integer) and not isinstance(entry, bool | np.bool_)


def position(entry: Any, axis: int, size: int) -> int:
    """Return an integer index as a position in 0..size-1.

    Raises
    ------
    SelectionError
        If it is out of bounds.
    """
    if not -size <= entry < size:
        raise SelectionError(
            f"index {entry} is out of bounds for axis {axis} with size {size}",
            found=int(entry),
            expected=f"-{size} to {size - 1}",
        )
    return int(entry) % size


def basic(index: Any, shape: tuple[int, ...]) -> Selection:
    """Normalise a NumPy basic index: integers, slices, an ellipsis, new axes.

    Raises
    ------
    SelectionError
        If it is something else, or out of bounds.
    """
    picks: list[Pick] = []
    finish: list[Any] = []
    for entry in expand(index, len(shape)):
        if entry is None:
            finish.append(None)
            continue
        axis = len(picks)
        size = shape[axis]
        if isinstance(entry, slice):
            pick, finisher = _slice(entry, axis, size)
            picks.append(pick)
            finish.append(finisher)
        elif is_integer(entry):
            start = position(entry, axis, size)
            picks.append(slice(start, start + 1, 1))
            finish.append(0)
        else:
            raise SelectionError(
                "only integers, slices, '...' and np.newaxis are basic indices",
                found=entry,
                expected="one of those, or oindex / vindex for lists and masks",
            )
    return Selection(tuple(picks), tuple(map(pick_size, picks)), tuple(finish))


def is_basic(index: Any) -> bool:
    """Whether an index is made of integers, slices, an ellipsis and new axes only."""
    entries = index if isinstance(index, tuple) else (index,)
    return all(e is None or e is Ellipsis or isinstance(e, slice) or is_integer(e) for e in entries)


def scalar_mask(index: Any) -> tuple[bool, tuple[Any, ...]] | None:
    """Return the 0-d mask of an index, and the index with a new axis in its place.

    To NumPy, such a mask adds an axis, which has one element if the mask is true and none if it is
    false.

    Returns
    -------
    tuple or None
        None if the index has another number of such masks, or is not made of slices, an ellipsis
        and new axes otherwise: NumPy moves the axis then.

    Examples
    --------
    >>> scalar_mask((np.array(True), slice(2, 4)))
    (True, (None, slice(2, 4, None)))
    >>> scalar_mask(0) is None
    True
    """
    entries = index if isinstance(index, tuple) else (index,)
    masks = [i for i, entry in enumerate(entries) if _is_scalar_mask(entry)]
    if len(masks) != 1:
        return None
    before, after = entries[: masks[0]], entries[masks[0] + 1 :]
    if not all(e is None or e is Ellipsis or isinstance(e, slice) for e in (*before, *after)):
        return None
    return bool(entries[masks[0]]), (*before, None, *after)


def _is_scalar_mask(entry: Any) -> bool:
    if isinstance(entry, np.ndarray):
        return entry.ndim == 0 and entry.dtype == bool
    return isinstance(entry, bool | np.bool_)


def _slice(entry: slice, axis: int, size: int) -> tuple[slice, slice]:
    """Return a slice with a positive step, and the slice that restores its direction."""
    try:
        taken = range(*entry.indices(size))
    except (TypeError, ValueError) as error:
        raise SelectionError(f"axis {axis}: {error}", found=entry) from error
    if not taken:
        return slice(0, 0, 1), slice(None)
    if taken.step > 0:
        return slice(taken.start, taken[-1] + 1, taken.step), slice(None)
    return slice(taken[-1], taken[0] + 1, -taken.step), slice(None, None, -1)


def orthogonal(index: Any, shape: tuple[int, ...]) -> Selection:
    """Normalise an orthogonal (outer) index: a slice, integer, list or 1-d mask for each axis.

    Raises
    ------
    SelectionError
        If an entry does not fit its axis.
    """
    picks: list[Pick] = []
    finish: list[Any] = []
    for axis, (entry, size) in enumerate(
        zip(expand(index, len(shape), new_axes=False), shape, strict=True)
    ):
        pick: Pick
        finisher: Any = slice(None)
        if isinstance(entry, slice):
            pick, finisher = _slice(entry, axis, size)
        elif is_integer(entry):
            start = position(entry, axis, size)
            pick, finisher = slice(start, start + 1, 1), 0
        else:
            pick = positions(entry, axis, size)
        picks.append(pick)
        finish.append(finisher)
    return Selection(tuple(picks), tuple(map(pick_size, picks)), tuple(finish))


def positions(entry: Any, axis: int, size: int) -> np.ndarray:
    """Return a list or 1-d mask as an array of positions in 0..size-1.

    Raises
    ------
    SelectionError
        If it has another number of dimensions, another type, or is out of bounds.
    """
    array = np.asarray(entry)
    if array.ndim != 1:
        raise SelectionError(f"axis {axis}: a list of indices must be 1-d", found=array.shape)
    if array.dtype == bool:
        if len(array) != size:
            raise SelectionError(
                f"axis {axis}: the mask has another length than the axis",
                found=len(array),
                expected=str(size),
            )
        return np.nonzero(array)[0]
    return within_bounds(array, axis, size)


def within_bounds(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Return integer indices of any shape counted from the start of the axis.

    Raises
    ------
    SelectionError
        If they aren't integers or one is out of bounds.
    """
    if array.size == 0:
        return array.astype(np.intp)
    if array.dtype.kind not in "iu":
        raise SelectionError(
            f"axis {axis}: indices must be integers", found=str(array.dtype), expected="integers"
        )
    low, high = int(array.min()), int(array.max())
    for bound in (low, high):
        if not -size <= bound < size:
            raise SelectionError(
                f"index {bound} is out of bounds for axis {axis} with size {size}",
                found=bound,
                expected=f"-{size} to {size - 1}",
            )
    array = array.astype(np.intp)
    return np.where(array < 0, array + size, array) if low < 0 else array


def pointwise(index: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Normalise a coordinate (pointwise) index, or a mask of the array's own shape.

    Returns
    -------
    tuple of ndarray of int
        One array of positions an axis, all of one shape: the shape of the result.

    Raises
    ------
    SelectionError
        If the arrays don't broadcast together, or one does not fit its axis.
    """
    entries = index if isinstance(index, tuple) else (index,)
    if len(entries) == 1:
        mask = np.asarray(entries[0])
        if mask.dtype == bool and mask.ndim == len(shape):
            if mask.shape != shape:
                raise SelectionError(
                    "the mask has another shape than the array", found=mask.shape, expected=shape
                )
            return np.nonzero(mask)
    if len(entries) != len(shape):
        raise SelectionError(
            "a vectorised selection needs one array of indices for each axis, or one mask",
            found=f"{len(entries)} entries",
            expected=str(len(shape)),
        )
    try:
        arrays = np.broadcast_arrays(*map(np.asarray, entries))
    except ValueError as error:
        raise SelectionError(f"the indices don't broadcast together: {error}") from error
    return tuple(
        within_bounds(a, axis, size)
        for axis, (a, size) in enumerate(zip(arrays, shape, strict=True))
    )
