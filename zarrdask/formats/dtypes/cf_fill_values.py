"""The attribute ``_FillValue`` of CF: the value of missing elements, as v3 arrays have it."""

import base64
import binascii
import struct
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError

#: CF's attribute for the value of missing elements.
FILL_VALUE = "_FillValue"


def decode_fill_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the value that the attribute ``_FillValue`` of a v3 array stands for.

    Numbers that other software wrote as they are, and texts such as ``"NaN"``, are accepted.

    Examples
    --------
    >>> decode_fill_value("AAAAAAAA+H8=", np.dtype("f4"))
    nan
    """
    try:
        if dtype.kind == "c" and isinstance(value, list):
            real, imaginary = (_decode_float(part) for part in value)
            return complex(real, imaginary)
        if dtype.kind == "f":
            return _decode_float(value)
        if dtype.kind == "S" and isinstance(value, str):
            return base64.standard_b64decode(value)
        if dtype.kind == "b":
            return bool(value)
        if dtype.kind in "iu":
            return int(value)
    except (ValueError, TypeError) as error:
        raise MetadataError(
            "the attribute is not a fill value of this data type",
            key=FILL_VALUE,
            found=value,
            expected=str(dtype),
        ) from error
    return value


def _decode_float(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(struct.unpack("<d", base64.b64decode(value, validate=True))[0])
        except (binascii.Error, struct.error):
            return float(value)  # "NaN", "-Infinity", "1e20"
    return float(value)


def encode_fill_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return CF's ``_FillValue`` as the attribute of a v3 array.

    Examples
    --------
    >>> encode_fill_value(np.nan, np.dtype("f4"))
    'AAAAAAAA+H8='
    >>> encode_fill_value(np.int16(-1), np.dtype("i2"))
    -1
    """
    if dtype.kind == "f":
        return _encode_float(value)
    if dtype.kind == "c":
        return [_encode_float(value.real), _encode_float(value.imag)]
    if dtype.kind == "S":
        return base64.standard_b64encode(bytes(value)).decode()
    plain = {"b": bool, "i": int, "u": int}.get(dtype.kind, str)
    return plain(value)


def _encode_float(value: Any) -> str:
    return base64.standard_b64encode(struct.pack("<d", float(value))).decode()
