"""``array.oindex``, ``array.vindex`` and ``array.blocks``: selections that NumPy does not have."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from zarrdask.arrays.chunks.cast import check_dense, from_user
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import SelectionError, ZarrdaskError
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.projection import Points, Request
from zarrdask.formats.indexing.selection import (
    Selection,
    basic,
    expand,
    is_basic,
    is_integer,
    pointwise,
)
from zarrdask.formats.metadata.model import ArrayMetadata


class Indexed(Protocol):
    """A stored array, as far as its indexing needs it."""

    @property
    def shape(self) -> Shape:
        """The lengths of the axes, in elements."""

    @property
    def ndim(self) -> int:
        """The number of axes."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the elements."""

    @property
    def node_path(self) -> NodePath:
        """The location of the array."""

    @property
    def metadata(self) -> ArrayMetadata:
        """The metadata of the array."""

    def __getitem__(self, index: Any) -> Any: ...

    def __setitem__(self, index: Any, value: Any) -> None: ...

    def _read(self, request: Request) -> np.ndarray:
        """Return the requested elements."""

    def _write(self, request: Request, values: np.ndarray) -> None:
        """Write values to the requested elements."""


@dataclass(frozen=True, slots=True)
class OuterIndex:
    """``array.oindex``: selects each axis independently.

    The result is the outer product of a slice, integer, list of positions or mask for each axis.
    """

    array: Indexed

    def __getitem__(self, index: Any) -> Any:
        if not self.array.shape:
            return self.array[index]  # without axes all kinds of selection are the same
        return select(self.array, basic(index, self.array.shape, outer=True), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.array.shape:
            self.array[index] = value
        else:
            assign(self.array, basic(index, self.array.shape, outer=True), value)


@dataclass(frozen=True, slots=True)
class PointIndex:
    """``array.vindex``: selects points, by positions along each axis or by one mask."""

    array: Indexed

    def __getitem__(self, index: Any) -> Any:
        if not self.array.shape:
            return self.array[index]
        coordinates = pointwise(index, self.array.shape)
        shape = coordinates[0].shape
        values = self.array._read(_points(coordinates))
        return values.reshape(shape) if shape else values[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.array.shape:
            self.array[index] = value
            return
        coordinates = pointwise(index, self.array.shape)
        values = broadcast(value, coordinates[0].shape, self.array)
        self.array._write(_points(coordinates), values.reshape(-1))


def _points(coordinates: tuple[np.ndarray, ...]) -> Points:
    return Points(tuple(c.reshape(-1) for c in coordinates))


@dataclass(frozen=True, slots=True)
class BlockIndex:
    """``array.blocks``: selects whole chunks, or shards if there are any, by their indices."""

    array: Indexed

    def _selection(self, index: Any) -> Selection:
        grid = self.array.metadata.grid
        blocks = basic(index, grid.counts)
        without_new_axes = all(f == 0 or f == slice(None) for f in blocks.finish)
        if not without_new_axes or any(pick.step != 1 for pick in blocks.slices):
            raise SelectionError(
                "chunks can't be selected by this index",
                found=index,
                expected="integers and slices of step 1",
            )
        region = tuple(
            slice(min(start, size), min(stop, size), 1)
            for start, stop, size in zip(
                grid.start(tuple(pick.start for pick in blocks.slices)),
                grid.start(tuple(pick.stop for pick in blocks.slices)),
                grid.shape,
                strict=True,
            )
        )
        return basic(region, self.array.shape)

    def __getitem__(self, index: Any) -> Any:
        return select(self.array, self._selection(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        assign(self.array, self._selection(index), value)


def select(array: Indexed, selection: Selection, index: Any = ...) -> Any:
    """Return the elements of a selection, as NumPy would for the index that it was made from.

    NumPy returns an array without axes, not a scalar, if the index has "...".
    """
    values = array._read(selection.picks)
    if selection.plain and values.ndim:
        return values
    ellipsis = index is ... or (isinstance(index, tuple) and any(e is ... for e in index))
    return values[(*selection.finish, ...) if ellipsis else selection.finish]


def assign(array: Indexed, selection: Selection, value: Any) -> None:
    """Write a value to a selection, broadcast as by NumPy."""
    if selection.plain:
        array._write(selection.picks, broadcast(value, selection.shape, array))
        return
    result = result_shape(selection.shape, selection.finish)
    # "..." keeps an array: a scalar of text or bytes would be indexed by characters.
    array._write(selection.picks, broadcast(value, result, array)[(*selection.undo, ...)])


def read_index(array: Indexed, index: Any) -> Any:
    """Return the elements that an index which is not basic selects: fields, lists and masks."""
    if isinstance(index, str):
        if index not in (array.dtype.names or ()):
            raise SelectionError(
                "the data type of the array has no such field",
                found=index,
                expected=str(array.dtype),
            )
        return array[...][index]
    mask = scalar_mask(index)
    if mask is None:
        return fancy_index(array, index)[index]
    is_selected, new_axis = mask
    return (
        array[new_axis] if is_selected else np.empty(result_shape(array.shape, index), array.dtype)
    )


def write_index(array: Indexed, index: Any, value: Any) -> None:
    """Write a value to the elements that an index which is not basic selects."""
    if isinstance(index, str):
        raise SelectionError("a single field can't be written; write whole elements", found=index)
    mask = scalar_mask(index)
    if mask is None:
        fancy_index(array, index)[index] = value
        return
    is_selected, new_axis = mask
    if is_selected:
        array[new_axis] = value
    else:
        # Nothing is written, but invalid values are an error all the same.
        broadcast(value, result_shape(array.shape, index), array)


def fancy_index(array: Indexed, index: Any) -> OuterIndex | PointIndex:
    """Return the selector that does what an index with lists or masks means in NumPy."""
    entries = index if isinstance(index, tuple) else (index,)
    # A tuple among the entries is a list of positions, not an index.
    lists = [e for e in entries if not is_basic((e,))]
    if any(np.ndim(e) == 0 for e in lists):
        raise SelectionError(
            "an array can't be indexed by this",
            found=index,
            expected="integers, slices, '...', None, lists and masks",
        )
    if len(entries) == 1 and np.ndim(entries[0]) == array.ndim and array.ndim > 1:
        return PointIndex(array)
    if len(lists) == len(entries) == array.ndim and (array.ndim > 1 or np.ndim(lists[0]) > 1):
        return PointIndex(array)
    full = expand(index, array.ndim)
    advanced = [i for i, e in enumerate(full) if is_integer(e) or not is_basic((e,))]
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    if len(lists) == 1 and np.ndim(lists[0]) == 1 and together:
        return OuterIndex(array)
    raise SelectionError(
        "NumPy's result for this mixture of lists, integers and slices is easily misread; "
        "use array.oindex to select each axis independently, or array.vindex for points",
        found=index,
    )


def result_shape(shape: Shape, index: Any) -> Shape:
    """Return the shape of NumPy's result for an index of an array with a shape."""
    taken: np.ndarray = np.broadcast_to(np.False_, shape)[index]
    return taken.shape


def broadcast(value: Any, shape: Shape, array: Indexed) -> np.ndarray:
    """Return a value in a shape and an array's data type, converted as by NumPy's assignment."""
    dtype = array.dtype
    check_dense(value, array.node_path)
    try:
        if dtype.hasobject:
            values = _objects(value, shape)
        else:
            values = from_user(value, dtype, array.node_path)
        while values.ndim > len(shape) and len(values) == 1:
            values = values[0]
        values = values if values.shape == shape else np.broadcast_to(values, shape)
    except ZarrdaskError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise SelectionError(
            f"the value does not fit the selection: {error}",
            found=_shape_or_value(value),
            expected=f"{shape} of {dtype}",
        ) from error
    return values


def _objects(value: Any, shape: Shape) -> np.ndarray:
    """Return a value that is assigned to a selection of a shape as an array of objects.

    If a single element is selected, the value is that element, be it a list or an array with axes;
    an array without axes stands for its element.
    """
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        value = np.asarray(value)  # for example a stored array
    if isinstance(value, np.ndarray) and (shape or not value.ndim):
        return value.astype(object, copy=False)
    if not shape or not isinstance(value, list | tuple):
        cell = np.empty((), object)
        cell[()] = value
        return cell
    try:
        values = np.array(value, object)
        if values.ndim <= len(shape):
            return values
    except ValueError:
        pass  # the elements are arrays whose shapes do not make one array
    # Lists and arrays below the last axis of the selection are elements.
    values = np.empty(shape, object)
    values[...] = value
    return values


def _shape_or_value(value: Any) -> Any:
    """Return the shape of a value if it has axes, else the value, to be named in an error."""
    try:
        return np.shape(value) or value
    except ValueError:
        return value


def scalar_mask(index: Any) -> tuple[bool, tuple[Any, ...]] | None:
    """Return the 0-d mask of an index, and the index with a new axis instead.

    To NumPy, such a mask adds an axis with one element if the mask is true, else with none. The
    result is None if there is not exactly one such mask, or if there are entries other than slices,
    an ellipsis and None beside it, for which NumPy puts the axis elsewhere.

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
