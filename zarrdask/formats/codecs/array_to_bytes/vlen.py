"""``vlen-utf8`` and ``vlen-bytes``: elements of any length, each after its size (C-54, C-55)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from zarrdask.errors import quoted
from zarrdask.formats.codecs.codec import ChunkSpec, Json, parse_configuration, refused
from zarrdask.formats.codecs.numcodecs.adapter import ObjectCodec, Objects


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

    def bind(self, spec: ChunkSpec) -> Objects:
        if not spec.dtype.hasobject or not isinstance(spec.fill_value, self.item):
            dtype = f"{spec.dtype}, with the fill value {quoted(spec.fill_value)}"
            expected = f"the data type {'string' if self.item is str else 'bytes'}"
            raise refused(dtype, expected)
        return Objects(self, spec)


@dataclass(frozen=True)
class VlenBytesCodec(VlenUtf8Codec):
    """Array -> bytes, for the data type ``bytes``; as `VlenUtf8Codec`, but any bytes."""

    config: str = '{"id": "vlen-bytes"}'

    name: ClassVar[str] = "vlen-bytes"
    item: ClassVar[type] = bytes
