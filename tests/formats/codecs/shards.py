"""Shards of small arrays."""

import struct

import numpy as np

from tests.documents import sharding
from zarrdask.formats.codecs.byte_source import HeldValue
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec

VALUES = np.arange(1, 17, dtype="u2").reshape(4, 4)


#: The inner chunks of VALUES, in C order, little-endian.
INNER = [
    struct.pack("<4H", *n) for n in ((1, 2, 5, 6), (3, 4, 7, 8), (9, 10, 13, 14), (11, 12, 15, 16))
]


def bind(shape=(4, 4), dtype="u2", fill_value=0, **configuration):
    configuration.setdefault("chunk_shape", (2, 2))
    codec = parse_codec(sharding(**configuration))
    return codec.bind(ChunkSpec(shape, np.dtype(dtype), fill_value))


class Watched:
    """A value that tells which parts of it were read."""

    def __init__(self, data):
        self.held = HeldValue(data)
        self.size = len(data)
        self.asked = []

    def part(self, start, length):
        self.asked.append((start if start >= 0 else self.size + start, length))
        return self.held.part(start, length)

    def parts(self, ranges):
        self.asked += ranges
        return self.held.parts(ranges)


def read(shard, value, request, out):
    shard.read(value, shard.locate(value, request), out)
