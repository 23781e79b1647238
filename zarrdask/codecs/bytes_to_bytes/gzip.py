"""``gzip`` (C-49) and ``zlib``: two formats of DEFLATE. isal decodes if it is installed."""

import zlib
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Self

from zarrdask.codecs.base import Buffer, Json, Kind, integer, parse_configuration
from zarrdask.errors import CodecError, TruncatedError

try:
    _inflate = import_module("isal.isal_zlib")
    _FAILURES: tuple[type[Exception], ...] = (_inflate.error, zlib.error)
except ImportError:
    _inflate = zlib
    _FAILURES = (zlib.error,)

#: The number of bytes that are first passed to the decompressor of a second or later member.
_FIRST_STEP = 2**12


@dataclass(frozen=True)
class GzipCodec:
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

    def __post_init__(self) -> None:
        integer(self.level, f"{self.name}.level", -1, 9)

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        level = parse_configuration(configuration, cls.name, {"level": cls.level})["level"]
        return cls(integer(level, f"{cls.name}.level", cls.lowest, 9))

    def to_json(self) -> Json:
        return {"name": self.name, "configuration": {"level": self.level}}

    def encode(self, data: Buffer) -> Buffer:
        deflate = zlib.compressobj(self.level, zlib.DEFLATED, self.wbits)
        return deflate.compress(data) + deflate.flush()

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        try:
            decoded, rest = self._inflate(data, limit)
            # A stream may have several members (RFC 1952); nearly all have one.
            return self._inflate_members(decoded, rest, limit) if rest else decoded
        except _FAILURES as error:
            raise CodecError(
                f"the value can't be decoded: {error}", key=f"codec {self.name}"
            ) from error

    def _inflate(self, data: Buffer, limit: int) -> tuple[bytes, bytes]:
        """Return the first member, decoded, and the bytes that follow if they may be a member."""
        inflate = _inflate.decompressobj(self.wbits)
        # One byte more than is permitted, to detect a value that is too long.
        decoded = inflate.decompress(data, limit + 1)
        self._check(inflate, len(decoded), limit)
        return decoded, inflate.unused_data if self.wbits == 31 else b""

    def _inflate_members(self, first: bytes, rest: bytes, limit: int) -> Buffer:
        """Decode the members after the first one, up to a padding of zeros."""
        decoded, view = bytearray(first), memoryview(rest)
        at, padding = 0, len(rest.rstrip(b"\0"))
        while at < padding:
            # A decompressor copies the bytes that follow its member, so that it gets few at a time.
            # Otherwise the time would be quadratic in the number of members.
            inflate, step = _inflate.decompressobj(self.wbits), _FIRST_STEP
            while not inflate.eof and at < len(rest) and len(decoded) <= limit:
                decoded += inflate.decompress(view[at : at + step], limit + 1 - len(decoded))
                at, step = at + step, 2 * step
            self._check(inflate, len(decoded), limit)
            at = min(at, len(rest)) - len(inflate.unused_data)
        return decoded

    def _check(self, inflate: Any, size: int, limit: int) -> None:
        if size > limit:
            raise CodecError(
                "the decoded value has too many bytes",
                key=f"codec {self.name}",
                expected=f"at most {limit}",
            )
        if not inflate.eof:
            raise TruncatedError(
                "the value ends early", key=f"codec {self.name}", found=f"{size} bytes"
            )

    def encoded_size(self, size: int) -> int | None:
        return None


@dataclass(frozen=True)
class ZlibCodec(GzipCodec):
    """Bytes -> bytes, as `GzipCodec` but in the format of RFC 1950."""

    level: int = 1

    name: ClassVar[str] = "zlib"
    wbits: ClassVar[int] = 15
