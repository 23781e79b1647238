"""Headers, rates and parameters of zfp streams."""

import numcodecs
import numpy as np
import pytest

from tests.contracts.codec import check_array_bytes
from tests.covering import for_each
from tests.documents import same
from tests.formats.codecs.array_to_bytes.zfp_streams import WAVE, WIDE, bind, expert, zfp
from zarrdask.errors import CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_bytes.zfp import ZfpyCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.numcodecs.adapter import BufferCodec
from zarrdask.formats.codecs.registry import parse_codec


@for_each("dtype", WIDE)
def test_zfpy_with_a_header_survives(dtype):
    check_array_bytes(ZfpyCodec(), np.arange(24).reshape(2, 3, 4).astype(dtype))
    check_array_bytes(ZfpyCodec(), np.array(7, dtype))


def test_there_is_no_header():
    data = bytes(bind(zfp("reversible"), WAVE).encode(WAVE))
    with_header = numcodecs.ZFPY(mode=4).encode(WAVE)
    assert with_header[:3] == b"zfp"
    assert with_header[12 : 12 + len(data)] == data[: len(with_header) - 12]


def test_parameters_that_zfpy_can_only_decode_with():
    codec = expert(1, 13, 19, -2)
    with pytest.raises(UnsupportedError, match="expert"):
        bind(codec, WAVE).encode(WAVE)
    same(bind(codec, WAVE).decode(bytes(100)), np.zeros_like(WAVE))


@for_each(
    "data",
    [
        b"",
        b"zfp\5",
        b"\0" * 40,
        numcodecs.ZFPY().encode(WAVE[:, :-1].copy()),
        numcodecs.ZFPY().encode(WAVE.astype("f8")),
        numcodecs.ZFPY().encode(WAVE.astype("i4")),
    ],
)
def test_a_header_of_something_else_is_an_error(data):
    with pytest.raises(CodecError, match="zfp"):
        bind(ZfpyCodec(), WAVE).decode(data)


@for_each("rate", [0, 0.5, 1e6, 1e308, float("inf")])
def test_a_rate_with_which_the_library_would_write_outside_its_memory_is_an_error(rate):
    spec = ChunkSpec((4, 4), np.dtype("f4"), np.float32(0))
    zfpy = {"name": "numcodecs.zfpy", "configuration": {"mode": 2, "rate": rate}}
    for codec in (zfp("fixed_rate", rate=rate), parse_codec(zfpy)):
        with pytest.raises(MetadataError, match="rate"):
            codec.bind(spec)
    with pytest.raises(MetadataError, match="rate"):
        expert(minbits=8, maxbits=8).bind(spec)


def test_zfp_of_v2_checks_rates_and_the_shape_in_the_header():
    with pytest.raises(MetadataError, match="rate"):
        BufferCodec('{"id": "zfpy", "mode": 2, "rate": 0.1}', "<f4").encode(WAVE.tobytes())
    codec = BufferCodec('{"id": "zfpy", "mode": 2, "rate": 16}', "<f4")
    data = bytearray(codec.encode(WAVE.tobytes()))
    assert len(codec.decode(bytes(data), WAVE.nbytes)) == WAVE.nbytes
    data[4:10] = b"\xf2" + b"\xff" * 5
    with pytest.raises(CodecError, match="too many bytes"):
        codec.decode(bytes(data), WAVE.nbytes)
