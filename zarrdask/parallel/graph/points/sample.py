"""``sample``: cubes around points of stored arrays, in memory or as Dask arrays."""

from collections.abc import Mapping
from typing import Any, Literal

import dask.array as da
import numpy as np

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.errors import NodeTypeError, SelectionError, one_of
from zarrdask.formats.indexing.selection import (
    axis_number,
    is_integer,
    whole_region,
    within_bounds,
)
from zarrdask.parallel.graph.points.cube_reads import Cubes, read_at
from zarrdask.parallel.graph.stored_array import StoredArray

Ends = Literal["pad", "clip", "drop"]


def sample(arrays: Any, points: Any, size: Any = 1, *, ends: Ends = "pad") -> Any:
    """Return the cubes around points of one or several stored arrays.

    Each chunk that cubes overlap is decoded once, in whatever order the points are; of Dask arrays
    twice where a cube crosses the border between two tasks.

    Parameters
    ----------
    arrays : Array, dask.array.Array of `from_zarr`, or mapping of str to these
        What to read: stored arrays at once, by all cores, and Dask arrays when they are computed.
        The Dask array must be a whole stored array, or a slice of it, that nothing was computed of.
    points : mapping or array_like
        The positions along some axes, in integers: a dict of names or numbers of axes to sequences
        of one length, or an array of shape ``(points, axes)`` for the first axes. Negative ones
        count from the end. Other axes are whole.
    size : int or mapping, default 1
        The length of the cubes along these axes: one for all, or a dict. The point is in the
        middle; if the length is even, it is the first element after the middle.
    ends : {"pad", "clip", "drop"}
        What is done with cubes that reach beyond the ends of the array: they have the fill value
        there, or the last element repeated, or are left out.

    Returns
    -------
    ndarray or dask.array.Array, or dict of these
        The cubes, along a new first axis, in the order of the points.

    Raises
    ------
    SelectionError
        If a point is outside an array, or the arguments do not fit the arrays.
    NodeTypeError
        If `arrays` are not stored arrays.

    See Also
    --------
    read_many : Reads regions of any shapes.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=(6, 8), dtype="i4", chunks=(3, 4))
    >>> z[...] = np.arange(48).reshape(6, 8)
    >>> sample(z, [[0, 3], [4, 7]], 3)[1].tolist()
    [[30, 31, 0], [38, 39, 0], [46, 47, 0]]
    >>> sample(zarrdask.from_zarr(z), {0: [5, 2]}).shape
    (2, 1, 8)
    """
    one_of(ends, "ends", ("pad", "clip", "drop"))
    is_single = not isinstance(arrays, Mapping)
    named = {"": arrays} if is_single else dict(arrays.items())
    sources = {name: _source(array, name) for name, array in named.items()}
    positions = _positions(points)
    lengths = _lengths(size, list(positions))
    planned = {
        name: _starts(source, positions, lengths, name, known=sources)
        for name, source in sources.items()
    }
    if ends == "drop":
        count = len(next(iter(positions.values()))) if positions else 0
        is_inside = np.ones(count, bool)
        for name, starts in planned.items():
            for axis, (start, length) in starts.items():
                end = sources[name].shape[axis]
                is_inside &= (start >= 0) & (start + length <= end)
        planned = {
            name: {axis: (start[is_inside], n) for axis, (start, n) in starts.items()}
            for name, starts in planned.items()
        }
    results = {
        name: _read(array, sources[name], planned[name], "clip" if ends == "clip" else "pad")
        for name, array in named.items()
    }
    return results[""] if is_single else results


def _source(array: Any, name: str) -> ArrayRegion:
    """Return the region of a stored array that an argument is."""
    if isinstance(array, Array):
        return ArrayRegion(chunks_of(array))
    if isinstance(array, StoredArray) and array.name == array.read_name:
        return array.source
    raise NodeTypeError(
        "cubes are read of stored arrays; of a computed Dask array, store it first, and of a "
        "dataset, pass its variables that zarrdask.from_zarr returns",
        key=f"arrays[{name!r}]" if name else "arrays",
        found=type(array).__name__,
        expected="an array of zarrdask.open_array, or of zarrdask.from_zarr",
    )


def _positions(points: Any) -> dict[int | str, np.ndarray]:
    """Return the positions by axis."""
    if isinstance(points, Mapping):
        positions = {axis: np.asarray(each) for axis, each in points.items()}
    else:
        table = np.asarray(points)
        if table.ndim != 2:
            raise SelectionError(
                "these are not points",
                key="points",
                found=table.shape,
                expected="an array of shape (points, axes), or a dict of axes to positions",
            )
        positions = dict(enumerate(table.T))
    shapes = {each.shape for each in positions.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise SelectionError(
            "each axis needs as many positions, in one dimension",
            key="points",
            found=sorted(shapes),
            expected="sequences of one length",
        )
    return positions


def _lengths(size: Any, axes: list[int | str]) -> dict[int | str, int]:
    """Return the lengths of cubes by axis."""
    lengths = dict(size) if isinstance(size, Mapping) else dict.fromkeys(axes, size)
    for axis in axes:
        length = lengths.get(axis, 1)
        if not is_integer(length) or length < 1:
            raise SelectionError(
                f"this is not a length, for axis {axis!r}",
                key="size",
                found=length,
                expected="an integer from 1",
            )
    unknown = [axis for axis in lengths if axis not in axes]
    if unknown:
        raise SelectionError(
            "the points have no positions along this axis",
            key="size",
            found=unknown[0],
            expected=f"one of {axes}",
        )
    return {axis: int(lengths.get(axis, 1)) for axis in axes}


def _starts(
    source: ArrayRegion,
    wanted: Mapping[int | str, np.ndarray],
    lengths: Mapping[int | str, int],
    name: str,
    *,
    known: Mapping[str, ArrayRegion],
) -> dict[int, tuple[np.ndarray, int]]:
    """Return the first positions of cubes, and their length, by axis of an array."""
    names = _names(source)
    others = {each for other in known.values() for each in _names(other) or ()}
    starts = dict[int, tuple[np.ndarray, int]]()
    for axis, positions in wanted.items():
        if isinstance(axis, str) and axis in others and axis not in (names or ()):
            continue  # The same elements at all positions along it.
        number = axis_number(axis, source.ndim, names, "points")
        try:
            within = within_bounds(positions, number, source.shape[number])
        except SelectionError as error:
            raise error.within(f"points[{axis!r}]") from error.__cause__
        starts[number] = within - lengths[axis] // 2, lengths[axis]
    if not starts:
        raise SelectionError(
            "the array has none of the axes of the points",
            key=f"arrays[{name!r}]",
            found=names,
            expected=f"one of {list(wanted)}",
        )
    return starts


def _names(source: ArrayRegion) -> list[str | None] | None:
    """Return the names of the axes of a region."""
    names = source.metadata.dimension_names
    return None if names is None else [names[axis] for axis in source.axes]


def _read(
    array: Any,
    source: ArrayRegion,
    starts: Mapping[int, tuple[np.ndarray, int]],
    ends: Literal["pad", "clip"],
) -> np.ndarray | da.Array:
    cubes = Cubes(source, {axis: length for axis, (_, length) in starts.items()}, ends=ends)
    first = [starts[axis][0] for axis in cubes.axes]
    if isinstance(array, da.Array):
        return read_at(cubes, first)
    whole = whole_region(tuple(source.shape[axis] for axis in cubes.others))
    return cubes.read(first, whole, threads=None)
