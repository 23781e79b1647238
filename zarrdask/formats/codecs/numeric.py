"""Helpers for codecs of numbers: checks, the parts of complex numbers, native byte order."""

from typing import Any

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.codec import refused
from zarrdask.formats.dtypes.complex_pairs import ComplexPair
from zarrdask.formats.dtypes.ml import kind_of
from zarrdask.formats.dtypes.registry import of_dtype


def parse_scalar(value: Any, dtype: np.dtype[Any], key: str) -> Any:
    """Return the scalar of a dtype for a JSON value in a configuration."""
    try:
        return of_dtype(dtype).parse_fill(value)
    except MetadataError as error:
        raise MetadataError(
            f"invalid value of {dtype}", key=key, found=value, expected=error.expected
        ) from error


def check_number(dtype: np.dtype[Any]) -> None:
    """Check that elements are integers or floating-point numbers."""
    if kind_of(dtype) not in "iuf":
        raise refused(dtype, "integers or floating-point numbers")


def part_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of one of the two parts of complex numbers; other types unchanged.

    >>> part_of(np.dtype("c8")), part_of(np.dtype("i2"))
    (dtype('float32'), dtype('int16'))
    """
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    if dtype.names is not None and isinstance(of_dtype(dtype), ComplexPair):
        return dtype[0]
    return dtype


def native(chunk: np.ndarray) -> np.ndarray:
    """Return a chunk in C order and in the byte order of this computer."""
    return np.ascontiguousarray(chunk, chunk.dtype.newbyteorder("=")).reshape(chunk.shape)
