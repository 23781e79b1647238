"""Zarr v3 data types: a registry of names."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError

CORE: Mapping[str, str] = {
    "bool": "bool",
    "complex64": "c8",
    "complex128": "c16",
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "int8": "i1",
    "int16": "i2",
    "int32": "i4",
    "int64": "i8",
    "uint8": "u1",
    "uint16": "u2",
    "uint32": "u4",
    "uint64": "u8",
}
_RAW = re.compile(r"r([1-9]\d*)")


def parse_dtype(name: str, configuration: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the NumPy dtype (in native byte order) of a v3 data type (conformance C-30).

    Raises
    ------
    MetadataError
        If the name is a raw type whose size is not whole bytes, or a core type is configured.
    UnsupportedError
        If the name is unknown.
    """
    raw = _RAW.fullmatch(name)
    if name not in CORE and raw is None:
        raise UnsupportedError(
            "unknown data type",
            key="data_type",
            found=name,
            expected=f"{', '.join(CORE)} or r<bits>",
        )
    if configuration:
        raise MetadataError(
            f"{name} has no configuration",
            key="data_type",
            found=dict(configuration),
            expected="{}",
        )
    if raw is None:
        return np.dtype(CORE[name])
    if int(raw[1]) % 8:
        raise MetadataError(
            "a raw type has whole bytes",
            key="data_type",
            found=name,
            expected="a multiple of 8 bits",
        )
    return np.dtype(f"V{int(raw[1]) // 8}")


def render_dtype(dtype: np.dtype[Any]) -> str:
    """Return the v3 name of a NumPy dtype; its byte order is the ``bytes`` codec's affair.

    Raises
    ------
    UnsupportedError
        If v3's core has no name for it.

    Examples
    --------
    >>> render_dtype(np.dtype(">f4")), render_dtype(np.dtype("V3"))
    ('float32', 'r24')
    """
    if dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and dtype.itemsize:
        return f"r{dtype.itemsize * 8}"
    if dtype.name not in CORE:
        raise UnsupportedError(
            "Zarr v3's core has no such data type",
            key="data_type",
            found=str(dtype),
            expected=f"{', '.join(CORE)} or V<bytes>; zarr_format=2 stores more types",
        )
    return dtype.name
