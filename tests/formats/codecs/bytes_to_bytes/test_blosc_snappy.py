"""Blosc frames of Snappy."""

import struct
from contextlib import suppress

import numcodecs
import numpy as np
import pytest
from numcodecs import blosc

from tests.covering import covering, for_each
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.bytes_to_bytes.blosc_snappy import decode_frame, snappy


def literal(data):
    """Return a literal: its tag has the length, or how many bytes of length follow."""
    if len(data) <= 60:
        return bytes([len(data) - 1 << 2]) + data
    return bytes([61 << 2]) + struct.pack("<H", len(data) - 1) + data


STREAMS = {
    "nothing": (b"\0", b""),
    "literal": (bytes([3]) + literal(b"abc"), b"abc"),
    "long": (struct.pack("BB", 300 & 127 | 128, 300 >> 7) + literal(bytes(300)), bytes(300)),
    "copy-1": (bytes([9]) + literal(b"abc") + bytes([6 - 4 << 2 | 1, 3]), b"abc" * 3),
    "copy-2": (bytes([7]) + literal(b"abcd") + bytes([3 - 1 << 2 | 2, 4, 0]), b"abcdabc"),
    "copy-4": (bytes([5]) + literal(b"abc") + bytes([2 - 1 << 2 | 3, 2, 0, 0, 0]), b"abcbc"),
    "overlap": (bytes([64]) + literal(b"a") + bytes([63 - 1 << 2 | 2, 1, 0]), b"a" * 64),
}


@for_each(("data", "expected"), STREAMS.values())
def test_literals_and_copies(data, expected):
    assert bytes(snappy(memoryview(data), len(expected))) == expected


@for_each(
    ("data", "size"),
    [
        (b"", 0),
        (b"\xff" * 6, 5),
        (bytes([4]) + literal(b"abc"), 4),
        (bytes([3]) + literal(b"abc"), 4),
        (bytes([2]) + literal(b"abc"), 2),
        (bytes([3]) + literal(b"abc") + b"\0", 3),
        (bytes([5, 1, 1]), 5),
        (bytes([5]) + literal(b"a") + bytes([0, 0]), 5),
        (bytes([9]) + literal(b"abc") + bytes([6 - 4 << 2 | 1, 4]), 9),
        (bytes([9]) + literal(b"abc") + bytes([6 - 4 << 2 | 1, 0]), 9),
    ],
)
def test_a_damaged_stream_is_an_error(data, size):
    with pytest.raises(CodecError, match="Snappy"):
        snappy(memoryview(data), size)


def lz4(stream, size):
    return numcodecs.LZ4().decode(struct.pack("<I", size) + bytes(stream))


@covering(
    strength=1,
    shuffle=[0, 1, 2],
    itemsize=[1, 2, 3, 8, 16, 20, 255],
    blocksize=[0, 1000, 4096],
)
def test_frames_are_taken_apart_as_blosc_does(shuffle, itemsize, blocksize):
    # Its other compressors have the same frames, so they show it.
    for count in (500, 1001, 30003):
        data = (np.arange(count * itemsize) // 37 % 11).astype("u1").tobytes()
        frame = blosc.compress(data, b"lz4", 5, shuffle, blocksize, itemsize)
        assert not frame[2] & 2, "not compressed: the test would test nothing"
        assert decode_frame(frame, lz4) == data


def frame(*streams, size, block, flags=0, typesize=1):
    """Return a frame with one stream in each block."""
    table, body = [], b""
    for stream in streams:
        table.append(16 + 4 * len(streams) + len(body))
        body += struct.pack("<I", len(stream)) + stream
    starts = struct.pack(f"<{len(table)}I", *table)
    length = 16 + len(starts) + len(body)
    head = struct.pack("<BBBBIII", 2, 1, 2 << 5 | flags, typesize, size, block, length)
    return head + starts + body


def test_a_frame_of_several_blocks_of_which_one_is_stored_as_it_is():
    data = frame(
        STREAMS["overlap"][0], bytes(range(64)), b"\3" + literal(b"abc"), size=131, block=64
    )
    assert decode_frame(data) == b"a" * 64 + bytes(range(64)) + b"abc"


def test_a_damaged_frame_is_an_error_of_ours_if_any():
    good = frame(STREAMS["overlap"][0], size=64, block=64)
    assert decode_frame(good) == b"a" * 64
    for at in range(4, len(good)):
        for value in (0, 0x7F, 0xFF):
            bad = bytearray(good)
            bad[at] = value
            with suppress(CodecError):
                decode_frame(bad)
    for end in (16, 18, 20, 22, len(good) - 1):
        with pytest.raises(CodecError):
            decode_frame(good[:end])
