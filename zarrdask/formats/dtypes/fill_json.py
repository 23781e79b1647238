"""Fill values <-> JSON in the spelling of each format, with exact 64-bit integers and NaNs."""

import base64
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.fill_values import bad_fill, exact, zero
from zarrdask.formats.dtypes.ml import BITS, kind_of, name_of, nearest

_SPECIAL = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "-Infinity": -math.inf,
}
_NAT = np.iinfo(np.int64).min


# --------------------------------------------------------------------------------------------
# Shared by the formats


def _report_spelling(rule: str, value: Any, expected: str) -> None:
    report_deviation(
        rule,
        "this spelling of a fill value deviates from the specification",
        key="fill_value",
        found=value,
        expected=expected,
    )


def _parse_bool(value: Any, rule: str) -> Any:
    if type(value) is int and value in (0, 1):
        _report_spelling(rule, value, "true or false")
    elif not isinstance(value, bool):
        raise bad_fill(value, "true or false")
    return np.bool_(value)


def _parse_int(value: Any, dtype: np.dtype[Any]) -> Any:
    if type(value) is not int:
        raise bad_fill(value, f"an integer for {dtype}")
    return dtype.type(exact(value, dtype))


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


def _halves(value: Any, dtype: np.dtype[Any]) -> tuple[list[Any], np.dtype[Any]]:
    """Return the JSON of the parts of a complex number, and their dtype."""
    if not isinstance(value, list) or len(value) != 2:
        raise bad_fill(value, f"[real, imaginary] for {dtype}")
    return value, np.dtype(f"f{dtype.itemsize // 2}")


def _joined(halves: list[Any], part: np.dtype[Any], dtype: np.dtype[Any]) -> Any:
    return np.array(halves, part).view(dtype.newbyteorder("="))[0]


def _render_number(value: Any, kind: str, *, payload: bool) -> Any:
    """Return a bool or number as JSON; `payload` says whether NaNs other than NumPy's are bits."""
    if kind == "b":
        return bool(value)
    if kind in "iu":
        return int(value)
    if kind == "c":
        return [_render_number(part, "f", payload=payload) for part in (value.real, value.imag)]
    # NumPy warns of a signalling NaN of ml_dtypes at every operation.
    with np.errstate(invalid="ignore"):
        is_nan, is_infinite = np.isnan(value), np.isinf(value)
    if is_nan and not payload:
        return "NaN"
    if is_nan:
        bits = int(np.asarray(value).view(f"u{value.dtype.itemsize}"))
        quiet = int(np.array(np.nan, value.dtype).view(f"u{value.dtype.itemsize}"))
        return "NaN" if bits == quiet else f"0x{bits:0{value.dtype.itemsize * 2}x}"
    if is_infinite:
        return "Infinity" if value > 0 else "-Infinity"
    return float(value)


def parse_text(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a text of limited length as a scalar of a dtype, in native byte order."""
    max_characters = dtype.itemsize // 4
    if not isinstance(value, str) or len(value) > max_characters:
        raise bad_fill(value, f"a text of at most {max_characters} characters")
    return np.array(value, dtype.newbyteorder("="))[()]


def parse_base64(value: Any, expected: str) -> bytes:
    """Return the bytes of a fill value in base64."""
    if not isinstance(value, str):
        raise bad_fill(value, expected)
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise bad_fill(value, expected) from error


def parse_element(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the element of a dtype whose bytes a fill value has in base64.

    Zeros at the end of a byte string may be left out.
    """
    size, expected = dtype.itemsize, f"base64 of {dtype.itemsize} bytes"
    data = parse_base64(value, expected)
    if len(data) > size or (dtype.kind != "S" and len(data) < size):
        raise bad_fill(value, f"{expected}, not {len(data)}")
    elements = np.frombuffer(data.ljust(size, b"\0"), dtype)
    try:
        for texts in _texts(elements):
            texts.tolist()
    except (SystemError, ValueError) as error:
        raise bad_fill(value, f"base64 of a value of {dtype}") from error
    return elements[0]


def _texts(elements: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the texts in elements: only those can have bytes that stand for no value."""
    if elements.dtype.names:
        for name in elements.dtype.names:
            yield from _texts(elements[name])
    elif elements.dtype.kind == "U":
        yield elements


# --------------------------------------------------------------------------------------------
# v3


def parse_v3(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a v3 ``fill_value`` as a scalar of a dtype (conformance C-31 to C-35)."""
    kind = kind_of(dtype)
    if kind == "b":
        return _parse_bool(value, "X-C11")
    if kind in "iu":
        return _parse_int(value, dtype)
    if kind == "f":
        number = _parse_float(value, dtype)
        if isinstance(value, int | float) and math.isfinite(value) and np.isinf(number):
            raise bad_fill(value, f"a number that {dtype} can represent")
        return number
    if kind == "c":
        halves, part = _halves(value, dtype)
        return _joined([parse_v3(half, part) for half in halves], part, dtype)
    if (
        not isinstance(value, list)
        or len(value) != dtype.itemsize
        or any(type(n) is not int or not 0 <= n <= 255 for n in value)
    ):
        raise bad_fill(value, f"a list of {dtype.itemsize} integers from 0 to 255")
    return np.frombuffer(bytes(value), dtype)[0]


def render_v3(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill value as v3's JSON value."""
    kind = kind_of(dtype)
    return _render_number(value, kind, payload=True) if kind in "biufc" else list(value.tobytes())


# --------------------------------------------------------------------------------------------
# v2


def parse_v2(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a v2 ``fill_value`` as a scalar of a dtype (conformance A-29 to A-34).

    ``null`` becomes None: absent chunks have undefined contents, and are read as zeros.
    """
    if value is None or dtype.hasobject:
        return value
    kind = kind_of(dtype)
    if kind == "b":
        return _parse_bool(value, "A-33")
    if kind in "iu":
        if isinstance(value, float) and value.is_integer():
            _report_spelling("A-33", value, f"an integer for {dtype}")
            value = int(value)
        return _parse_int(value, dtype)
    if kind == "f":
        return _parse_v2_float(value, dtype)
    if kind == "c":
        halves, part = _halves(value, dtype)
        return _joined([_parse_v2_float(half, part) for half in halves], part, dtype)
    if kind in "mM":
        if value == "NaT":
            _report_spelling("A-33", value, str(_NAT))
            value = _NAT
        count = int(_parse_int(value, np.dtype("i8")))
        return np.array(count, "i8").view(dtype.newbyteorder("="))[()]
    if _is_old_zero(value, dtype):
        return zero(dtype)
    return (parse_text if dtype.kind == "U" else parse_element)(value, dtype)


def _parse_v2_float(value: Any, dtype: np.dtype[Any]) -> Any:
    if value == "+Infinity":
        _report_spelling("X-B4", value, "'Infinity'")
    elif isinstance(value, str) and value not in _SPECIAL:
        raise bad_fill(value, f"a number, 'NaN', 'Infinity' or '-Infinity' for {dtype}")
    return _parse_float(value, dtype)


def _is_old_zero(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a fill value is the number 0 or "", which old writers use for zeros of any type."""
    # For text, "" is the empty text; for byte strings, it is the base64 of no bytes.
    is_zero = value == "" and dtype.kind == "V"
    is_zero = is_zero or (type(value) in (int, float) and value == 0)
    if is_zero:
        _report_spelling("A-32", value, "a text" if dtype.kind == "U" else "base64")
    return is_zero


def render_v2(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill value as v2's JSON value."""
    if value is None:
        return None
    if dtype.hasobject:
        return value if not isinstance(value, bytes | np.ndarray) or len(value) else ""
    if kind_of(dtype) in "biufc":
        return _render_number(value, kind_of(dtype), payload=False)
    if dtype.kind in "mM":
        return int(value.view("i8"))
    if dtype.kind == "U":
        return str(value)
    # Values of type S are padded with zeros, too: A-30 leaves it open, and some readers need it.
    return base64.b64encode(np.asarray(value, dtype).tobytes()).decode()
