"""Whether Dask's arrays are expressions in this process."""

import dask.array as da
from dask.array.core import Array

#: Dask settles this when dask.array is imported; its own flag is not set by all releases.
EXPRESSIONS: bool = da.Array is not Array
