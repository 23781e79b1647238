"""Bool, integers, floats, complex and raw bytes, as v3's core has them (conformance C-30, C-68).

Numbers narrower than NumPy's (bfloat16, float8, int4 ...) have, in memory, the types of the package
ml_dtypes, which is optional.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.data_type import DataType, check_configuration
from zarrdask.formats.dtypes.ml import BITS, dtype_named, name_of
from zarrdask.formats.dtypes.numpy_type import MAX_NUMPY_BYTES

NAMES = frozenset(
    {
        "bool",
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    }
)
#: Other names of core types, which are read but never written.
ALIASES = {"complex_float32": "complex64", "complex_float64": "complex128"}
_RAW = re.compile(r"r([1-9]\d{0,10})")


@dataclass(frozen=True)
class Scalar(DataType):
    """A bool or number type that NumPy, or ml_dtypes, has under the same name (C-30, C-68)."""

    def to_json(self) -> str:
        return name_of(self.dtype) or self.dtype.name

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration)
        return cls(dtype_named(name) if name in BITS else np.dtype(ALIASES.get(name, name)))

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> DataType | None:
        return cls(dtype) if dtype.name in NAMES or name_of(dtype) else None


@dataclass(frozen=True)
class RawBytes(DataType):
    """``r<bits>``: uninterpreted bytes of fixed length (conformance B-36, C-34)."""

    def to_json(self) -> str:
        return f"r{self.dtype.itemsize * 8}"

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration)
        match = _RAW.fullmatch(name)
        if match is None or int(match[1]) % 8 or int(match[1]) // 8 > MAX_NUMPY_BYTES:
            raise MetadataError(
                "a raw type must have whole bytes",
                key="data_type",
                found=name,
                expected="r and the number of bits, a multiple of 8",
            )
        return cls(np.dtype(f"V{int(match[1]) // 8}"))

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> DataType | None:
        is_raw = dtype.type is np.void and dtype.names is None and dtype.subdtype is None
        return cls(dtype) if is_raw and dtype.itemsize else None
