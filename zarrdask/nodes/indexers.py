"""``array.oindex``, ``array.vindex`` and ``array.blocks``: selections that NumPy does not have."""

from typing import Any, Protocol

import numpy as np

from zarrdask.dtypes.generic import as_array
from zarrdask.errors import SelectionError
from zarrdask.grids.base import Shape
from zarrdask.indexing.projection import Points, Request
from zarrdask.indexing.selection import Selection, basic, orthogonal, pointwise
from zarrdask.metadata.model import ArrayMetadata


class Selectable(Protocol):
    """The part of an array's interface that the indexers use."""

    @property
    def metadata(self) -> ArrayMetadata:
        """The parsed documents of the array."""

    @property
    def shape(self) -> Shape:
        """The lengths of the axes, in elements."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the elements."""

    @property
    def ndim(self) -> int:
        """The number of axes."""

    def __getitem__(self, index: Any) -> Any:
        """Return the elements of an index, as in NumPy."""

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write a value to an index, as in NumPy."""

    def select(self, selection: Selection, index: Any = ...) -> Any:
        """Return the elements of a selection that was made from an index: a scalar or an array."""

    def assign(self, selection: Selection, value: Any) -> None:
        """Write a value to a selection."""

    def read(self, request: Request) -> np.ndarray:
        """Return the requested elements."""

    def write(self, request: Request, values: np.ndarray) -> None:
        """Write values with the shape of the request to the requested elements."""


class OuterIndex:
    """``array.oindex``: selects each axis independently.

    The result is the outer product of a slice, integer, list of positions or mask for each axis.
    """

    def __init__(self, array: Selectable) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        if not self.array.shape:
            return self.array[index]  # without axes all kinds of selection are the same
        return self.array.select(orthogonal(index, self.array.shape), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.array.shape:
            self.array[index] = value
        else:
            self.array.assign(orthogonal(index, self.array.shape), value)


class PointIndex:
    """``array.vindex``: selects points, by positions along each axis or by one mask."""

    def __init__(self, array: Selectable) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        if not self.array.shape:
            return self.array[index]
        coordinates = pointwise(index, self.array.shape)
        shape = coordinates[0].shape
        values = self.array.read(_points(coordinates))
        return values.reshape(shape) if shape else values[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.array.shape:
            self.array[index] = value
            return
        coordinates = pointwise(index, self.array.shape)
        values = broadcast(value, coordinates[0].shape, self.array.dtype)
        self.array.write(_points(coordinates), values.reshape(-1))


def _points(coordinates: tuple[np.ndarray, ...]) -> Points:
    return Points(tuple(c.reshape(-1) for c in coordinates))


class BlockIndex:
    """``array.blocks``: selects whole chunks, or shards if there are any, by their indices."""

    def __init__(self, array: Selectable) -> None:
        self.array = array

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
        return self.array.select(self._selection(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array.assign(self._selection(index), value)


def broadcast(value: Any, shape: Shape, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a value as an array with a shape and data type, converted as by NumPy's assignment."""
    try:
        if dtype.hasobject:
            values = _objects(value, shape)
        elif isinstance(value, np.ndarray):
            values = value.astype(dtype, copy=False)
        else:
            values = as_array(value, dtype)
        while values.ndim > len(shape) and len(values) == 1:
            values = values[0]
        return np.broadcast_to(values, shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise SelectionError(
            f"the value does not fit the selection: {error}",
            found=_shape_or_value(value),
            expected=f"{shape} of {dtype}",
        ) from error


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
