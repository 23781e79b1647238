"""Fill values <-> JSON, in the spelling of each format. Exact: 64-bit integers, NaN payloads."""

import base64
import math
import operator
import re
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


#: As the fill value of a new array: none, so that what absent chunks hold is left open. Only Zarr
#: v2 and the older dialect of the v3 draft have that; None, the default, stands for zeros.
NO_FILL_VALUE = NoFillValue.NO_FILL_VALUE


def zero(dtype: np.dtype[Any]) -> Any:
    """Return the default fill value of a dtype: all bytes zero, or 0 for objects."""
    return 0 if dtype.hasobject else np.zeros((), dtype)[()]


def bad_fill(found: Any, expected: str) -> MetadataError:
    """Return the error for what is no fill value."""
    return MetadataError("not a fill value", key="fill_value", found=found, expected=expected)


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a user's fill value as a scalar of the dtype.

    Raises
    ------
    MetadataError
        If it does not fit the dtype without loss of meaning (1.5 as an integer, 300 as uint8).
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
        found = _cast(value, dtype)
    except MetadataError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise bad_fill(value, f"a value of {dtype}") from error
    if found.shape != () or not _kept(value, found):
        raise bad_fill(value, f"a value of {dtype}")
    return found[()]


def _cast(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a value as an array of no axes, as NumPy makes it."""
    same = isinstance(value, np.generic) and value.dtype == dtype
    if name_of(dtype) is not None and not same:
        return np.asarray(nearest(float(value), dtype))
    with np.errstate(over="ignore"):
        return as_array(value, dtype)


def _parts(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the parts of a user's structured value."""
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
        # NumPy spreads what is given for a field of several elements.
        cell[name] = part if field.subdtype else cast(part, field)
    return cell[()]


def _kept(value: Any, found: np.ndarray) -> bool:
    """Whether a value was not cut off, or made infinite, when it was cast."""
    if found.dtype.kind in "SUV" and isinstance(value, str | bytes):
        return len(value) * (4 if found.dtype.kind == "U" else 1) <= found.dtype.itemsize
    if found.dtype.kind in "fc" and isinstance(value, int | float | complex | np.number):
        return bool(np.isfinite(found) or not np.isfinite(value))
    if found.dtype.kind in "mM" and not isinstance(value, int | np.integer | np.bool_):
        if isinstance(value, str | bytes) and (found.dtype.kind == "m" or np.isnat(found)):
            return True  # a count of the unit, or "NaT": it has no unit of its own
        # In the unit of the value itself.
        exact = np.array(value, found.dtype.char)
        return bool(np.isnat(exact) or exact == found)
    return True


def _exact(value: Any, dtype: np.dtype[Any]) -> int:
    number = None if isinstance(value, complex | np.complexfloating) else int(value)
    if number is None or (isinstance(value, float | np.generic) and number != value):
        raise bad_fill(value, f"an integer for {dtype}")
    least, most = limits(dtype)
    if not least <= number <= most:
        raise bad_fill(value, f"{least} to {most} for {dtype}")
    return number


def only_fill(chunk: np.ndarray, fill: Any) -> bool:
    """Whether every element is the fill value, bit for bit (so -0.0 is not 0.0, and NaN is NaN)."""
    if not chunk.size:
        return True
    if chunk.dtype.hasobject:
        same = np.array_equal if isinstance(fill, np.ndarray) else operator.eq
        return all(type(item) is type(fill) and bool(same(item, fill)) for item in chunk.flat)
    wanted = np.array(fill, chunk.dtype).tobytes()
    # Data that isn't empty mostly shows it at once.
    first: Any = (*[slice(0, 1)] * chunk.ndim, ...)  # also without axes an array
    if chunk[first].tobytes() != wanted:
        return False
    width = chunk.dtype.itemsize
    if width in (1, 2, 4, 8):
        unsigned = f"u{width}"
        return bool((chunk.view(unsigned) == np.frombuffer(wanted, unsigned)[0]).all())
    rows = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).reshape(-1, width)
    return bool((rows == np.frombuffer(wanted, np.uint8)).all())


# --------------------------------------------------------------------------------------------
# The parts that both formats share


def _parse_int(found: Any, dtype: np.dtype[Any]) -> Any:
    if type(found) is not int:
        raise bad_fill(found, f"an integer for {dtype}")
    return dtype.type(_exact(found, dtype))


def _parse_float(found: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(found, str) and found not in _SPECIAL:
        return _parse_bits(found, dtype)
    number = _SPECIAL[found] if isinstance(found, str) else found
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise bad_fill(found, f"a number, 'NaN', 'Infinity' or '-Infinity' for {dtype}")
    try:
        with np.errstate(over="ignore"):
            narrow = name_of(dtype) is not None
            return nearest(float(number), dtype) if narrow else dtype.type(float(number))
    except OverflowError as error:
        raise bad_fill(found, f"a number that {dtype} has") from error


def _parse_bits(found: str, dtype: np.dtype[Any]) -> Any:
    digits = dtype.itemsize * 2
    most = 2 ** BITS.get(name_of(dtype) or "", dtype.itemsize * 8) - 1
    if not re.fullmatch(f"0x[0-9a-fA-F]{{{digits}}}", found) or int(found, 16) > most:
        expected = f"'NaN', 'Infinity' or 0x and {digits} digits up to {most:x}"
        raise bad_fill(found, f"a number, {expected} for {dtype}")
    return np.array(int(found, 16), f"u{dtype.itemsize}").view(dtype.newbyteorder("="))[()]


def _render_float(value: Any, *, payload: bool) -> Any:
    # A NaN of ml_dtypes that signals does so whenever it is looked at.
    with np.errstate(invalid="ignore"):
        is_nan, is_infinite = np.isnan(value), np.isinf(value)
    if is_nan:
        bits = int(np.asarray(value).view(f"u{value.dtype.itemsize}"))
        quiet = int(np.array(np.nan, value.dtype).view(f"u{value.dtype.itemsize}"))
        return "NaN" if bits == quiet or not payload else f"0x{bits:0{value.dtype.itemsize * 2}x}"
    if is_infinite:
        return "Infinity" if value > 0 else "-Infinity"
    return float(value)


def _render_complex(value: Any, *, payload: bool) -> list[Any]:
    return [
        _render_float(value.real, payload=payload),
        _render_float(value.imag, payload=payload),
    ]


# --------------------------------------------------------------------------------------------
# v3


def parse_v3(found: Any, dtype: np.dtype[Any]) -> Any:
    """Return the scalar that a v3 ``fill_value`` stands for (conformance C-31 to C-35).

    Raises
    ------
    MetadataError
        If it is not a permitted fill value of the data type.
    """
    kind = kind_of(dtype)
    if kind == "b":
        return _parse_v3_bool(found)
    if kind in "iu":
        return _parse_int(found, dtype)
    if kind == "f":
        return _parse_v3_float(found, dtype)
    if kind == "c":
        return _parse_v3_complex(found, dtype)
    if (
        not isinstance(found, list)
        or len(found) != dtype.itemsize
        or any(type(n) is not int or not 0 <= n <= 255 for n in found)
    ):
        raise bad_fill(found, f"a list of {dtype.itemsize} integers from 0 to 255")
    return np.frombuffer(bytes(found), dtype)[0]


def _parse_v3_bool(found: Any) -> Any:
    if type(found) is int and found in (0, 1):
        report_deviation(
            "X-C11", "not a bool", key="fill_value", found=found, expected="true or false"
        )
    elif not isinstance(found, bool):
        raise bad_fill(found, "true or false")
    return np.bool_(found)


def _parse_v3_float(found: Any, dtype: np.dtype[Any]) -> Any:
    value = _parse_float(found, dtype)
    if isinstance(found, int | float) and math.isfinite(found) and np.isinf(value):
        raise bad_fill(found, f"a number that {dtype} has")
    return value


def _parse_v3_complex(found: Any, dtype: np.dtype[Any]) -> Any:
    if not isinstance(found, list) or len(found) != 2:
        raise bad_fill(found, f"[real, imaginary] for {dtype}")
    part = np.dtype(f"f{dtype.itemsize // 2}")
    pair = np.array([_parse_v3_float(half, part) for half in found], part)
    return pair.view(dtype.newbyteorder("="))[0]


def render_v3(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the JSON value of a v3 fill value."""
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


def parse_v2(found: Any, dtype: np.dtype[Any]) -> Any:
    """Return the scalar that a v2 ``fill_value`` stands for (conformance A-29 to A-34).

    ``null`` gives None: the contents of absent chunks are undefined, and read as zeros.

    Raises
    ------
    MetadataError
        If it is not a fill value of the data type.
    """
    if found is None or dtype.hasobject:
        return found
    if dtype.kind == "b":
        return _parse_v2_bool(found)
    if dtype.kind in "iu":
        return _parse_v2_int(found, dtype)
    if dtype.kind == "f":
        return _parse_v2_float(found, dtype)
    if dtype.kind == "c":
        return _parse_v2_complex(found, dtype)
    if dtype.kind in "mM":
        return _parse_v2_time(found, dtype)
    if dtype.kind == "U":
        return _parse_v2_text(found, dtype)
    return _parse_v2_bytes(found, dtype)


def _other(rule: str, found: Any, expected: str) -> None:
    """Note a spelling that is not the one of the conventions."""
    report_deviation(rule, "spelled otherwise", key="fill_value", found=found, expected=expected)


def _parse_v2_bool(found: Any) -> Any:
    if type(found) is int and found in (0, 1):
        _other("A-33", found, "true or false")
    elif not isinstance(found, bool):
        raise bad_fill(found, "true or false")
    return np.bool_(found)


def _parse_v2_int(found: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(found, float) and found.is_integer():
        _other("A-33", found, f"an integer for {dtype}")
        found = int(found)
    return _parse_int(found, dtype)


def _parse_v2_float(found: Any, dtype: np.dtype[Any]) -> Any:
    if found == "+Infinity":
        _other("X-B4", found, "'Infinity'")
    elif isinstance(found, str) and found not in _SPECIAL:
        raise bad_fill(found, f"a number, 'NaN', 'Infinity' or '-Infinity' for {dtype}")
    return _parse_float(found, dtype)


def _parse_v2_complex(found: Any, dtype: np.dtype[Any]) -> Any:
    if not isinstance(found, list) or len(found) != 2:
        raise bad_fill(found, f"[real, imaginary] for {dtype}")
    part = np.dtype(f"f{dtype.itemsize // 2}")
    pair = np.array([_parse_v2_float(half, part) for half in found], part)
    return pair.view(dtype.newbyteorder("="))[0]


def _parse_v2_time(found: Any, dtype: np.dtype[Any]) -> Any:
    if found == "NaT":
        _other("A-33", found, str(_NAT))
        found = _NAT
    ticks = int(_parse_int(found, np.dtype("i8")))
    return np.array(ticks, "i8").view(dtype.newbyteorder("="))[()]


def _is_old_zero(found: Any, expected: str) -> bool:
    """Whether it is the number 0 or "", which stand for zeros in files of old writers."""
    old = found == "" or (type(found) in (int, float) and found == 0)
    if old:
        _other("A-32", found, expected)
    return old


def _parse_v2_text(found: Any, dtype: np.dtype[Any]) -> Any:
    most = dtype.itemsize // 4
    expected = f"a text of at most {most} characters"
    if found != "" and _is_old_zero(found, expected):
        return zero(dtype)
    if not isinstance(found, str) or len(found) > most:
        raise bad_fill(found, expected)
    return np.array(found, dtype)[()]


def _parse_v2_bytes(found: Any, dtype: np.dtype[Any]) -> Any:
    exact = dtype.kind == "V"
    expected = f"base64 of {dtype.itemsize} bytes"
    # As a byte string "" is what it says: no bytes, and trailing zeros may be left out.
    if (exact or found != "") and _is_old_zero(found, expected):
        return zero(dtype)
    if not isinstance(found, str):
        raise bad_fill(found, expected)
    try:
        data = base64.b64decode(found, validate=True)
    except ValueError as error:
        raise bad_fill(found, expected) from error
    if len(data) > dtype.itemsize or (exact and len(data) != dtype.itemsize):
        raise bad_fill(found, f"{expected}, not {len(data)}")
    return element(data.ljust(dtype.itemsize, b"\0"), dtype, found)


def element(data: bytes, dtype: np.dtype[Any], found: Any) -> Any:
    """Return the element that some bytes are.

    Parameters
    ----------
    found : JSON value
        What they were made of, for the error.

    Raises
    ------
    MetadataError
        If they are none: a field of text may hold no characters.
    """
    value = np.frombuffer(data, dtype)[0]
    try:
        value.item()
    except (SystemError, ValueError) as error:
        raise bad_fill(found, f"base64 of a value of {dtype}") from error
    return value


def render_v2(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the JSON value of a v2 fill value."""
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
    # Padded with zeros also for S, which A-30 leaves open: some readers want all bytes.
    return base64.b64encode(np.asarray(value, dtype).tobytes()).decode()
