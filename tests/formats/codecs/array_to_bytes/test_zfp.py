"""``zfp`` and ``numcodecs.zfpy``."""

import sys
from importlib import import_module

import dask
import ml_dtypes
import numcodecs
import numpy as np
import pytest

import zarrdask
from tests.contracts.codec import check_array_bytes, check_json, check_value
from tests.covering import for_each
from tests.documents import named, same
from tests.formats.codecs.array_to_bytes.zfp_streams import WAVE, WIDE, bind, expert, zfp
from zarrdask.errors import CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_bytes.zfp import ZfpCodec, ZfpyCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.numcodecs.adapter import BufferCodec
from zarrdask.formats.codecs.registry import parse_codec

NARROW = ["i1", "u1", "i2", "u2", "f2", ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint2]


@for_each("dtype", [*WIDE, *NARROW, "u4", "u8"])
def test_reversible_chunks_survive(dtype):
    for shape in [(), (5,), (6, 7), (2, 3, 4), (2, 3, 4, 5)]:
        values = np.random.default_rng(1).integers(0, 4, shape)
        check_array_bytes(zfp("reversible"), np.asarray(values).astype("i1").astype(dtype))


@for_each("dtype", ["i1", "u1", "i2", "u2"])
def test_all_narrow_integers_survive(dtype):
    limits = np.iinfo(dtype)
    check_array_bytes(zfp("reversible"), np.arange(limits.min, limits.max + 1).astype(dtype))


MODES = [
    (zfp("fixed_accuracy", tolerance=0.05), expert(minexp=-5), 0.05),
    (zfp("fixed_precision", precision=19), expert(maxprec=19), 0.01),
    (zfp("fixed_rate", rate=10.5), expert(minbits=168, maxbits=168), 0.2),
    (zfp("reversible"), None, 0),
]


@for_each(("codec", "same_as", "error"), MODES)
def test_modes(codec, same_as, error):
    check_value(codec)
    check_json(codec, parse_codec)
    bound = bind(codec, WAVE)
    data = bytes(bound.encode(WAVE))
    assert len(data) <= bound.most
    found = bound.decode(data)
    assert np.abs(found - WAVE).max() <= error
    if same_as is not None:
        # The mode "expert" can say the same in other words.
        assert bytes(bind(same_as, WAVE).encode(WAVE)) == data
        same(bind(same_as, WAVE).decode(data), found)


def test_zfpy_is_what_numcodecs_writes():
    codec = parse_codec({"name": "numcodecs.zfpy", "configuration": {"tolerance": 0.05}})
    check_json(codec, parse_codec)
    data = numcodecs.ZFPY(tolerance=0.05).encode(WAVE)
    assert bytes(bind(codec, WAVE).encode(WAVE)) == data
    same(bind(codec, WAVE).decode(data), numcodecs.ZFPY().decode(data))


@pytest.mark.parametrize("mode", [{"mode": 2, "rate": 8}, {"mode": 3, "precision": 20}])
def test_zfpy_modes(mode):
    codec = parse_codec({"name": "numcodecs.zfpy", "configuration": mode})
    data = numcodecs.ZFPY(**mode).encode(WAVE)
    assert bytes(bind(codec, WAVE).encode(WAVE)) == data
    assert codec.to_json()["configuration"] == mode


@for_each(
    ("codec", "chunk"),
    [
        (zfp("reversible"), WAVE),
        (zfp("reversible"), np.arange(600).reshape(20, 30) ** 2),
        (zfp("fixed_rate", rate=10.5), WAVE),
        (zfp("fixed_accuracy", tolerance=0.05), WAVE),
        (zfp("fixed_precision", precision=19), WAVE),
        (expert(minbits=168, maxbits=168), WAVE),
        (expert(minexp=-5), WAVE),
        (ZfpyCodec(), WAVE),
        (parse_codec(named("numcodecs.zfpy", mode=2, rate=8)), WAVE),
        (BufferCodec.made({"id": "zfpy", "mode": 4, "tolerance": 0.05}, "<f4"), WAVE),
    ],
)
def test_truncated_streams_are_an_error(codec, chunk):
    bound = codec if isinstance(codec, BufferCodec) else bind(codec, chunk)
    options = [chunk.nbytes] if isinstance(codec, BufferCodec) else []
    data = bytes(bound.encode(chunk))
    last = len(data.rstrip(b"\0")) - 1  # zeros at the end are no part of a block
    for size in [0, 1, 12, 20, len(data) // 2, last - 8, last]:
        with pytest.raises(CodecError):
            bound.decode(data[:size], *options)
    bound.decode(data, *options)
    bound.decode(data + bytes(8), *options)


@for_each("data", [b"", b"\0", b"\xff" * 4, b"\xff" * 4000])
def test_rubbish_is_read_within_bounds_or_an_error(data):
    for codec in (zfp("reversible"), zfp("fixed_rate", rate=2), expert(1, 13, 19, -2)):
        try:
            assert bind(codec, WAVE).decode(data).shape == WAVE.shape
        except CodecError:
            assert len(data) < 8


@pytest.mark.parametrize("dtype", ["u4", "u8"])
def test_unsigned_integers_that_zfp_would_cut_off_are_an_error(dtype):
    most = np.iinfo(dtype.replace("u", "i")).max
    chunk = np.array([0, most], dtype)
    bound = bind(zfp("reversible"), chunk)
    same(bound.decode(bound.encode(chunk)), chunk)
    with pytest.raises(CodecError, match="zfp"):
        bound.encode(chunk + 1)


@for_each("codec", [ZfpCodec(), ZfpyCodec()])
@for_each(
    ("shape", "dtype"), [((1,) * 5, "f4"), ((2,), "?"), ((2,), "c8"), ((2,), "M8[s]"), ((2,), "O")]
)
def test_what_zfp_can_not_take_is_an_error_at_open(codec, shape, dtype):
    with pytest.raises(MetadataError):
        codec.bind(ChunkSpec(shape, np.dtype(dtype), 0))


@pytest.mark.parametrize("dtype", ["i2", "u4", "f2"])
def test_zfpy_has_four_types(dtype):
    with pytest.raises(MetadataError, match="can't encode"):
        ZfpyCodec().bind(ChunkSpec((2,), np.dtype(dtype), 0))


@for_each(
    "members",
    [
        {},
        {"mode": "lossless"},
        {"mode": 4},
        {"mode": "fixed_rate"},
        {"mode": "fixed_rate", "rate": "8"},
        {"mode": "fixed_rate", "rate": -1},
        {"mode": "fixed_accuracy", "tolerance": True},
        {"mode": "fixed_precision", "precision": 8.5},
        {"mode": "reversible", "rate": 8},
        {"mode": "reversible", "write_header": False},
        {"mode": "expert", "minbits": 1, "maxbits": 13, "maxprec": 19},
        {"mode": "expert", "minbits": -1, "maxbits": 13, "maxprec": 19, "minexp": -2},
    ],
)
def test_a_wrong_configuration_is_an_error(members):
    with pytest.raises(MetadataError, match="zfp"):
        parse_codec({"name": "zfp", "configuration": members})


@pytest.mark.parametrize("members", [{"mode": 1}, {"mode": "x"}, {"rate": 8, "level": 1}])
def test_a_wrong_configuration_of_zfpy_is_an_error(members):
    with pytest.raises(MetadataError, match="zfpy"):
        parse_codec({"name": "numcodecs.zfpy", "configuration": members})


@pytest.mark.parametrize("codec", [ZfpCodec(), ZfpyCodec()])
def test_without_the_package_the_error_names_what_to_install(codec, monkeypatch):
    monkeypatch.setitem(sys.modules, "zfpy", None)
    with pytest.raises(UnsupportedError, match=r"zarrdask\[zfp\]"):
        bind(codec, WAVE)


def test_importing_the_module_does_not_import_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "zfpy", None)  # an import of it would fail
    for name in (
        "zarrdask.formats.codecs.array_to_bytes.zfp",
        "zarrdask.formats.codecs.array_to_bytes.zfp_header",
    ):
        monkeypatch.delitem(sys.modules, name)
    assert import_module("zarrdask.formats.codecs.array_to_bytes.zfp").ZfpCodec().mode


@for_each("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_elements_that_the_registered_codec_lists_are_written_without_a_word(dtype):
    options = {"shape": 4, "chunks": 4, "dtype": dtype, "codecs": zfp("reversible")}
    with dask.config.set({"zarrdask.strict": True}):
        zarrdask.create_array({}, **options)[...] = [1, 2, 3, 4]


@for_each("dtype", ["int8", "uint16", "float16"])
@for_each("shards", [None, 8])
def test_narrower_elements_are_written_with_a_warning(dtype, shards):
    options = {"shape": 8, "chunks": 4, "shards": shards, "dtype": dtype}
    store = {}
    with pytest.warns(zarrdask.errors.ComplianceWarning, match=f"C-63.*{dtype}.*int32"):
        z = zarrdask.create_array(store, codecs=zfp("reversible"), **options)
    z[...] = np.arange(8)
    assert zarrdask.open_array(store, strict=True)[...].tolist() == [*range(8)]
    with (
        dask.config.set({"zarrdask.strict": True}),
        pytest.raises(MetadataError, match=f"C-63.*{dtype}"),
    ):
        zarrdask.create_array({}, codecs=zfp("reversible"), **options)
