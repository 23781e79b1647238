"""Check decoded text: NumPy raises an error for invalid characters only when they are used."""

from typing import Any

import numpy as np

from zarrdask.codecs.base import Buffer, Serializer
from zarrdask.errors import CodecError

#: The last character of Unicode.
_LAST = 0x10FFFF


def has_text(dtype: np.dtype[Any]) -> bool:
    """Whether elements are text, or have fields that are."""
    if dtype.subdtype is not None:
        return has_text(dtype.subdtype[0])
    if dtype.names is not None:
        return any(has_text(dtype[name]) for name in dtype.names)
    return dtype.kind == "U"


class Text(Serializer):
    """A codec, bound to chunks of elements with text, that checks what it decodes.

    Parameters
    ----------
    elements : Serializer
        The codec without the check.
    """

    def __init__(self, elements: Serializer) -> None:
        self.elements = elements
        self.encoded_size = elements.encoded_size
        self.most = elements.most

    def encode(self, chunk: np.ndarray) -> Buffer:
        return self.elements.encode(chunk)

    def decode(self, data: Buffer) -> np.ndarray:
        chunk = self.elements.decode(data)
        _check(chunk)
        return chunk


def _check(values: np.ndarray) -> None:
    """Check the characters of an array, and of its fields.

    Reading an element with an invalid character from the array would fail.
    """
    for name in values.dtype.names or ():
        _check(values[name])
    if values.dtype.kind != "U" or not values.nbytes:
        return
    codes = np.ascontiguousarray(values).reshape(-1).view(f"{values.dtype.str[0]}u4")
    if codes.max() > _LAST:
        raise CodecError(
            "the text has an invalid character",
            found=hex(codes.max()),
            expected=f"a code point of Unicode, at most {_LAST:#x}",
        )
