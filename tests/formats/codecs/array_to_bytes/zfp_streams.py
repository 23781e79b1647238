"""Codecs of zfp, bound."""

import numpy as np

from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec

WIDE = ["i4", "i8", "f4", "f8"]


WAVE = np.cumsum(np.random.default_rng(0).normal(size=(20, 30)), 0).astype("f4")


def zfp(mode, **members):
    return parse_codec({"name": "zfp", "configuration": {"mode": mode, **members}})


def expert(minbits=1, maxbits=16658, maxprec=64, minexp=-1074):
    return zfp("expert", minbits=minbits, maxbits=maxbits, maxprec=maxprec, minexp=minexp)


def bind(codec, chunk):
    return codec.bind(ChunkSpec(chunk.shape, chunk.dtype, chunk.dtype.type(0)))
