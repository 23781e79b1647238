"""Fill values <-> JSON in the spelling of each format, with exact 64-bit integers and NaNs."""

import base64
import math
import operator
import re
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from zarrdask.compliance import report_deviation
from zarrdask.dtypes.generic import as_array
from zarrdask.dtypes.ml import BITS, kind_of, limits, name_of, nearest
from zarrdask.errors import MetadataError

_SPECIAL = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "-Infinity": -math.inf,
}
_NAT = np.iinfo(np.int64).min


class NoFillValue(Enum):
    """The type of `NO_FILL_VALUE`."""

    NO_FILL_VALUE = "null"

    def __repr__(self) -> str:
        return f"zarrdask.{self.name}"


#: The `fill_value` argument for an array without a fill value (null in its document), whose absent
#: chunks have undefined contents. Only Zarr v2 and the older dialect of the v3 draft have this.
#: The default argument, None, means zeros.
NO_FILL_VALUE = NoFillValue.NO_FILL_VALUE


def zero(dtype: np.dtype[Any]) -> Any:
    """Return the default fill value of a dtype: all bytes are zero; for objects it is 0."""
    return 0 if dtype.hasobject else np.zeros((), dtype)[()]


def bad_fill(value: Any, expected: str) -> MetadataError:
    """Return the error for a fill value that is not valid."""
    return MetadataError(
        "this is not a fill value", key="fill_value", found=value, expected=expected
    )


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a user's fill value as a scalar of the dtype.

    Raises
    ------
    MetadataError
        If the dtype can't hold the value without loss (1.5 as an integer, 300 as uint8).
    """
    if dtype.hasobject:
        return value
    if dtype.names is not None and isinstance(value, tuple | dict | np.void):
        return _cast_fields(_parts(value, dtype.names), dtype)
    kind = kind_of(dtype)
    try:
        if kind in "iu":
            return dtype.type(_exact(value, dtype))
        if kind == "b" and not (isinstance(value, bool | np.bool_ | int) and value in (0, 1)):
            raise bad_fill(value, "True or False")
        result = _cast(value, dtype)
    except MetadataError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise bad_fill(value, f"a value of {dtype}") from error
    if result.shape != () or not _is_lossless(value, result):
        raise bad_fill(value, f"a value of {dtype}")
    return result[()]


def _cast(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a value as a 0-d array, by NumPy's rules."""
    same = isinstance(value, np.generic) and value.dtype == dtype
    if name_of(dtype) is not None and not same:
        return np.asarray(nearest(float(value), dtype))
    with np.errstate(over="ignore"):
        return as_array(value, dtype)


def _parts(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a user's structured value as a dict with a value for each field."""
    if isinstance(value, np.void):
        value = {name: value[name] for name in value.dtype.names or ()}
    elif isinstance(value, tuple) and len(value) == len(names):
        value = dict(zip(names, value, strict=True))
    if not isinstance(value, dict) or set(value) != set(names):
        raise bad_fill(value, f"a value for each of {', '.join(names)}")
    return value


def _cast_fields(parts: dict[str, Any], dtype: np.dtype[Any]) -> Any:
    cell = np.zeros((), dtype)
    for name, part in parts.items():
        field = dtype[name]
        # NumPy broadcasts the value of a field of several elements.
        cell[name] = part if field.subdtype else cast(part, field)
    return cell[()]


def _is_lossless(value: Any, result: np.ndarray) -> bool:
    """Whether a value was cast without being truncated or becoming infinite."""
    if result.dtype.kind in "SUV" and isinstance(value, str | bytes):
        return len(value) * (4 if result.dtype.kind == "U" else 1) <= result.dtype.itemsize
    if result.dtype.kind in "fc" and isinstance(value, int | float | complex | np.number):
        return bool(np.isfinite(result) or not np.isfinite(value))
    if result.dtype.kind in "mM" and not isinstance(value, int | np.integer | np.bool_):
        if isinstance(value, str | bytes) and (result.dtype.kind == "m" or np.isnat(result)):
            return True  # a text of a count, or "NaT", has no unit of its own
        # The char without a unit makes NumPy choose the unit of the value itself.
        exact = np.array(value, result.dtype.char)
        return bool(np.isnat(exact) or exact == result)
    return True


def _exact(value: Any, dtype: np.dtype[Any]) -> int:
    number = None if isinstance(value, complex | np.complexfloating) else int(value)
    if number is None or (isinstance(value, float | np.generic) and number != value):
        raise bad_fill(value, f"an integer for {dtype}")
    minimum, maximum = limits(dtype)
    if not minimum <= number <= maximum:
        raise bad_fill(value, f"{minimum} to {maximum} for {dtype}")
    return number


def only_fill(chunk: np.ndarray, fill: Any) -> bool:
    """Whether every element is the fill value, bit for bit (so -0.0 is not 0.0, and NaN is NaN)."""
    if not chunk.size:
        return True
    if chunk.dtype.hasobject:
        same = np.array_equal if isinstance(fill, np.ndarray) else operator.eq
        return all(type(item) is type(fill) and bool(same(item, fill)) for item in chunk.flat)
    fill_bytes = np.array(fill, chunk.dtype).tobytes()
    # Most chunks that hold data differ in the first element, so it is compared alone.
    first: Any = (*[slice(0, 1)] * chunk.ndim, ...)  # the ellipsis makes 0-d chunks arrays, too
    if chunk[first].tobytes() != fill_bytes:
        return False
    width = chunk.dtype.itemsize
    if width in (1, 2, 4, 8):
        unsigned = f"u{width}"
        return bool((chunk.view(unsigned) == np.frombuffer(fill_bytes, unsigned)[0]).all())
    rows = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).reshape(-1, width)
    return bool((rows == np.frombuffer(fill_bytes, np.uint8)).all())


# --------------------------------------------------------------------------------------------
# Shared by the formats


def _parse_int(value: Any, dtype: np.dtype[Any]) -> Any:
    if type(value) is not int:
        raise bad_fill(value, f"an integer for {dtype}")
    return dtype.type(_exact(value, dtype))


def _parse_float(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, str) and value not in _SPECIAL:
        return _parse_bits(value, dtype)
    number = _SPECIAL[value] if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise bad_fill(value, f"a number, 'NaN', 'Infinity' or '-Infinity' for {dtype}")
    try:
        with np.errstate(over="ignore"):
            narrow = name_of(dtype) is not None
            return nearest(float(number), dtype) if narrow else dtype.type(float(number))
    except OverflowError as error:
        raise bad_fill(value, f"a number that {dtype} can represent") from error


def _parse_bits(value: str, dtype: np.dtype[Any]) -> Any:
    digits = dtype.itemsize * 2
    maximum = 2 ** BITS.get(name_of(dtype) or "", dtype.itemsize * 8) - 1
    if not re.fullmatch(f"0x[0-9a-fA-F]{{{digits}}}", value) or int(value, 16) > maximum:
        expected = f"'NaN', 'Infinity' or 0x and {digits} digits up to {maximum:x}"
        raise bad_fill(value, f"a number, {expected} for {dtype}")
    return np.array(int(value, 16), f"u{dtype.itemsize}").view(dtype.newbyteorder("="))[()]


def _render_float(value: Any, *, payload: bool) -> Any:
    # NumPy warns of a signalling NaN of ml_dtypes at every operation.
    with np.errstate(invalid="ignore"):
        is_nan, is_infinite = np.isnan(value), np.isinf(value)
    if is_nan:
        bits = int(np.asarray(value).view(f"u{value.dtype.itemsize}"))
        quiet = int(np.array(np.nan, value.dtype).view(f"u{value.dtype.itemsize}"))
        return "NaN" if bits == quiet or not payload else f"0x{bits:0{value.dtype.itemsize * 2}x}"
    if is_infinite:
        return "Infinity" if value > 0 else "-Infinity"
    return float(value)


def _parse_complex(
    value: Any, dtype: np.dtype[Any], parse_float: Callable[[Any, np.dtype[Any]], Any]
) -> Any:
    if not isinstance(value, list) or len(value) != 2:
        raise bad_fill(value, f"[real, imaginary] for {dtype}")
    part = np.dtype(f"f{dtype.itemsize // 2}")
    pair = np.array([parse_float(half, part) for half in value], part)
    return pair.view(dtype.newbyteorder("="))[0]


def _render_complex(value: Any, *, payload: bool) -> list[Any]:
    return [
        _render_float(value.real, payload=payload),
        _render_float(value.imag, payload=payload),
    ]


# --------------------------------------------------------------------------------------------
# v3


def parse_v3(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a v3 ``fill_value`` as a scalar of a dtype (conformance C-31 to C-35).

    Raises
    ------
    MetadataError
        If the JSON value is not a valid fill value of the data type.
    """
    kind = kind_of(dtype)
    if kind == "b":
        return _parse_v3_bool(value)
    if kind in "iu":
        return _parse_int(value, dtype)
    if kind == "f":
        return _parse_v3_float(value, dtype)
    if kind == "c":
        return _parse_complex(value, dtype, _parse_v3_float)
    if (
        not isinstance(value, list)
        or len(value) != dtype.itemsize
        or any(type(n) is not int or not 0 <= n <= 255 for n in value)
    ):
        raise bad_fill(value, f"a list of {dtype.itemsize} integers from 0 to 255")
    return np.frombuffer(bytes(value), dtype)[0]


def _parse_v3_bool(value: Any) -> Any:
    if type(value) is int and value in (0, 1):
        report_deviation(
            "X-C11", "this is not a bool", key="fill_value", found=value, expected="true or false"
        )
    elif not isinstance(value, bool):
        raise bad_fill(value, "true or false")
    return np.bool_(value)


def _parse_v3_float(value: Any, dtype: np.dtype[Any]) -> Any:
    number = _parse_float(value, dtype)
    if isinstance(value, int | float) and math.isfinite(value) and np.isinf(number):
        raise bad_fill(value, f"a number that {dtype} can represent")
    return number


def render_v3(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill value as v3's JSON value."""
    kind = kind_of(dtype)
    if kind == "b":
        return bool(value)
    if kind in "iu":
        return int(value)
    if kind == "f":
        return _render_float(value, payload=True)
    if kind == "c":
        return _render_complex(value, payload=True)
    return list(value.tobytes())


# --------------------------------------------------------------------------------------------
# v2


def parse_v2(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a v2 ``fill_value`` as a scalar of a dtype (conformance A-29 to A-34).

    ``null`` becomes None: absent chunks have undefined contents, and are read as zeros.

    Raises
    ------
    MetadataError
        If the JSON value is not a valid fill value of the data type.
    """
    if value is None or dtype.hasobject:
        return value
    if dtype.kind == "b":
        return _parse_v2_bool(value)
    if dtype.kind in "iu":
        return _parse_v2_int(value, dtype)
    if dtype.kind == "f":
        return _parse_v2_float(value, dtype)
    if dtype.kind == "c":
        return _parse_complex(value, dtype, _parse_v2_float)
    if dtype.kind in "mM":
        return _parse_v2_time(value, dtype)
    if dtype.kind == "U":
        return _parse_v2_text(value, dtype)
    return _parse_v2_bytes(value, dtype)


def _report_spelling(rule: str, value: Any, expected: str) -> None:
    """Report a spelling of a fill value that deviates from the specification."""
    report_deviation(
        rule,
        "this spelling deviates from the specification",
        key="fill_value",
        found=value,
        expected=expected,
    )


def _parse_v2_bool(value: Any) -> Any:
    if type(value) is int and value in (0, 1):
        _report_spelling("A-33", value, "true or false")
    elif not isinstance(value, bool):
        raise bad_fill(value, "true or false")
    return np.bool_(value)


def _parse_v2_int(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, float) and value.is_integer():
        _report_spelling("A-33", value, f"an integer for {dtype}")
        value = int(value)
    return _parse_int(value, dtype)


def _parse_v2_float(value: Any, dtype: np.dtype[Any]) -> Any:
    if value == "+Infinity":
        _report_spelling("X-B4", value, "'Infinity'")
    elif isinstance(value, str) and value not in _SPECIAL:
        raise bad_fill(value, f"a number, 'NaN', 'Infinity' or '-Infinity' for {dtype}")
    return _parse_float(value, dtype)


def _parse_v2_time(value: Any, dtype: np.dtype[Any]) -> Any:
    if value == "NaT":
        _report_spelling("A-33", value, str(_NAT))
        value = _NAT
    count = int(_parse_int(value, np.dtype("i8")))
    return np.array(count, "i8").view(dtype.newbyteorder("="))[()]


def _is_old_zero(value: Any, expected: str) -> bool:
    """Whether a fill value is the number 0 or "", which old writers use for zeros of any type."""
    is_zero = value == "" or (type(value) in (int, float) and value == 0)
    if is_zero:
        _report_spelling("A-32", value, expected)
    return is_zero


def _parse_v2_text(value: Any, dtype: np.dtype[Any]) -> Any:
    max_characters = dtype.itemsize // 4
    expected = f"a text of at most {max_characters} characters"
    if value != "" and _is_old_zero(value, expected):
        return zero(dtype)
    if not isinstance(value, str) or len(value) > max_characters:
        raise bad_fill(value, expected)
    return np.array(value, dtype)[()]


def _parse_v2_bytes(value: Any, dtype: np.dtype[Any]) -> Any:
    exact = dtype.kind == "V"
    expected = f"base64 of {dtype.itemsize} bytes"
    # For byte strings, "" is the base64 of no bytes, and zeros at the end may be left out.
    if (exact or value != "") and _is_old_zero(value, expected):
        return zero(dtype)
    if not isinstance(value, str):
        raise bad_fill(value, expected)
    try:
        data = base64.b64decode(value, validate=True)
    except ValueError as error:
        raise bad_fill(value, expected) from error
    if len(data) > dtype.itemsize or (exact and len(data) != dtype.itemsize):
        raise bad_fill(value, f"{expected}, not {len(data)}")
    return element(data.ljust(dtype.itemsize, b"\0"), dtype, value)


def element(data: bytes, dtype: np.dtype[Any], value: Any) -> Any:
    """Return the element of a dtype that has some bytes.

    Parameters
    ----------
    data : bytes
        As many bytes as an element has.
    dtype : numpy.dtype
        The type of the element.
    value : JSON value
        The fill value in the document, for the error.

    Raises
    ------
    MetadataError
        If the bytes are no element: those of a text may not be characters.
    """
    item = np.frombuffer(data, dtype)[0]
    try:
        item.item()
    except (SystemError, ValueError) as error:
        raise bad_fill(value, f"base64 of a value of {dtype}") from error
    return item


def render_v2(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill value as v2's JSON value."""
    if value is None:
        return None
    if dtype.hasobject:
        return value if not isinstance(value, bytes | np.ndarray) or len(value) else ""
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu":
        return int(value)
    if dtype.kind == "f":
        return _render_float(value, payload=False)
    if dtype.kind == "c":
        return _render_complex(value, payload=False)
    if dtype.kind in "mM":
        return int(value.view("i8"))
    if dtype.kind == "U":
        return str(value)
    # Values of type S are padded with zeros, too: A-30 leaves it open, and some readers need it.
    return base64.b64encode(np.asarray(value, dtype).tobytes()).decode()
