"""``sample``: cubes around points of stored arrays, in memory or as Dask arrays."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.errors import NodeTypeError, SelectionError, one_of
from zarrdask.formats.indexing.selection import axis_number
from zarrdask.parallel.graph.points.cube_positions import CubePositions, cube_positions
from zarrdask.parallel.graph.points.cube_requests import CubeRequest, Ends, sample_each
from zarrdask.parallel.graph.stored_array import source_of
from zarrdask.parallel.graph.writing.write_job import is_labelled


def sample(arrays: Any, points: Any, size: Any = 1, *, ends: Ends = "pad") -> Any:
    """Return the cubes around points of one or several stored arrays, or of a dataset.

    All arrays are one plan: their requests are in flight together, and each chunk that cubes
    overlap is decoded once, for any order of the points; in Dask arrays, twice where a cube crosses
    the border between two tasks.

    Parameters
    ----------
    arrays : Array, dask.array.Array of `from_zarr`, mapping of str to these, or xarray object
        The arrays to read: stored arrays are read now, by all cores, and Dask arrays when they are
        computed. The Dask array must be a whole stored array, or a slice of it, without any
        computation. The variables of a Dataset or DataArray that zarrdask's engine opened are read
        likewise; any others are indexed by xarray.
    points : mapping or array_like
        The positions along some axes, in integers: a dict of names or numbers of axes to sequences
        of one length, or an array of shape ``(points, axes)`` for the first axes. Negative ones
        count from the end. Other axes are whole. For a Dataset, the names of dimensions; positions
        in DataArrays name the new dimension ("point" by default), and keep their coordinates.
    size : int or mapping, default 1
        The length of the cubes along these axes: one for all, or a dict. The point is in the
        middle; if the length is even, it is the first element after the middle.
    ends : {"pad", "clip", "drop"}
        How cubes that reach beyond the ends of the array are treated: they have the fill value
        there, or the last element repeated, or are left out. Variables of xarray have missing
        values there (NaN, NaT) instead of the fill value, if their type has such a value.

    Returns
    -------
    ndarray or dask.array.Array, dict of these, or xarray object
        The cubes, along a new first axis, in the order of the points. In a Dataset or DataArray,
        coordinates along the dimensions of the points become cubes, too.

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
    if is_labelled(arrays):
        return _sample_labelled(arrays, points, size, ends)
    is_single = not isinstance(arrays, Mapping)
    named = {"": arrays} if is_single else dict(arrays.items())
    sources = {name: _source(array, name) for name, array in named.items()}
    positions = cube_positions(points, size)
    known = {each for source in sources.values() for each in _names(source) or ()}
    axes = {name: _axes(source, positions, name, known) for name, source in sources.items()}
    starts = {
        name: {n: positions.starts(axis, n, sources[name].shape[n]) for n, axis in own.items()}
        for name, own in axes.items()
    }
    if ends == "drop":
        inside = [
            positions.is_inside(axis, start, sources[name].shape[n])
            for name, own in axes.items()
            for (n, axis), start in zip(own.items(), starts[name].values(), strict=True)
        ]
        kept = np.all(inside, axis=0)
        starts = {name: {n: s[kept] for n, s in own.items()} for name, own in starts.items()}
    requests = {
        name: CubeRequest(
            sources[name],
            starts[name],
            {n: positions.lengths[axis] for n, axis in own.items()},
            ends,
            is_lazy=not isinstance(named[name], Array),
        )
        for name, own in axes.items()
    }
    results = sample_each(requests)
    return results[""] if is_single else results


def _sample_labelled(labelled: Any, points: Any, size: Any, ends: Ends) -> Any:
    """Return the cubes of an object of xarray, which zarrdask's accessor of it reads."""
    accessor = getattr(labelled, "zarrdask", None)
    if accessor is None:
        raise NodeTypeError(
            "the cubes of objects of xarray are read by zarrdask.xarray; import it first",
            key="arrays",
            found=type(labelled).__name__,
        )
    return accessor.sample(points, size, ends=ends)


def _source(array: Any, name: str) -> ArrayRegion:
    """Return the region of a stored array that an argument is."""
    if isinstance(array, Array):
        return ArrayRegion(chunks_of(array))
    if (source := source_of(array)) is not None:
        return source
    raise NodeTypeError(
        "cubes are read from stored arrays and datasets only: open a URL first, or store a "
        "computed Dask array first",
        key=f"arrays[{name!r}]" if name else "arrays",
        found=type(array).__name__,
        expected="an array from zarrdask.open_array or zarrdask.from_zarr, or an object of xarray",
    )


def _axes(
    source: ArrayRegion, positions: CubePositions, name: str, known: Set[str | None]
) -> dict[int, int | str]:
    """Return the axes of an array that have positions: their numbers, and what the user calls them.

    `known` are the names of the axes of all arrays.
    """
    names, axes = _names(source), dict[int, int | str]()
    for axis in positions.points:
        if isinstance(axis, str) and axis in known and axis not in (names or ()):
            continue  # The same elements at all positions along it.
        number = axis_number(axis, source.ndim, names, "points")
        if number in axes:
            raise SelectionError(
                "the points have two positions along one axis",
                key="points",
                found=[axes[number], axis],
                expected="one of them",
            )
        axes[number] = axis
    if not axes:
        raise SelectionError(
            "the array has none of the axes of the points",
            key=f"arrays[{name!r}]",
            found=names,
            expected=f"one of {list(positions.points)}",
        )
    return axes


def _names(source: ArrayRegion) -> list[str | None] | None:
    """Return the names of the axes of a region."""
    names = source.metadata.dimension_names
    return None if names is None else [names[axis] for axis in source.axes]
