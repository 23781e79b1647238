"""Values of the registered data types."""

import numpy as np

from zarrdask.formats.dtypes.ml import BITS
from zarrdask.formats.dtypes.registry import find_data_type

SHAPE = (13, 11)
NAMES = [
    *BITS,
    "complex_bfloat16",
    "complex_float4_e2m1fn",
    "M8[ns]",
    "m8[25s]",
    "U3",
    "S4",
    "V3",
    "string",
    "bytes",
    "i2,U2,M8[s]",
]


def values_of(name):
    """Return values of all kinds; the first two rows are those of empty chunks."""
    dtype = find_data_type(name).dtype
    size = int(np.prod(SHAPE))
    numbers = np.random.default_rng(5).integers(0, 4, size)
    if dtype.hasobject:
        found = np.empty(size, object)
        found[:] = [str(n) * n if name == "string" else bytes([n]) * n for n in numbers]
        return found.reshape(SHAPE)
    if dtype.kind == "U":
        return numbers.astype(dtype).reshape(SHAPE)
    if dtype.names == ("f0", "f1", "f2"):
        found = np.zeros(SHAPE, dtype)
        for field in dtype.names:
            found[field] = numbers.reshape(SHAPE).astype(dtype[field])
        return found
    return np.repeat(numbers.astype("u1"), dtype.itemsize).view(dtype).reshape(SHAPE)
