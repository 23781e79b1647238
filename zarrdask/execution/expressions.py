"""Whether Dask arrays are array expressions in this process."""

import dask.array as da
from dask.array.core import Array

#: Fixed when dask.array is imported. Not all releases of Dask set a flag of their own for it.
EXPRESSIONS: bool = da.Array is not Array
