"""NumPy's data types by the texts that documents and users write, and the sizes of elements."""

import re
from typing import Any

import numpy as np

from zarrdask.errors import UnsupportedError

#: The size of the largest element that NumPy can represent.
MAX_NUMPY_BYTES = 2**31 - 1

#: The size of the largest element that is read or written here. Opening an array allocates one
#: element for its fill value, so that a document of a few bytes could ask for 2 GiB without this
#: limit. Even records that hold an image each are far smaller.
MAX_ITEM_BYTES = 2**26

#: A divisor in a unit of time, as in ``M8[s/1000]``, that is 0 in NumPy's arithmetic, or may be:
#: 2**32 is 0 as a C integer.
_BAD_DIVISOR = re.compile(r"[84]\[[^\]]*/(?!0*[1-9]\d{0,8}\])")


def numpy_type(value: Any) -> np.dtype[Any]:
    """Return the NumPy dtype for a text, or for anything else that NumPy takes as a dtype.

    It is a ValueError if there is none. NumPy also raises TypeError and SyntaxError (for "01").
    """
    if isinstance(value, str):
        check_divisors(value)
    try:
        dtype: np.dtype[Any] = np.dtype(value)
    except (TypeError, SyntaxError) as error:
        raise ValueError(str(error)) from error
    return dtype


def check_divisors(text: str) -> None:
    """Check the divisors of units of time in a text, or in JSON, before NumPy parses it.

    NumPy divides by them even if they are 0, which ends the whole process.

    >>> check_divisors("<M8[s/0]")
    Traceback (most recent call last):
    ...
    ValueError: the divisor of the unit of time is not valid
    """
    if _BAD_DIVISOR.search(text):
        raise ValueError("the divisor of the unit of time is not valid")


def check_item_size(size: int, key: str) -> None:
    """Check the size, in bytes, of the elements of a data type, before any element is made.

    `key` is the member or argument that names the data type.
    """
    if size == 0:
        raise UnsupportedError(
            "the elements of this data type have a size of 0 bytes",
            key=key,
            expected="at least one byte",
        )
    if size > MAX_ITEM_BYTES:
        raise UnsupportedError(
            "the elements of this data type are too large",
            key=key,
            found=f"{size} bytes",
            expected=f"at most {MAX_ITEM_BYTES} bytes",
        )


def is_unitless(dtype: np.dtype[Any]) -> bool:
    """Whether elements count times or durations without a unit.

    In memory they always have native byte order: NumPy does not swap their bytes.
    """
    return dtype.kind in "mM" and np.datetime_data(dtype)[0] == "generic"


def unsupported_dtype(dtype: Any) -> str:
    """Return advice about a data type of pandas that NumPy lacks, or an empty text."""
    if getattr(dtype, "tz", None) is not None:
        return "; times with a time zone can't be stored: convert them by .tz_convert(None) to UTC"
    if getattr(dtype, "categories", None) is not None:
        return (
            "; categories can't be stored: store their codes (x.codes, or x.cat.codes of a Series) "
            "or their text (x.astype(str))"
        )
    return ""
