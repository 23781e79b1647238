"""NumPy's data types by the texts that documents and users write for them."""

import re
from typing import Any

import numpy as np

#: A divisor in a unit of time, as in ``M8[s/1000]``, that is 0 in NumPy's arithmetic, or may be:
#: 2**32 is 0 as a C integer.
_BAD_DIVISOR = re.compile(r"[84]\[[^\]]*/(?!0*[1-9]\d{0,8}\])")


def numpy_type(value: Any) -> np.dtype[Any]:
    """Return the NumPy dtype for a text, or for anything else that NumPy takes as a dtype.

    Raises
    ------
    ValueError
        If there is none. NumPy itself also raises TypeError and SyntaxError (for "01").
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

    Raises
    ------
    ValueError
        If the text has a divisor that is not a positive integer below 10**9.

    Examples
    --------
    >>> check_divisors("<M8[s/0]")
    Traceback (most recent call last):
    ...
    ValueError: the divisor of the unit of time is not valid
    """
    if _BAD_DIVISOR.search(text):
        raise ValueError("the divisor of the unit of time is not valid")
