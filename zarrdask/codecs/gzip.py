"""``gzip`` (C-49) and ``zlib``: DEFLATE in two wrappings; isal inflates where it is installed."""

import zlib
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Self

from zarrdask.codecs.base import Buffer, Json, Kind, configuration, integer
from zarrdask.errors import CodecError, TruncatedError

try:
    _inflate = import_module("isal.isal_zlib")
    _FAILURES: tuple[type[Exception], ...] = (_inflate.error, zlib.error)
except ImportError:
    _inflate = zlib
    _FAILURES = (zlib.error,)


@dataclass(frozen=True)
class GzipCodec:
    """Bytes -> bytes.

    Parameters
    ----------
    level : int
        0 (none) to 9 (smallest); v2 also has -1, the library's choice.
    """

    level: int = 5

    name: ClassVar[str] = "gzip"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES
    #: zlib's number for the wrapping.
    wbits: ClassVar[int] = 31

    def __post_init__(self) -> None:
        integer(self.level, f"{self.name}.level", -1, 9)

    @classmethod
    def from_configuration(cls, found: Any) -> Self:  # noqa: D102
        level = configuration(found, cls.name, {"level": 5})["level"]
        return cls(integer(level, f"{cls.name}.level", 0, 9))

    def to_json(self) -> Json:  # noqa: D102
        return {"name": self.name, "configuration": {"level": self.level}}

    def encode(self, data: Buffer) -> Buffer:  # noqa: D102
        deflate = zlib.compressobj(self.level, zlib.DEFLATED, self.wbits)
        return deflate.compress(data) + deflate.flush()

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:  # noqa: D102
        try:
            # A stream may have several members (RFC 1952); nearly all have one.
            found, rest = self._member(data, limit)
            while rest and self.wbits == 31 and rest.strip(b"\0"):
                more, rest = self._member(rest, limit - len(found))
                found += more
        except _FAILURES as error:
            raise CodecError(f"can't inflate: {error}", key=f"codec {self.name}") from error
        return found

    def _member(self, data: Buffer, limit: int) -> tuple[bytes, bytes]:
        inflate = _inflate.decompressobj(self.wbits)
        # One byte more than may come, so that a value that is too long is seen.
        found = inflate.decompress(data, limit + 1)
        if len(found) > limit:
            raise CodecError(
                "the value inflates to too many bytes",
                key=f"codec {self.name}",
                expected=f"at most {limit}",
            )
        if not inflate.eof:
            raise TruncatedError(
                "the value ends early", key=f"codec {self.name}", found=f"{len(found)} bytes"
            )
        return found, inflate.unused_data

    def encoded_size(self, size: int) -> int | None:  # noqa: D102
        return None


@dataclass(frozen=True)
class ZlibCodec(GzipCodec):
    """Bytes -> bytes, as `GzipCodec` but wrapped after RFC 1950."""

    level: int = 1

    name: ClassVar[str] = "zlib"
    wbits: ClassVar[int] = 15
