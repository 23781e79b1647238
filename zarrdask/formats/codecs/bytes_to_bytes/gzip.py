"""``gzip`` (C-49) and ``zlib``: two formats of DEFLATE. isal decodes if it is installed."""

import zlib
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

from zarrdask.formats.codecs.codec import Buffer, Configured, Kind, failed, integer
from zarrdask.formats.codecs.streams import decompress_streams
from zarrdask.runtime.packages import load_module

try:
    inflate = load_module("isal.isal_zlib")
    _FAILURES: tuple[type[Exception], ...] = (inflate.error, zlib.error)
except ImportError:
    inflate = zlib
    _FAILURES = (zlib.error,)


@dataclass(frozen=True)
class GzipCodec(Configured):
    """Bytes -> bytes.

    Parameters
    ----------
    level : int
        The level of compression, from 0 (none) to 9 (smallest); 5 by default. In v2 it may be -1,
        the default of the library.
    """

    level: int = 5

    name: ClassVar[str] = "gzip"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES
    #: The number of the format in zlib.
    wbits: ClassVar[int] = 31
    #: The lowest level in documents of v3.
    lowest: ClassVar[int] = 0
    #: The bytes that may follow a stream; see `decompress_streams`. Several members are one file
    #: (RFC 1952).
    then: ClassVar[Literal["padding", "anything"]] = "padding"

    def __post_init__(self) -> None:
        integer(self.level, f"{self.name}.level", -1, 9)

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        codec = super().from_configuration(configuration)
        integer(codec.level, f"{cls.name}.level", cls.lowest, 9)
        return codec

    def encode(self, data: Buffer) -> Buffer:
        deflate = zlib.compressobj(self.level, zlib.DEFLATED, self.wbits)
        return deflate.compress(data) + deflate.flush()

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        try:
            start = partial(inflate.decompressobj, self.wbits)
            return decompress_streams(start, data, limit, self.then)
        except _FAILURES as error:
            raise failed("decode", error) from error

    def encoded_size(self, size: int) -> int | None:
        return None


@dataclass(frozen=True)
class ZlibCodec(GzipCodec):
    """Bytes -> bytes, as `GzipCodec` but in the format of RFC 1950."""

    level: int = 1

    name: ClassVar[str] = "zlib"
    wbits: ClassVar[int] = 15
    then: ClassVar[Literal["padding", "anything"]] = "anything"
