"""The casts of encodings: packed numbers, and texts of a fixed length.

xarray casts encoded values as NumPy does: what does not fit becomes another value. So it encodes
values without the last step here, the cast to the data type of the encoding, which follows then by
the rule of all writes.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from dask import array as da
from xarray import Variable

from zarrdask.arrays.chunks.cast import Casting
from zarrdask.formats.dtypes.cf_fill_values import FILL_VALUE

Encode = Callable[[Variable], Variable]

_PACKING = ("scale_factor", "add_offset", "_Unsigned")
_FILLS = (FILL_VALUE, "missing_value")


def encode_checked(variable: Variable, name: Any, encode: Encode) -> Variable:
    """Return an encoded variable, whose last cast is checked.

    `encode` is what xarray does; values that do not fit the encoding are an error: at once if they
    are in memory, else when they are computed.
    """
    is_time = _is_time(variable)
    dtype = _last_cast(variable, is_time=is_time)
    # Integers stay what they are as floats, and can't have the fill value NaN before.
    if dtype is None or (dtype.kind == "f" and variable.dtype.kind in "iub"):
        return encode(variable)
    wide = _without_cast(variable, dtype, is_time=is_time)
    if is_time:
        # Units that the encoding does not have depend on the values.
        result = wide = encode(wide)
        stored_dtype = dtype
    else:
        # Its attributes and encoding are the same as of the whole variable.
        result = _encoded_sample(variable, encode)
        stored_dtype = result.dtype
        has_fill = any(wide.encoding.get(key) is not None for key in _FILLS)
        if variable.dtype.kind not in "SUTO" or has_fill:
            wide = encode(wide)
    sign = variable.encoding.get("_Unsigned")
    # Codes such as "safe" are for what users see, which is not packed.
    casting = Casting.chosen().of_values
    pack = partial(
        _pack, dtype=stored_dtype, sign=sign, target=f"variable {name!r}", casting=casting
    )
    data = wide.data
    if dtype.kind == "b":  # which releases of xarray before 2025.10 store as int8
        flags = partial(casting.cast, dtype=dtype, target=f"variable {name!r}")
        data = map_values(data, flags, dtype)
    data = map_values(data, pack, stored_dtype)
    return Variable(result.dims, data, result.attrs, result.encoding, fastpath=True)


def _encoded_sample(variable: Variable, encode: Encode) -> Variable:
    """Return no value, encoded."""
    values = np.zeros((0,) * variable.ndim, variable.dtype)
    return encode(Variable(variable.dims, values, variable.attrs, variable.encoding))


def _is_time(variable: Variable) -> bool:
    """Whether the values are times or durations of NumPy, or dates of cftime with a data type."""
    if variable.dtype.kind != "O" or not variable.size or "cftime" not in sys.modules:
        return variable.dtype.kind in "mM"
    if getattr(_chosen(variable), "kind", "O") not in "iuf":
        return False  # The first element, which may have to be computed, does not matter.
    first = np.asarray(variable[(0,) * variable.ndim].data).item()
    return isinstance(first, sys.modules["cftime"].datetime)


def map_values(data: Any, function: Callable[[np.ndarray], np.ndarray], dtype: Any) -> Any:
    """Apply a function to values in memory, or to the blocks of a Dask array."""
    if isinstance(data, da.Array):
        return data.map_blocks(function, dtype=dtype, meta=np.empty((0,) * data.ndim, dtype))
    return function(np.asarray(data))


def without_shorter_text(variable: Variable) -> Variable:
    """Return a variable without an inherited data type that could cut its texts off.

    An encoding describes the values that were read. Other values, such as from several files, may
    be longer.
    """
    chosen = _chosen(variable)
    if chosen is None or chosen.kind not in "SU" or variable.dtype.kind not in "SUTO":
        return variable
    if variable.dtype.kind == chosen.kind and variable.dtype.itemsize <= chosen.itemsize:
        return variable
    variable = variable.copy(deep=False)
    variable.encoding = {key: v for key, v in variable.encoding.items() if key != "dtype"}
    return variable


def _chosen(variable: Variable) -> np.dtype[Any] | None:
    """Return the data type of the encoding; None if there is none, or if it is of characters."""
    chosen = variable.encoding.get("dtype")
    if chosen is None or chosen is str:
        return None
    try:
        dtype = np.dtype(chosen)
    except TypeError:
        return None  # xarray's error
    return None if dtype == np.dtype("S1") else dtype


def _last_cast(variable: Variable, *, is_time: bool) -> np.dtype[Any] | None:
    """Return the data type to which xarray would cast the encoded values; None if it does not."""
    dtype, kind = _chosen(variable), variable.dtype.kind
    if dtype is None or dtype.metadata or not hasattr(variable.data, "dtype"):
        return None
    is_packed = any(key in variable.encoding for key in _PACKING)
    if dtype == variable.dtype and not is_packed:
        return None
    if is_time:
        # Counts are encoded as int64, and then cast.
        return dtype if dtype.kind in "iu" and not is_packed and dtype.itemsize < 8 else None
    kinds = "biufcSU" if kind == "O" else "biufc" if kind in "biufc" else "SU"
    return dtype if kind in "biufcSUTO" and dtype.kind in kinds else None


def _without_cast(variable: Variable, dtype: np.dtype[Any], *, is_time: bool) -> Variable:
    """Return a variable with an encoding that leaves out the last cast."""
    encoding = {k: v for k, v in variable.encoding.items() if k not in ("dtype", "_Unsigned")}
    if is_time:
        encoding["dtype"] = np.dtype("i8")
    if "_Unsigned" in variable.encoding and dtype.kind in "iu":
        unpacked = _unpacked(dtype, variable.encoding["_Unsigned"])
        for key in _FILLS:
            if encoding.get(key) is not None:
                fill = np.asarray(int(encoding[key]) % 2 ** (8 * dtype.itemsize), "u8")
                encoding[key] = fill.astype(unpacked)[()]
    wide = variable.copy(deep=False)
    wide.encoding = encoding
    return wide


def _unpacked(dtype: np.dtype[Any], sign: Any) -> np.dtype[Any]:
    """Return stored integers as integers of a data type, with or without a sign."""
    kind = {"true": "u", "false": "i"}.get(str(sign), dtype.kind)
    return np.dtype(f"{kind}{dtype.itemsize}")


def _pack(
    values: np.ndarray, *, dtype: np.dtype[Any], sign: Any, target: str, casting: Casting
) -> np.ndarray:
    if dtype.kind not in "iu":
        return casting.cast(values, dtype, target)
    if values.dtype.kind == "f":
        values = np.round(values)
    if sign is None:
        return casting.cast(values, dtype, target)
    return casting.cast(values, _unpacked(dtype, sign), target).view(dtype)
