"""``vlen-utf8`` and ``vlen-bytes``: elements of any length, each after its size (C-54, C-55)."""

from dataclasses import dataclass
from numbers import Number
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.codecs.base import Buffer, ChunkSpec, Json, parse_configuration, refused
from zarrdask.codecs.numcodecs.adapter import ObjectCodec, Objects, python_objects
from zarrdask.errors import CodecError, quoted


@dataclass(frozen=True)
class VlenUtf8Codec(ObjectCodec):
    """Array -> bytes, for the data type ``string``.

    The encoded chunk is the number of elements, and for each element its number of bytes and its
    text as UTF-8. All numbers are little-endian integers of 4 bytes.
    """

    config: str = '{"id": "vlen-utf8"}'

    name: ClassVar[str] = "vlen-utf8"
    #: The type of the elements.
    item: ClassVar[type] = str

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        parse_configuration(configuration, cls.name, {})
        return cls()

    def to_json(self) -> Json:
        return {"name": self.name}

    def bind(self, spec: ChunkSpec) -> "Items":
        if not spec.dtype.hasobject or not isinstance(spec.fill_value, self.item):
            dtype = f"{spec.dtype}, with the fill value {quoted(spec.fill_value)}"
            expected = f"the data type {'string' if self.item is str else 'bytes'}"
            raise refused(dtype, expected)
        return Items(self, spec)


@dataclass(frozen=True)
class VlenBytesCodec(VlenUtf8Codec):
    """Array -> bytes, for the data type ``bytes``; as `VlenUtf8Codec`, but any bytes."""

    config: str = '{"id": "vlen-bytes"}'

    name: ClassVar[str] = "vlen-bytes"
    item: ClassVar[type] = bytes


class Items(Objects):
    """A codec for elements of any length, bound to chunks."""

    def encode(self, chunk: np.ndarray) -> Buffer:
        return super().encode(check_items(chunk, self.codec.item))  # type: ignore[attr-defined]


def check_items(elements: np.ndarray, item: type) -> np.ndarray:
    """Return the elements as objects of Python, after a check that all have the type."""
    others = {type(element) for element in elements.flat if not isinstance(element, item)}
    if np.ndarray in others:
        elements = python_objects(elements)
        others = {type(element) for element in elements.flat if not isinstance(element, item)}
    if others:
        # numcodecs would store None and NaN as empty elements.
        raise CodecError(
            f"an element has the wrong type; objects are stored as {item.__name__} by default: "
            + _remedy(others),
            found=", ".join(sorted(other.__name__ for other in others)),
            expected=item.__name__,
        )
    return elements


def _remedy(others: set[type]) -> str:
    """Return what to do with elements of other types."""
    if all(issubclass(other, Number | np.number | np.bool_) for other in others):
        return "store numbers with dtype='float64', or another data type of numbers"
    return "convert all elements first, or store any objects by zarr_format=2, filters=['json2']"
