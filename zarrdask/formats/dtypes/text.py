"""Text and bytes of fixed and of variable length (conformance C-34, C-68)."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.data_type import DataType, check_configuration, positive_integer
from zarrdask.formats.dtypes.fill_json import parse_base64, parse_element, parse_text
from zarrdask.formats.dtypes.fill_values import bad_fill
from zarrdask.formats.dtypes.numpy_type import MAX_NUMPY_BYTES

_KINDS = {"null_terminated_bytes": "S", "raw_bytes": "V"}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True)
class FixedText(DataType):
    """``fixed_length_utf32``: code points of four bytes each, padded with zeros."""

    def to_json(self) -> dict[str, Any]:
        settings = {"length_bytes": self.dtype.itemsize}
        return {"name": "fixed_length_utf32", "configuration": settings}

    def parse_fill(self, value: Any) -> Any:
        return parse_text(value, self.dtype)

    def render_fill(self, value: Any) -> Any:
        return str(value)

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration, ("length_bytes",))
        length = positive_integer(name, configuration, "length_bytes", MAX_NUMPY_BYTES)
        if length % 4:
            raise MetadataError(
                "the length of a text must be a multiple of four bytes, as a code point has four",
                key=f"data_type {name}",
                found=length,
                expected="a multiple of 4 as length_bytes",
            )
        return cls(np.dtype(f"U{length // 4}"))

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> DataType | None:
        return cls(dtype) if dtype.kind == "U" and dtype.itemsize else None


@dataclass(frozen=True)
class FixedBytes(DataType):
    """``null_terminated_bytes`` and ``raw_bytes``: zarr-python writes them, unregistered.

    They are NumPy's "S", which drops zeros at the end, and "V". A new array of "V" here gets the
    name that the core specification has for it, ``r<bits>``.
    """

    def to_json(self) -> dict[str, Any]:
        settings = {"length_bytes": self.dtype.itemsize}
        return {"name": _NAMES[self.dtype.kind], "configuration": settings}

    def parse_fill(self, value: Any) -> Any:
        return parse_element(value, self.dtype)

    def render_fill(self, value: Any) -> Any:
        return base64.b64encode(value.tobytes()).decode()

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration, ("length_bytes",))
        length = positive_integer(name, configuration, "length_bytes", MAX_NUMPY_BYTES)
        return cls(np.dtype(f"{_KINDS[name]}{length}"))

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> DataType | None:
        return cls(dtype) if dtype.kind == "S" and dtype.itemsize else None


@dataclass(frozen=True)
class Text(DataType):
    """``string``: text of any length, in memory as Python's `str`."""

    serializer: ClassVar[str] = "vlen-utf8"

    def to_json(self) -> str:
        return "string"

    def parse_fill(self, value: Any) -> str:
        return self.cast(value)

    def render_fill(self, value: Any) -> str:
        return str(value)

    def cast(self, value: Any) -> str:
        if not isinstance(value, str):
            raise bad_fill(value, "a text")
        return str(value)

    @property
    def default(self) -> str:
        return ""

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration)
        return cls(np.dtype(object))


@dataclass(frozen=True)
class Bytes(DataType):
    """``bytes``: bytes of any length, in memory as Python's `bytes`.

    Attributes
    ----------
    name : str
        The name in the document: zarr-python calls the type ``variable_length_bytes``.
    """

    name: str = "bytes"

    serializer: ClassVar[str] = "vlen-bytes"

    def to_json(self) -> str:
        return self.name

    def parse_fill(self, value: Any) -> bytes:
        expected = "base64, or a list of integers from 0 to 255"
        if not isinstance(value, list):
            return parse_base64(value, expected)
        if any(type(n) is not int or not 0 <= n <= 255 for n in value):
            raise bad_fill(value, expected)
        return bytes(value)

    def render_fill(self, value: Any) -> str:
        return base64.b64encode(value).decode()

    def cast(self, value: Any) -> bytes:
        if not isinstance(value, bytes | bytearray):
            raise bad_fill(value, "bytes")
        return bytes(value)

    @property
    def default(self) -> bytes:
        return b""

    @classmethod
    def from_configuration(cls, name: str, configuration: Mapping[str, Any]) -> Self:
        check_configuration(name, configuration)
        return cls(np.dtype(object), name)
