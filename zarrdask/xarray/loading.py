"""Load all variables of a dataset, data array or tree together."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from xarray import DataArray, DataTree, Variable

from zarrdask.arrays.chunks.read import request_shape
from zarrdask.arrays.chunks.together import ArrayRead, read_together
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


def _variables(obj: Any) -> Iterator[Variable]:
    if isinstance(obj, DataTree):
        for node in obj.subtree:
            yield from node.variables.values()
    elif isinstance(obj, DataArray):
        yield obj.variable
        yield from (coordinate.variable for coordinate in obj.coords.values())
    else:
        yield from obj.variables.values()
