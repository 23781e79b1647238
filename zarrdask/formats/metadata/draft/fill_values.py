"""Fill values of the v3 draft <-> JSON (conformance B-38 to B-43, X-B3 to X-B5, X-B19)."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.fill_json import parse_v2, parse_v3, render_v2, render_v3
from zarrdask.formats.dtypes.fill_values import bad_fill, zero
from zarrdask.formats.dtypes.numeric import NAMES
from zarrdask.formats.metadata import v2_codecs
from zarrdask.formats.metadata.draft.dtypes import FallbackType, foreign_json

_BITS = re.compile(r"0b([01]+)")
_HEX = re.compile(r"0x([0-9a-fA-F]+)")


def parse_fill(value: Any, data_type: DataType, *, older: bool) -> Any:
    """Return a ``fill_value`` as a scalar of the data type.

    In the older dialect null means that the fill value is undefined; the result is None then.
    """
    if value is None and not data_type.dtype.hasobject:
        report_deviation(
            "X-B3",
            "a fill value can't be null; absent chunks are read as zeros",
            key="fill_value",
            found="null",
            expected=f"a value of {data_type.dtype}",
            warn=not older,
        )
        return None if older else zero(data_type.dtype)
    if isinstance(data_type, FallbackType):
        return _of_fallback(value, data_type.dtype, older=older)
    if foreign_json(data_type) is not None:
        return data_type.parse_fill(value)
    return _parse(value, data_type.dtype, older=older)


def with_fill(data_type: DataType, value: Any) -> DataType:
    """Return a data type; if it stands in for an unknown one, with the JSON of its fill value."""
    if isinstance(data_type, FallbackType):
        return replace(data_type, fill=json.dumps(value))
    return data_type


def _parse(value: Any, dtype: np.dtype[Any], *, older: bool) -> Any:
    if dtype.kind == "b" and not isinstance(value, bool):
        raise bad_fill(value, "true or false")
    if dtype.name in NAMES:
        return parse_v3(_in_v3(value, dtype, older=older), dtype)
    if dtype.kind == "V" and dtype.names is None:
        return _parse_raw(value, dtype, older=older)
    return parse_v2(value, dtype)


def _in_v3(value: Any, dtype: np.dtype[Any], *, older: bool) -> Any:
    """Return the JSON of a core type's fill value in v3's spelling."""
    if dtype.kind == "c" and isinstance(value, list):
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return [_in_v3(item, part, older=older) for item in value]
    if dtype.kind != "f" or not isinstance(value, str):
        return value
    if value == "+Infinity":
        return "Infinity"
    if value == "Infinity" and not older:
        report_deviation(
            "X-B4",
            "this spelling deviates from the specification",
            key="fill_value",
            found=value,
            expected="'+Infinity'",
        )
    match = _BITS.fullmatch(value)
    if match is None or len(match[1]) != dtype.itemsize * 8:
        return value
    return f"0x{int(match[1], 2):0{dtype.itemsize * 2}x}"


def _parse_raw(value: Any, dtype: np.dtype[Any], *, older: bool) -> Any:
    """Return a fill value of raw bytes, whose digits are in the order of the bytes (X-B5)."""
    if isinstance(value, str):
        bits, digits = _BITS.fullmatch(value), _HEX.fullmatch(value)
        if bits is not None and len(bits[1]) == dtype.itemsize * 8:
            return np.frombuffer(int(bits[1], 2).to_bytes(dtype.itemsize, "big"), dtype)[0]
        if digits is not None and len(digits[1]) == dtype.itemsize * 2:
            return np.frombuffer(bytes.fromhex(digits[1]), dtype)[0]
        if older:
            return parse_v2(value, dtype)
    elif isinstance(value, list):
        return parse_v3(value, dtype)
    raise bad_fill(
        value, f"0x and {dtype.itemsize * 2} digits, or 0b and {dtype.itemsize * 8} digits"
    )


def _of_fallback(value: Any, dtype: np.dtype[Any], *, older: bool) -> Any:
    """Return a fill value that was written for an unknown type, or zero (X-B19)."""
    try:
        # The fill value of raw bytes may be in base64, too.
        return _parse(value, dtype, older=older or dtype.kind == "V")
    except MetadataError:
        report_deviation(
            "X-B19",
            "the fill value of an unknown data type; absent chunks are read as zeros",
            key="fill_value",
            found=value,
            expected=f"a value of {dtype}",
            warn=True,
        )
        return zero(dtype)


def render_fill(value: Any, data_type: DataType, *, older: bool) -> Any:
    """Return the JSON of a fill value. None becomes null, which only the older dialect has."""
    dtype = data_type.dtype
    if isinstance(data_type, FallbackType):
        return json.loads(data_type.fill)
    if foreign_json(data_type) is not None:
        return data_type.render_fill(value)
    if older:
        return v2_codecs.render_fill(value, dtype)
    if dtype.name in NAMES:
        return _signed(render_v3(value, dtype))
    if dtype.kind == "V" and dtype.names is None:
        return f"0x{value.tobytes().hex()}"
    return render_v2(value, dtype)


def _signed(value: Any) -> Any:
    """Return the JSON of a v3 fill value in the draft's spelling."""
    if isinstance(value, list):
        return [_signed(item) for item in value]
    return "+Infinity" if value == "Infinity" else value
