"""Array expressions of Dask itself, and of the package dask-array.

Everything below the public verbs works on arrays with graphs, `dask.array.core.Array`, which exist
whether or not expressions are switched on. Verbs that take a Dask array convert expressions by
`as_dask_array`; those that return one convert it by `as_users_array`.
"""

from typing import Any

import dask.array as da
from dask.array import core
from dask.core import flatten

from zarrdask.parallel.execution.dask_private import expression_from_graph

#: Whether Dask arrays are array expressions in this process. Fixed when dask.array is imported. Not
#: all releases of Dask set a flag of their own for it.
EXPRESSIONS: bool = da.Array is not core.Array


def is_expression(x: Any) -> bool:
    """Whether an array is an expression, of Dask or of the package dask-array."""
    return hasattr(x, "expr") and type(x).__module__.startswith(("dask.array.", "dask_array."))


def as_users_array(x: core.Array) -> Any:
    """Return an array with a graph as the arrays of this process are: as an expression, if so."""
    if not EXPRESSIONS:
        return x
    keys = [*flatten(x.__dask_keys__())]
    return expression_from_graph()(
        dict(x.__dask_optimize__(x.dask, keys)), x._meta, x.chunks, keys, x.name
    )
