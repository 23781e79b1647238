"""Checksums of the codec crc32c."""

import pytest

from tests.covering import for_each
from zarrdask.errors import ChecksumError
from zarrdask.formats.codecs.bytes_to_bytes.crc32c import Crc32cCodec


@for_each(
    ("data", "checksum"),
    # RFC 3720, B.4, and the usual check value.
    [
        (bytes(32), "aa36918a"),
        (b"\xff" * 32, "43aba862"),
        (bytes(range(32)), "4e79dd46"),
        (b"123456789", "839206e3"),
        (b"", "00000000"),
    ],
)
def test_crc32c_is_that_of_the_rfc(data, checksum):
    encoded = bytes(Crc32cCodec().encode(data))
    assert encoded == data + bytes.fromhex(checksum)
    assert bytes(Crc32cCodec().decode(encoded, len(data))) == data


@for_each("bit", range(0, 104, 7))
def test_crc32c_sees_any_flipped_bit(bit):
    data = bytearray(Crc32cCodec().encode(b"123456789"))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ChecksumError) as caught:
        Crc32cCodec().decode(bytes(data), 9)
    assert caught.value.found.startswith("0x")
    assert caught.value.expected.startswith("0x")


@for_each("data", [b"", b"abc", b"abcd", b"\xff" * 64])
def test_crc32c_sees_what_is_too_short_or_rubbish(data):
    with pytest.raises(ChecksumError):
        Crc32cCodec().decode(data, 100)
