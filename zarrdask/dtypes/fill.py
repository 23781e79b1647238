"""Fill values <-> JSON, in the spelling of each format. Exact: 64-bit integers, NaN payloads."""

import base64
import math
import operator
import re
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError

_SPECIAL = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "-Infinity": -math.inf,
}
_NAT = np.iinfo(np.int64).min


def zero(dtype: np.dtype[Any]) -> Any:
    """Return the default fill value of a dtype: all bytes zero, or 0 for objects."""
    return 0 if dtype.hasobject else np.zeros((), dtype)[()]


def _bad(found: Any, expected: str) -> MetadataError:
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
    try:
        if dtype.kind in "iu":
            return dtype.type(_exact(value, dtype))
        if dtype.kind == "b" and not (isinstance(value, bool | np.bool_ | int) and value in (0, 1)):
            raise _bad(value, "True or False")
        with np.errstate(over="ignore"):
            found = np.array(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise _bad(value, f"a value of {dtype}") from error
    if found.shape != () or not _kept(value, found):
        raise _bad(value, f"a value of {dtype}")
    return found[()]


def _kept(value: Any, found: np.ndarray) -> bool:
    """Whether a value was not cut off, or made infinite, when it was cast."""
    if found.dtype.kind in "SUV" and isinstance(value, str | bytes):
        return len(value) * (4 if found.dtype.kind == "U" else 1) <= found.dtype.itemsize
    if found.dtype.kind in "fc" and isinstance(value, int | float | complex | np.number):
        return bool(np.isfinite(found) or not np.isfinite(value))
    return True


def _exact(value: Any, dtype: np.dtype[Any]) -> int:
    if isinstance(value, complex | np.complexfloating) or (
        isinstance(value, float | np.floating) and not float(value).is_integer()
    ):
        raise _bad(value, f"an integer for {dtype}")
    number = int(value)
    limits = np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise _bad(value, f"{limits.min} to {limits.max} for {dtype}")
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
    if chunk[tuple([slice(0, 1)] * chunk.ndim)].tobytes() != wanted:
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
        raise _bad(found, f"an integer for {dtype}")
    return dtype.type(_exact(found, dtype))


def _parse_float(found: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(found, str):
        if found in _SPECIAL:
            return dtype.type(_SPECIAL[found])
        return _parse_bits(found, dtype)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise _bad(found, f"a number, 'NaN', 'Infinity' or '-Infinity' for {dtype}")
    try:
        with np.errstate(over="ignore"):
            return dtype.type(float(found))
    except OverflowError as error:
        raise _bad(found, f"a number for {dtype}") from error


def _parse_bits(found: str, dtype: np.dtype[Any]) -> Any:
    digits = dtype.itemsize * 2
    if not re.fullmatch(f"0x[0-9a-fA-F]{{{digits}}}", found):
        raise _bad(found, f"a number, 'NaN', 'Infinity' or 0x and {digits} digits for {dtype}")
    return np.array(int(found, 16), f"u{dtype.itemsize}").view(dtype.newbyteorder("="))[()]


def _render_float(value: Any, *, payload: bool) -> Any:
    if np.isnan(value):
        bits = int(np.asarray(value).view(f"u{value.dtype.itemsize}"))
        quiet = int(np.array(np.nan, value.dtype).view(f"u{value.dtype.itemsize}"))
        return "NaN" if bits == quiet or not payload else f"0x{bits:0{value.dtype.itemsize * 2}x}"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(value)


def _parse_complex(found: Any, dtype: np.dtype[Any]) -> Any:
    if not isinstance(found, list) or len(found) != 2:
        raise _bad(found, f"[real, imaginary] for {dtype}")
    part = np.dtype(f"f{dtype.itemsize // 2}")
    pair = np.array([_parse_float(found[0], part), _parse_float(found[1], part)], part)
    return pair.view(dtype.newbyteorder("="))[0]


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
    if dtype.kind == "b":
        if not isinstance(found, bool):
            raise _bad(found, "true or false")
        return np.bool_(found)
    if dtype.kind in "iu":
        return _parse_int(found, dtype)
    if dtype.kind == "f":
        return _parse_float(found, dtype)
    if dtype.kind == "c":
        return _parse_complex(found, dtype)
    if (
        not isinstance(found, list)
        or len(found) != dtype.itemsize
        or any(type(n) is not int or not 0 <= n <= 255 for n in found)
    ):
        raise _bad(found, f"a list of {dtype.itemsize} integers from 0 to 255")
    return np.frombuffer(bytes(found), dtype)[0]


def render_v3(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the JSON value of a v3 fill value."""
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu":
        return int(value)
    if dtype.kind == "f":
        return _render_float(value, payload=True)
    if dtype.kind == "c":
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
        if found not in (False, True):
            raise _bad(found, "true or false")
        return np.bool_(found)
    if dtype.kind in "iu":
        whole = isinstance(found, float) and found.is_integer()
        return _parse_int(int(found) if whole else found, dtype)
    if dtype.kind == "f":
        return _parse_float(found, dtype)
    if dtype.kind == "c":
        return _parse_complex(found, dtype)
    if dtype.kind in "mM":
        ticks = _NAT if found == "NaT" else int(_parse_int(found, np.dtype("i8")))
        return np.array(ticks, "i8").view(dtype.newbyteorder("="))[()]
    return _parse_v2_bytes(found, dtype)


def _parse_v2_bytes(found: Any, dtype: np.dtype[Any]) -> Any:
    # The number 0 and "" stand in files of old writers (conformance A-32).
    if found in (0, "") and not isinstance(found, bool):
        return zero(dtype)
    if not isinstance(found, str):
        raise _bad(found, f"a string for {dtype}")
    if dtype.kind == "U":
        return np.array(found, dtype)[()]
    try:
        data = base64.b64decode(found, validate=True)
    except ValueError as error:
        raise _bad(found, f"base64 of {dtype.itemsize} bytes") from error
    exact = dtype.kind == "V"
    if len(data) > dtype.itemsize or (exact and len(data) != dtype.itemsize):
        raise _bad(found, f"base64 of {dtype.itemsize} bytes, not {len(data)}")
    return np.frombuffer(data.ljust(dtype.itemsize, b"\0"), dtype)[0]


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
