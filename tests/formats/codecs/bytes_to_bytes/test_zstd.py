"""Zstandard: frames, sizes and checksums."""

import numcodecs.zstd
import numpy as np
import pytest

from tests.covering import for_each
from tests.documents import zstd_frame
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.bytes_to_bytes.zstd import ZstdCodec


@pytest.mark.parametrize("sized", [True, False])
def test_zstd_frames_written_by_hand(sized):
    frame = zstd_frame(b"hello", sized=sized)
    assert bytes(ZstdCodec().decode(frame, 5)) == b"hello"
    assert bytes(ZstdCodec().decode(frame, 500)) == b"hello"
    assert bytes(ZstdCodec().decode(frame, 5, np.zeros(5, np.uint8))) == b"hello"


@for_each("sized", [True, False])
@for_each("room", [False, True])
def test_zstd_frames_that_hold_less_are_no_more_than_they_hold(sized, room):
    # With a place to decode to as without: what is not written to must not pass for data.
    out = np.full(8, 7, np.uint8) if room else None
    try:
        found = bytes(ZstdCodec().decode(zstd_frame(b"hello", sized=sized), 8, out))
    except CodecError:
        return
    assert found == b"hello"


@pytest.mark.parametrize("sized", [True, False])
def test_zstd_frames_are_joined(sized):
    data = zstd_frame(b"hel", sized=sized) + zstd_frame(b"lo", sized=sized)
    assert bytes(ZstdCodec().decode(data, 5)) == b"hello"
    assert bytes(ZstdCodec().decode(data, 5, np.zeros(5, np.uint8))) == b"hello"


def test_a_zstd_checksum_is_written_and_checked():
    data = bytearray(ZstdCodec(3, checksum=True).encode(b"hello" * 20))
    assert len(data) == len(ZstdCodec(3).encode(b"hello" * 20)) + 4
    data[-1] ^= 1
    with pytest.raises(CodecError):
        ZstdCodec().decode(bytes(data), 100)


def test_zstd_is_numcodecs_zstd():
    assert bytes(ZstdCodec().decode(numcodecs.zstd.compress(b"hello", 1), 5)) == b"hello"


def test_a_zstd_frame_that_claims_more_than_its_blocks_can_hold_takes_no_memory():
    # Of elements of any length the metadata give no bound.
    block = (1 | 5 << 3).to_bytes(3, "little") + b"hello"
    frame = b"\x28\xb5\x2f\xfd\xe0" + (2**39).to_bytes(8, "little") + block
    with pytest.raises(CodecError, match="too many bytes"):
        ZstdCodec().decode(frame, 2**40)
