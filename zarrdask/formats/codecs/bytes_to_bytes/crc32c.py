"""``crc32c``: a checksum of 4 bytes after the data (C-51)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import google_crc32c

from zarrdask.errors import ChecksumError
from zarrdask.formats.codecs.codec import Buffer, Configured, Kind

_SIZE = 4


@dataclass(frozen=True)
class Crc32cCodec(Configured):
    """Bytes -> bytes: CRC-32C (RFC 3720), little-endian, at the end."""

    name: ClassVar[str] = "crc32c"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES

    def encode(self, data: Buffer) -> Buffer:
        data = bytes(data)
        checksum: int = google_crc32c.value(data)
        return data + checksum.to_bytes(_SIZE, "little")

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        view = memoryview(data)
        if len(view) < _SIZE:
            raise ChecksumError(
                "the value is shorter than its checksum",
                found=f"{len(view)} bytes",
                expected=f"at least {_SIZE} bytes",
            )
        # The library accepts read-only memory only.
        body = bytes(view[:-_SIZE])
        stored, computed = int.from_bytes(view[-_SIZE:], "little"), google_crc32c.value(body)
        if stored != computed:
            raise ChecksumError(
                "the checksum does not match the data",
                found=f"0x{stored:08x}",
                expected=f"0x{computed:08x}",
            )
        return body

    def encoded_size(self, size: int) -> int | None:
        return size + _SIZE
