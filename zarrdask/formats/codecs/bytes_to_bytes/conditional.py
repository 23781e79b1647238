"""``conditional``: a header of each chunk says which codecs were applied to it (C-64)."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Self, cast

from zarrdask.errors import CodecError, MetadataError, ZarrdaskError
from zarrdask.formats.codecs.codec import (
    MOST,
    SLACK,
    Buffer,
    BytesBytes,
    ChunkSpec,
    Codec,
    Configured,
    Kind,
    complete,
    integer,
    named,
    parse_configuration,
)
from zarrdask.formats.codecs.registry import parse_codecs
from zarrdask.formats.codecs.streams import too_long


@dataclass(frozen=True)
class ConditionalCodec(Configured):
    """Bytes -> bytes.

    A compressor is applied if it makes a chunk smaller. Codecs whose output has a fixed size, such
    as checksums, are always applied.

    Parameters
    ----------
    codecs : tuple of Codec
        The bytes -> bytes codecs.
    header_bits : int, optional
        The size of the header: a multiple of 8 that is not less than the number of codecs; by
        default, the lowest such multiple.
    """

    codecs: tuple[Codec, ...]
    header_bits: int | None = None

    name: ClassVar[str] = "conditional"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES

    def __post_init__(self) -> None:
        if any(codec.kind is not Kind.BYTES_BYTES for codec in self.codecs):
            raise MetadataError(
                "only bytes->bytes codecs can be conditional",
                key="conditional.codecs",
                found=[codec.name for codec in self.codecs],
                expected="bytes->bytes codecs",
            )
        if self.header_bits is not None:
            bits = integer(self.header_bits, "conditional.header_bits", len(self.codecs), 2**16)
            if bits % 8:
                raise MetadataError(
                    "the size of the header is not a number of bytes",
                    key="conditional.header_bits",
                    found=bits,
                    expected="a multiple of 8",
                )

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        members = parse_configuration(configuration, cls.name, {"codecs": ..., "header_bits": None})
        return cls(parse_codecs(members["codecs"]), members["header_bits"])

    def complete(self, spec: ChunkSpec) -> Self:
        return replace(self, codecs=complete(self.codecs, spec))

    @property
    def growth(self) -> int:
        """The maximum ratio of the size of the output to the size of the input."""
        return prod(getattr(codec, "growth", 2) for codec in self.codecs)

    @property
    def _size(self) -> int:
        """The length of the header, in bytes."""
        return (self.header_bits or len(self.codecs) + 7) // 8

    @property
    def _within(self) -> tuple[BytesBytes, ...]:
        return cast(tuple[BytesBytes, ...], self.codecs)

    def encode(self, data: Buffer) -> Buffer:
        applied = 0
        for n, codec in enumerate(self._within):
            try:
                encoded = codec.encode(data)
            except ZarrdaskError as error:
                raise named(error, codec) from error.__cause__
            if codec.encoded_size(len(data)) is not None or len(encoded) < len(data):
                data, applied = encoded, applied | 1 << n
        return applied.to_bytes(self._size, "little") + bytes(data)

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        view = memoryview(data)
        applied = int.from_bytes(view[: self._size], "little")
        if len(view) < self._size or applied >> len(self.codecs):
            raise CodecError(
                "the header is truncated, or has bits of codecs that do not exist",
                found=bytes(view[: self._size]),
                expected=f"{self._size} bytes with a bit for each of {len(self.codecs)} codecs",
            )
        steps = []
        for n, codec in enumerate(self._within):
            if applied >> n & 1:
                steps.append((codec, limit))
                size = codec.encoded_size(limit)
                limit = limit * getattr(codec, "growth", 2) + SLACK if size is None else size
                limit = min(limit, MOST)
        decoded: Buffer = view[self._size :]
        for codec, most in reversed(steps):
            try:
                decoded = codec.decode(decoded, most)
            except ZarrdaskError as error:
                raise named(error, codec) from error.__cause__
        if not steps and len(decoded) > limit:
            raise too_long(len(decoded), limit)
        return decoded

    def encoded_size(self, size: int) -> int | None:
        total: int | None = size
        for codec in self._within:
            total = None if total is None else codec.encoded_size(total)
        return None if total is None else total + self._size
