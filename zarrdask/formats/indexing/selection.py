"""Selections: NumPy-like indices in a normal form.

Every index becomes one *pick* for each axis: a slice with a positive step, or an array of
positions. `zarrdask.formats.indexing.projection` finds the chunks that the picks overlap.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zarrdask.errors import SelectionError

Pick = slice | np.ndarray
Region = tuple[slice, ...]

#: The slice that selects all of an axis.
_ALL = slice(None)


class Selection(NamedTuple):
    """A selection in normal form."""

    #: For each axis a slice (0 <= start <= stop <= size, step > 0), or an array of positions, in
    #: any order.
    picks: tuple[Pick, ...]
    #: The basic index that turns the picked elements into NumPy's result: it drops axes that an
    #: integer indexed, reverses those with a negative step, and adds new axes.
    finish: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the picked elements, before `finish` is applied."""
        return tuple(map(pick_size, self.picks))

    @property
    def slices(self) -> Region:
        """The picks of a basic selection, all of which are slices."""
        return self.picks  # type: ignore[return-value]

    @property
    def plain(self) -> bool:
        """Whether `finish` changes nothing."""
        return self.finish == (_ALL,) * len(self.finish)

    @property
    def undo(self) -> tuple[Any, ...]:
        """The basic index that turns NumPy's result, or a value for it, into the picked elements.

        An axis that `finish` drops from a result is a new axis of the value, and conversely.
        """
        return tuple(0 if f is None else None if f == 0 else f for f in self.finish)

    @property
    def kept(self) -> tuple[int, ...]:
        """The axes that `finish` does not drop."""
        return tuple(i for i, f in enumerate(f for f in self.finish if f is not None) if f != 0)

    @property
    def turn(self) -> tuple[Any, ...] | None:
        """The part of `finish` for the axes that it keeps, or None if that changes nothing."""
        turn = tuple(f for f in self.finish if f != 0)
        return None if turn == (slice(None),) * len(turn) else turn


def finished(values: np.ndarray, selection: Selection) -> np.ndarray:
    """Return NumPy's result for a selection, whose picked elements are given."""
    for each in selection.finish:
        if each is not _ALL and each != _ALL:
            result: np.ndarray = values[selection.finish]
            return result
    return values


def pick_size(pick: Pick) -> int:
    """Return the number of elements that a pick selects."""
    if isinstance(pick, slice):
        if pick.step == 1:
            size: int = max(pick.stop - pick.start, 0)
            return size
        return len(range(pick.start, pick.stop, pick.step))
    return len(pick)


def region_shape(region: Region) -> tuple[int, ...]:
    """Return the shape of a region."""
    # Nearly all slices are like the first kind: a call for each takes longer.
    sizes = [p.stop - p.start if p.step == 1 and p.start < p.stop else pick_size(p) for p in region]
    return tuple(sizes)


def whole_region(shape: tuple[int, ...]) -> Region:
    """Return the region that covers an array."""
    return tuple(slice(0, size, 1) for size in shape)


def shifted(region: Region, start: tuple[int, ...]) -> Region:
    """Return a region moved by the index `start`.

    >>> shifted((slice(0, 2, 1),), (5,))
    (slice(5, 7, 1),)
    """
    pairs = zip(region, start, strict=True)
    return tuple(slice(pick.start + n, pick.stop + n, 1) for pick, n in pairs)


def intersection(one: Region, other: Region) -> Region:
    """Return the elements that are in two regions without steps.

    >>> intersection((slice(0, 4, 1), slice(0, 2, 1)), (slice(3, 9, 1), slice(5, 6, 1)))
    (slice(3, 4, 1), slice(5, 5, 1))
    """
    starts = [max(a.start, b.start) for a, b in zip(one, other, strict=True)]
    stops = [min(a.stop, b.stop) for a, b in zip(one, other, strict=True)]
    return tuple(slice(a, max(a, b), 1) for a, b in zip(starts, stops, strict=True))


def index_by_name(
    picks: Mapping[str, Any], names: Sequence[str | None] | None, key: str = "region"
) -> tuple[Any, ...]:
    """Return the index for entries given by the names of axes; other axes are selected whole.

    `key` is the argument of the user, for errors.

    >>> index_by_name({"x": slice(2, 4)}, ("t", "x"))
    (slice(None, None, None), slice(2, 4, None))
    """
    axis_names = list(names or ())
    for name in picks:
        if axis_names.count(name) != 1:
            raise SelectionError(
                "unknown name of an axis"
                if name not in axis_names
                else "several axes have this name",
                key=key,
                found=name,
                expected=f"one of {axis_names}" if names else "slices: the axes have no names",
            )
    return tuple(picks.get(name, slice(None)) if name else slice(None) for name in axis_names)


def axis_number(axis: Any, ndim: int, names: Sequence[str | None] | None, key: str = "axis") -> int:
    """Return the number of an axis that a user passes by number, from the end too, or by name.

    `key` is the argument of the user, for errors.

    Examples
    --------
    >>> axis_number("x", 2, ("t", "x")), axis_number(-2, 2, None)
    (1, 0)
    """
    axis_names = list(names or ())
    if isinstance(axis, str) and axis_names.count(axis) == 1:
        return axis_names.index(axis)
    if is_integer(axis) and -ndim <= int(axis) < ndim:
        return int(axis) % ndim
    if isinstance(axis, str) and axis in axis_names:
        raise SelectionError(
            "several axes have this name; pass the number of one",
            key=key,
            found=axis,
            expected=f"a number from {-ndim} to {ndim - 1}",
        )
    expected = f"one of {axis_names}" if names else f"a number from {-ndim} to {ndim - 1}"
    raise SelectionError(
        "the array has no such axis",
        key=key,
        found=axis,
        expected=expected if ndim else "an array with axes",
    )


def expand(index: Any, ndim: int, *, new_axes: bool = True) -> tuple[Any, ...]:
    """Return an index as a tuple with the ellipsis written out: one entry for each axis, and None.

    `new_axes` says whether the index may contain None, which adds an axis.
    """
    entries = index if isinstance(index, tuple) else (index,)
    added = ellipses = 0
    for entry in entries:
        if entry is None:
            added += 1
        elif entry is Ellipsis:
            ellipses += 1
    indexed = len(entries) - added - ellipses
    if added and not new_axes:
        raise SelectionError("this selection does not take np.newaxis", found=index)
    if ellipses > 1:
        raise SelectionError("an index can only have a single ellipsis ('...')", found=index)
    if indexed > ndim:
        raise SelectionError(
            "too many indices", found=index, expected=f"at most {ndim} for this array"
        )
    missing = (slice(None),) * (ndim - indexed)
    if not ellipses:
        return (*entries, *missing)
    at = next(i for i, e in enumerate(entries) if e is Ellipsis)
    return (*entries[:at], *missing, *entries[at + 1 :])


def first_out_of_bounds(index: Any, shape: tuple[int, ...]) -> tuple[int, slice] | None:
    """Return the first slice of an index that reaches beyond its axis, with the axis; or None.

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


def find_region(
    region: Any, shape: tuple[int, ...], names: Sequence[str | None] | None, key: str = "region"
) -> Region:
    """Return a region that a user passes as a tuple of slices, one for each axis of an array.

    ``"auto"``, as a whole or along an axis, raises an error: it needs coordinates that arrays lack.
    `key` is the argument of the user, for errors.
    """
    if _is_auto(region):
        raise SelectionError(
            "an array has no coordinates by which to find a region; pass slices, or write a "
            "dataset with zarrdask.xarray.to_zarr",
            key=key,
            found=region,
            expected="slices, or a dict of names of dimensions to slices",
        )
    if isinstance(region, Mapping):
        region = index_by_name(region, names, key)
    if isinstance(region, list) and all(isinstance(pick, slice) for pick in region):
        region = tuple(region)
    try:
        selection = basic(() if region is None else region, shape)
    except SelectionError as error:
        raise error.within(key) from error.__cause__
    picks = selection.slices
    if not selection.plain or any(pick.step != 1 for pick in picks):
        raise SelectionError(
            "a region must consist of slices without a step", key=key, found=region
        )
    outside = first_out_of_bounds(() if region is None else region, shape)
    if outside is not None:
        axis, pick = outside
        raise SelectionError(
            f"the region extends beyond the array along axis {axis}",
            key=key,
            found=pick,
            expected=f"a slice within 0 to {shape[axis]}, or a longer array (resize, append)",
        )
    return picks


def _is_auto(region: Any) -> bool:
    """Whether a region is to be determined by coordinates, as in xarray."""
    picks = region.values() if isinstance(region, Mapping) else region
    picks = picks if is_iterable(picks) and not isinstance(picks, str) else (picks,)
    return any(isinstance(pick, str) and pick == "auto" for pick in picks)


def is_iterable(value: Any) -> bool:
    """Whether a value has items: an array without axes has none, though it is an `Iterable`."""
    return isinstance(value, Iterable) and getattr(value, "shape", None) != ()


def is_integer(entry: Any) -> bool:
    """Whether an index entry is an integer: Python's, NumPy's or a 0-d array, but not a bool."""
    if isinstance(entry, np.ndarray):
        return entry.ndim == 0 and entry.dtype.kind in "iu"
    # NumPy's durations are an `np.integer`, too.
    other = bool | np.bool_ | np.timedelta64
    return isinstance(entry, int | np.integer) and not isinstance(entry, other)


def position(entry: Any, axis: int, size: int) -> int:
    """Return an integer index as a position in 0..size-1."""
    if not -size <= entry < size:
        raise SelectionError(
            f"index {entry} is out of bounds for axis {axis} with size {size}",
            found=int(entry),
            expected=f"-{size} to {size - 1}" if size else "no index: the axis is empty",
        )
    return int(entry) % size


def basic(index: Any, shape: tuple[int, ...], *, outer: bool = False) -> Selection:
    """Normalise a NumPy basic index: integers, slices, an ellipsis, new axes.

    An `outer` index may also have lists and 1-d masks, but no new axes.
    """
    region = _plain_region(index, shape)
    if region is not None:
        return Selection(region, (_ALL,) * len(shape))
    picks: list[Pick] = []
    finish: list[Any] = []
    for entry in expand(index, len(shape), new_axes=not outer):
        if entry is None:
            finish.append(None)
            continue
        axis, size = len(picks), shape[len(picks)]
        pick: Pick
        finisher: Any = _ALL
        if isinstance(entry, slice):
            pick, finisher = _slice(entry, axis, size)
        elif is_integer(entry):
            start = position(entry, axis, size)
            pick, finisher = slice(start, start + 1, 1), 0
        elif outer:
            pick = positions(entry, axis, size)
        else:
            raise SelectionError(
                "only integers, slices, '...' and np.newaxis are basic indices",
                found=entry,
                expected="one of those, or oindex / vindex for lists and masks",
            )
        picks.append(pick)
        finish.append(finisher)
    return Selection(tuple(picks), tuple(finish))


def _plain_region(index: Any, shape: tuple[int, ...]) -> Region | None:
    """Return an index as a region if it is one, as the slices of Dask's blocks are; or None."""
    if type(index) is not tuple or len(index) != len(shape):
        return None
    picks = []
    for entry, size in zip(index, shape, strict=True):
        if type(entry) is not slice or entry.step is not None:
            return None
        start, stop = entry.start, entry.stop
        if type(start) is not int or type(stop) is not int or not 0 <= start < stop <= size:
            return None
        picks.append(slice(start, stop, 1))
    return tuple(picks)


def is_basic(index: Any) -> bool:
    """Whether an index has no other entries than integers, slices, ellipses and None."""
    entries = index if isinstance(index, tuple) else (index,)
    for entry in entries:
        if not (isinstance(entry, slice) or entry is None or entry is ... or is_integer(entry)):
            return False
    return True


def _slice(entry: slice, axis: int, size: int) -> tuple[slice, slice]:
    """Return a slice with a positive step, and the slice that restores its direction."""
    try:
        taken = range(*entry.indices(size))
    except (TypeError, ValueError) as error:
        raise SelectionError(f"axis {axis}: {error}", found=entry) from error
    if not taken:
        return slice(0, 0, 1), _ALL
    if taken.step > 0:
        return slice(taken.start, taken[-1] + 1, taken.step), _ALL
    return slice(taken[-1], taken[0] + 1, -taken.step), slice(None, None, -1)


def positions(entry: Any, axis: int, size: int) -> np.ndarray:
    """Return a list or 1-d mask as an array of positions in 0..size-1."""
    array = np.asarray(entry)
    if array.ndim != 1:
        raise SelectionError(f"axis {axis}: a list of indices must be 1-d", found=array.shape)
    if array.dtype == bool:
        if len(array) != size:
            raise SelectionError(
                f"axis {axis}: the mask must be as long as the axis",
                found=len(array),
                expected=str(size),
            )
        return np.nonzero(array)[0]
    return within_bounds(array, axis, size)


def within_bounds(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Return integer indices of any shape, with negative ones counted from the start."""
    if array.size == 0:
        return array.astype(np.intp)
    if array.dtype.kind not in "iu":
        raise SelectionError(
            f"axis {axis}: indices must be integers", found=str(array.dtype), expected="integers"
        )
    low, high = int(array.min()), int(array.max())
    for bound in (low, high):
        position(bound, axis, size)
    array = array.astype(np.intp)
    return np.where(array < 0, array + size, array) if low < 0 else array


def pointwise(index: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Normalise a coordinate (pointwise) index, or a mask of the array's own shape.

    The result has one array of positions for each axis, all in the shape of the selected elements.
    """
    entries = index if isinstance(index, tuple) else (index,)
    if len(entries) == 1:
        mask = np.asarray(entries[0])
        if mask.dtype == bool and mask.ndim == len(shape):
            if mask.shape != shape:
                raise SelectionError(
                    "the mask must have the shape of the array", found=mask.shape, expected=shape
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
        if any(np.asarray(entry).dtype == bool for entry in entries):
            raise masks_error(index) from None
        raise SelectionError(f"the indices don't broadcast together: {error}") from error
    if any(array.dtype == bool for array in arrays):
        raise masks_error(index)
    return tuple(
        within_bounds(a, axis, size)
        for axis, (a, size) in enumerate(zip(arrays, shape, strict=True))
    )


def masks_error(index: Any) -> SelectionError:
    """Return the error for masks along axes where points are selected."""
    return SelectionError(
        "masks along several axes can mean two things: use array.oindex[mask1, mask2] for all "
        "elements in the selected rows and columns, or array.vindex[np.nonzero(mask1)[0], "
        "np.nonzero(mask2)[0]] for the points that NumPy selects",
        found=index,
    )
