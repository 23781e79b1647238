"""Zarr v2 data types: NumPy typestrs, and structured types as lists of fields."""

import re
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.ml import BITS, dtype_named, name_of
from zarrdask.formats.dtypes.numpy_type import check_item_size, is_unitless, numpy_type
from zarrdask.formats.dtypes.providers import provider

_TYPESTR = re.compile(r"([<>|])([biufcmMSUVO])(\d*)(\[[^\]]+\])?")
_UNIT = re.compile(r"\[(?:[1-9]\d*)?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)(?:/[1-9]\d*)?\]")
_MICRO = str.maketrans("\u03bc\u00b5", "uu")
_EXPECTED = "a NumPy typestr such as '<f4' or '|b1', or a list of fields"


def parse_dtype(value: Any, key: str = "dtype") -> np.dtype[Any]:
    """Return the NumPy dtype for the ``dtype`` of a ``.zarray`` (conformance A-19 to A-28)."""
    if isinstance(value, str):
        return _parse_typestr(value, key)
    if isinstance(value, list) and value:
        fields = [_parse_field(field, key) for field in value]
        try:
            check_item_size(sum(np.dtype([field]).itemsize for field in fields), key)
            return np.dtype(fields)
        except (TypeError, ValueError) as error:
            raise MetadataError(f"unknown data type: {error}", key=key, found=value) from error
    raise MetadataError("unknown data type", key=key, found=value, expected=_EXPECTED)


def _parse_typestr(text: str, key: str) -> np.dtype[Any]:
    if text in BITS:
        report_deviation(
            "A-19",
            "the name of a type that NumPy does not have, as tensorstore writes it",
            key=key,
            found=text,
            expected=_EXPECTED,
        )
        return dtype_named(text)
    typestr = text.translate(_MICRO)
    match = _TYPESTR.fullmatch(typestr)
    if match is None:
        raise _unknown(text, key)
    order, kind, size, unit = match.groups()
    if order != "|" and (kind in "bSVO" or size == "1"):
        report_deviation(
            "A-20",
            "a type of one byte, or without numbers, has no byte order",
            key=key,
            found=text,
            expected=f"'|{kind}{size}'",
        )
    if kind == "O":
        return np.dtype(object)
    if kind in "mM":
        if unit is None:
            report_deviation(
                "A-23",
                "a datetime or timedelta needs its unit",
                key=key,
                found=text,
                expected=f"'{text}[ns]'",
            )
        elif not _UNIT.fullmatch(unit):
            raise MetadataError("unknown unit of time", key=key, found=text, expected="'<M8[ns]'")
    elif unit is not None:
        raise MetadataError("only datetime and timedelta types have a unit", key=key, found=text)
    if order == "|" and kind in "iufcmMU" and size not in ("1", "0"):
        raise MetadataError(
            "the byte order is missing", key=key, found=text, expected="'<' or '>' before the type"
        )
    if not size.strip("0"):
        raise MetadataError("the item size is missing", key=key, found=text, expected=_EXPECTED)
    try:
        dtype = numpy_type(typestr)
    except ValueError as error:
        raise UnsupportedError("NumPy has no such data type", key=key, found=text) from error
    check_item_size(dtype.itemsize, key)
    return dtype


def _unknown(text: str, key: str) -> MetadataError | UnsupportedError:
    expected = provider(text)
    if expected is not None:
        return UnsupportedError("unknown data type", key=key, found=text, expected=expected)
    return MetadataError("unknown data type", key=key, found=text, expected=_EXPECTED)


def check_new(dtype: np.dtype[Any], key: str) -> None:
    """Check that a type may be written or be a field's: some are only read."""
    if name_of(dtype) is not None:
        raise UnsupportedError("v2 has no name for this data type", key=key, found=str(dtype))
    if is_unitless(dtype):
        raise MetadataError(
            "a datetime or timedelta needs its unit",
            key=key,
            found=dtype.str,
            expected="'<M8[ns]'",
        )


def _parse_field(field: Any, key: str) -> tuple[Any, ...]:
    if (
        not isinstance(field, list)
        or len(field) not in (2, 3)
        or not isinstance(field[0], str)
        or not field[0]
    ):
        raise MetadataError(
            "invalid field",
            key=key,
            found=field,
            expected="[name, data type] or [..., shape]",
        )
    dtype = parse_dtype(field[1], f"{key}.{field[0]}")
    check_new(dtype, f"{key}.{field[0]}")
    if len(field) == 2:
        return field[0], dtype
    shape = field[2] if isinstance(field[2], list) else [field[2]]
    if any(type(n) is not int or n < 0 for n in shape):
        raise MetadataError(
            "invalid shape of a field",
            key=key,
            found=field[2],
            expected="a list of integers",
        )
    return field[0], dtype, tuple(shape)


def render_dtype(dtype: np.dtype[Any]) -> str | list[Any]:
    """Return the ``dtype`` of a ``.zarray`` for a NumPy dtype.

    >>> render_dtype(np.dtype("<f4")), render_dtype(np.dtype([("r", "u1")]))
    ('<f4', [['r', '|u1']])
    """
    if dtype.names is not None:
        packed = np.dtype([(name, dtype.fields[name][0]) for name in dtype.names])  # type: ignore[index]
        if packed.itemsize != dtype.itemsize:
            raise UnsupportedError(
                "v2 stores packed structured types only", key="dtype", found=str(dtype)
            )
        return [_render_field(name, dtype[name]) for name in dtype.names]
    if (name := name_of(dtype)) is not None:
        return name
    if dtype.subdtype is not None or dtype.kind not in "biufcmMSUVO" or dtype.isbuiltin == 2:
        raise UnsupportedError("v2 has no name for this data type", key="dtype", found=str(dtype))
    if not dtype.itemsize:
        raise MetadataError("the item size is missing", key="dtype", found=dtype.str)
    return dtype.str


def _render_field(name: str, dtype: np.dtype[Any]) -> list[Any]:
    if dtype.subdtype is None:
        check_new(dtype, "dtype")
        return [name, render_dtype(dtype)]
    base, shape = dtype.subdtype
    check_new(base, "dtype")
    return [name, render_dtype(base), list(shape)]
