"""``x.vindex[...]`` of Dask arrays that read stored ones: a read of points, not of blocks."""

from collections.abc import Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.array import core

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.errors import SelectionError
from zarrdask.formats.indexing.selection import basic, expand, is_integer, within_bounds
from zarrdask.parallel.graph.points.cube_reads import read_at
from zarrdask.parallel.graph.points.lazy_positions import read_at_lazy
from zarrdask.parallel.graph.points.region_cubes import Cubes


def points_of(source: ArrayRegion, key: Any) -> da.Array | None:
    """Return ``x.vindex[key]`` of the array that reads a source; None if Dask has to do it.

    The arguments that Dask refuses are left to it, too: it raises its own errors.
    """
    try:
        entries = expand(key, source.ndim, new_axes=False)
        arrays = {
            axis: entry if isinstance(entry, da.Array) else np.asarray(entry)
            for axis, entry in enumerate(entries)
            if not isinstance(entry, slice) and not is_integer(entry)
        }
        if not arrays or any(array.dtype.kind not in "iu" for array in arrays.values()):
            return None
        index = tuple(slice(None) if n in arrays else entry for n, entry in enumerate(entries))
        selection = basic(index, source.shape)
        if selection.turn is not None:
            return None
        is_lazy = any(isinstance(array, da.Array) for array in arrays.values())
        if is_lazy:
            return _lazy_points(source, source.select(selection), selection.kept, arrays)
        sizes = (source.shape[axis] for axis in arrays)
        picked = (within_bounds(a, n, s) for (n, a), s in zip(arrays.items(), sizes, strict=True))
        positions = np.broadcast_arrays(*picked)
    except (SelectionError, ValueError, TypeError):
        return None
    part, shape = source.select(selection), positions[0].shape
    axes = [selection.kept.index(axis) for axis in arrays]
    cubes = Cubes(source.with_elements(part), dict.fromkeys(axes, 1), is_dropped=True)
    starts = dict(zip(axes, (each.reshape(-1) for each in positions), strict=True))
    x = read_at(cubes, [starts[axis] for axis in sorted(starts)])
    if len(shape) == 1:
        return x
    if 0 in shape:  # Dask can't reshape all empty arrays.
        return core.from_array(np.empty((*shape, *x.shape[1:]), x.dtype))
    return x.reshape((*shape, *x.shape[1:]))


def _lazy_points(
    source: ArrayRegion, part: ArrayRegion, kept: Sequence[int], arrays: Mapping[int, Any]
) -> da.Array | None:
    """Return points at positions that are Dask arrays; None if Dask has to do it."""
    positions = {kept.index(axis): core.asanyarray(array) for axis, array in arrays.items()}
    cubes = Cubes(source.with_elements(part), dict.fromkeys(positions, 1), is_dropped=True)
    return read_at_lazy(cubes, [positions[axis] for axis in cubes.axes])
