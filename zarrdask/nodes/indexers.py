"""``array.oindex``, ``array.vindex`` and ``array.blocks``: other ways to select than NumPy's."""

from typing import Any, Protocol

import numpy as np

from zarrdask.dtypes.generic import as_array
from zarrdask.errors import SelectionError
from zarrdask.grids.base import Shape
from zarrdask.indexing.projection import Points, Request
from zarrdask.indexing.selection import Selection, basic, orthogonal, pointwise
from zarrdask.metadata.model import ArrayMetadata


class Selectable(Protocol):
    """What is asked of an array."""

    @property
    def metadata(self) -> ArrayMetadata:
        """Its description."""

    @property
    def shape(self) -> Shape:
        """In elements."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""

    @property
    def ndim(self) -> int:
        """How many axes there are."""

    def __getitem__(self, index: Any) -> Any:
        """Return what NumPy's index takes."""

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write a value where NumPy's index is."""

    def select(self, selection: Selection, index: Any = ...) -> Any:
        """Return what a selection takes, an index's as NumPy would: a scalar or an array."""

    def assign(self, selection: Selection, value: Any) -> None:
        """Write a value where a selection is."""

    def read(self, request: Request) -> np.ndarray:
        """Return what is wanted."""

    def write(self, request: Request, values: np.ndarray) -> None:
        """Write values of the request's shape."""


class OuterIndex:
    """``array.oindex``: reads and writes the outer product of one selection an axis."""

    def __init__(self, array: Selectable) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        if not self.array.shape:
            return self.array[index]  # without axes all ways to select are one
        return self.array.select(orthogonal(index, self.array.shape), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.array.shape:
            self.array[index] = value
        else:
            self.array.assign(orthogonal(index, self.array.shape), value)


class PointIndex:
    """``array.vindex``: reads and writes points."""

    def __init__(self, array: Selectable) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        if not self.array.shape:
            return self.array[index]
        coordinates = pointwise(index, self.array.shape)
        shape = coordinates[0].shape
        found = self.array.read(_points(coordinates))
        return found.reshape(shape) if shape else found[0]

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
    """``array.blocks``: reads and writes whole stored units, by their index."""

    def __init__(self, array: Selectable) -> None:
        self.array = array

    def _selection(self, index: Any) -> Selection:
        grid = self.array.metadata.grid
        blocks = basic(index, grid.counts)
        plain = all(f == 0 or f == slice(None) for f in blocks.finish)
        if not plain or any(pick.step != 1 for pick in blocks.slices):
            raise SelectionError(
                "blocks are selected by integers and slices of step 1", found=index
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
    """Return a value as an array of a shape and dtype, as NumPy's assignment would.

    Raises
    ------
    SelectionError
        If it does not broadcast.
    """
    try:
        found = _objects(value, shape) if dtype.hasobject else _as_array(value, dtype)
        while found.ndim > len(shape) and len(found) == 1:
            found = found[0]
        return np.broadcast_to(found, shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise SelectionError(
            f"the value does not fit the selection: {error}",
            found=_described(value),
            expected=f"{shape} of {dtype}",
        ) from error


def _as_array(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value.astype(dtype, copy=False)
    return as_array(value, dtype)


def _objects(value: Any, shape: Shape) -> np.ndarray:
    """Return objects that are assigned to a selection of a shape.

    A single element may be a list or an array; only an array without axes is its one element.
    """
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        value = np.asarray(value)  # a stored array, say
    if isinstance(value, np.ndarray) and (shape or not value.ndim):
        return value.astype(object, copy=False)
    if not shape or not isinstance(value, list | tuple):
        cell = np.empty((), object)
        cell[()] = value
        return cell
    try:
        found = np.array(value, object)
        if found.ndim <= len(shape):
            return found
    except ValueError:
        pass  # elements that are arrays, of shapes that do not fit together
    # Lists and arrays below the selection's last axis are elements.
    found = np.empty(shape, object)
    found[...] = value
    return found


def _described(value: Any) -> Any:
    """Return a value's shape if it has one, else the value: for an error."""
    try:
        return np.shape(value) or value
    except ValueError:
        return value
