"""Load all variables of a dataset, data array or tree together."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
from xarray import DataArray, Dataset, DataTree, Variable

from zarrdask.arrays.chunks.read import request_shape
from zarrdask.arrays.chunks.together import ArrayRead, read_together
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array
from zarrdask.formats.indexing.projection import Points
from zarrdask.runtime import buffers
from zarrdask.xarray.lazy import requested_by, serving


def load(obj: Any, **options: Any) -> Any:
    """Load the values of an object of xarray, as its method `load` does, and return it.

    The variables that zarrdask's engine opened without Dask are read together: their requests are
    in flight at the same time, and all threads decode them. Any other variable is loaded by xarray.
    """
    reads, variables = list[ArrayRead](), list[tuple[Variable, Any]]()
    for variable in _variables(obj):
        if variable.chunks is not None:
            continue  # of Dask
        request = requested_by(variable.load)
        if request is not None:
            chunks, picks = request
            out = buffers.empty(request_shape(picks), chunks.metadata.dtype)
            reads.append(ArrayRead(chunks, picks, out))
            variables.append((variable, out))
    with closing(read_together(reads)) as completed:
        reads.clear()
        for number in completed:
            (variable, out), variables[number] = variables[number], (None, None)
            # In this thread, as xarray changes the filters of warnings while it decodes.
            with serving(out):
                variable.load()
            del out
    return obj.load(**options)


def as_dask_arrays(obj: Any) -> Dataset:
    """Return the reads of an object, as a dataset of Dask arrays of one block.

    Positions along an axis become the slice that holds them.
    """
    # Loading needs no Dask.
    from zarrdask.parallel.graph.from_zarr import from_zarr

    arrays = list[Any]()
    for variable in _variables(obj):
        if variable.chunks is not None:
            arrays.append(variable.data)
        elif (request := requested_by(variable.load)) is not None:
            chunks, picks = request
            if isinstance(picks, Points):
                picks = tuple(map(_around, picks.coordinates))
            array = Array(NodePath.of(chunks), chunks.metadata, missing=chunks.missing)
            region = tuple(p if isinstance(p, slice) else _around(p) for p in picks)
            arrays.append(from_zarr(array, chunks=-1)[region])
    return Dataset(
        {
            number: ([f"{number}-{axis}" for axis in range(x.ndim)], x)
            for number, x in enumerate(arrays)
        }
    )


def _around(positions: np.ndarray) -> slice:
    if not len(positions):
        return slice(0, 0)
    return slice(int(positions.min()), int(positions.max()) + 1)


def _variables(obj: Any) -> Iterator[Variable]:
    if isinstance(obj, DataTree):
        for node in obj.subtree:
            yield from node.variables.values()
    elif isinstance(obj, DataArray):
        yield obj.variable
        yield from (coordinate.variable for coordinate in obj.coords.values())
    else:
        yield from obj.variables.values()
