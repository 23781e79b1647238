"""From what users ask for to metadata."""

import json
import pickle
from math import prod

import dask.array as da
import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.formats.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec
from zarrdask.formats.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.formats.metadata.array_options import ArrayOptions, plan_shapes
from zarrdask.formats.metadata.new_metadata import plan_array

MiB = 2**20


def plan(**options):
    return plan_array(ArrayOptions(**({"shape": (10, 20), "dtype": "f4"} | options)))


# ---- sizes

shapes = st.lists(st.integers(0, 5000), max_size=4).map(tuple)


@given(shapes, st.sampled_from([1, 4, 16]))
def test_automatic_chunks_stay_below_the_limit_and_inside_the_array(shape, itemsize):
    chunk, shard = plan_shapes(shape, itemsize, "auto", None)
    assert shard is None
    assert prod(chunk) * itemsize <= MiB
    assert all(1 <= c <= max(n, 1) for c, n in zip(chunk, shape, strict=True))


@given(shapes, st.sampled_from([1, 4, 16]))
def test_automatic_chunks_are_not_needlessly_small(shape, itemsize):
    chunk, _ = plan_shapes(shape, itemsize, "auto", None)
    whole = prod(max(n, 1) for n in shape) * itemsize
    assert prod(chunk) * itemsize > min(whole, MiB) / 4 or prod(chunk) == prod(
        max(n, 1) for n in shape
    )


@given(shapes, st.sampled_from([1, 4, 16]))
def test_automatic_shards_are_whole_chunks_below_the_limit(shape, itemsize):
    chunk, shard = plan_shapes(shape, itemsize, "auto", "auto")
    assert all(s % c == 0 for s, c in zip(shard, chunk, strict=True))
    assert prod(shard) * itemsize <= 64 * MiB
    assert all(s - c < max(n, 1) for s, c, n in zip(shard, chunk, shape, strict=True))


def test_the_limits_are_settings(setting):
    setting({"zarrdask.chunk-size": 100, "zarrdask.shard-size": 400})
    chunk, shard = plan_shapes((1000,), 1, "auto", "auto")
    assert 50 < chunk[0] <= 100
    assert 200 < shard[0] <= 400


@for_each(
    ("chunks", "expected"),
    [
        (5, (5, 5)),
        ((5, 6), (5, 6)),
        ([5, 6], (5, 6)),
        (np.array([5, 6]), (5, 6)),
        (np.int32(5), (5, 5)),
        (-1, (10, 20)),
        ((5, -1), (5, 20)),
        ((None, 4), (10, 4)),
        ((100, 100), (100, 100)),
    ],
)
def test_chunks_may_be_given_in_several_ways(chunks, expected):
    assert plan(chunks=chunks).chunk_shape == expected


@for_each("shape", [5, np.int64(5), (5,), [5], np.array([5])])
def test_a_shape_may_be_given_in_several_ways(shape):
    assert plan(shape=shape).shape == (5,)


@for_each("shape", [-1, (3, -1), (2.5,), (2**63,)])
def test_what_is_no_shape_is_an_error(shape):
    with pytest.raises(MetadataError, match="shape"):
        plan(shape=shape)


@for_each("chunks", [0, (5,), (5, 0), (5, 5, 5), (5, 2.5), "big", (5, -2)])
def test_what_are_no_chunks_is_an_error(chunks):
    with pytest.raises(MetadataError, match="chunks"):
        plan(chunks=chunks)


@for_each("shards", [(10, 9), (4, 4), (10,), 0, "big", (12, 10)])
def test_shards_that_the_chunks_do_not_divide_are_an_error(shards):
    with pytest.raises(MetadataError, match="shards"):
        plan(chunks=5, shards=shards)


def test_a_0d_array_has_one_chunk():
    assert plan(shape=(), chunks="auto").chunk_shape == ()
    assert plan(shape=(), chunks=()).chunk_shape == ()


def test_an_empty_axis_has_chunks_of_one():
    assert plan(shape=(0, 20), chunks="auto").chunk_shape == (1, 20)
    assert plan(shape=(0, 20), chunks=-1).chunk_shape == (1, 20)


# ---- codecs


def test_the_defaults_are_zstandard_and_little_endian():
    # Level 0 is Zstandard's name for its default level, 3.
    assert plan().codecs in [(BytesCodec("little"), ZstdCodec(n)) for n in (0, 3)]
    assert plan(dtype="u1").codecs[0] == BytesCodec(None)
    assert [c.name for c in plan(zarr_format=2).codecs] == ["bytes", "zstd"]


ZSTD1 = ZstdCodec(1)


@for_each(
    ("compressors", "expected"),
    [
        ([], ()),
        ((), ()),
        ("zstd", (ZstdCodec.from_configuration(None),)),
        ({"name": "zstd", "configuration": {"level": 1}}, (ZSTD1,)),
        ({"id": "zstd", "level": 1}, (ZSTD1,)),
        (numcodecs.Zstd(1), (ZSTD1,)),
        (ZSTD1, (ZSTD1,)),
        ([ZSTD1], (ZSTD1,)),
        (["gzip", ZSTD1], (GzipCodec(5), ZSTD1)),
        (numcodecs.GZip(3), (GzipCodec(3),)),
        ("blosc", (BloscCodec(typesize=4),)),
        (
            numcodecs.Blosc("zstd", 3, numcodecs.Blosc.BITSHUFFLE),
            (BloscCodec("zstd", 3, 2, typesize=4),),
        ),
        (numcodecs.Blosc(shuffle=-1), (BloscCodec(typesize=4),)),
        ({"id": "blosc", "cname": "lz4"}, (BloscCodec(typesize=4),)),
    ],
)
def test_compressors_may_be_given_in_several_ways(compressors, expected):
    result = plan(compressors=compressors).codecs[1:]
    if compressors == "zstd":
        assert [c.name for c in result] == ["zstd"]
    else:
        assert result == expected


def test_the_whole_list_of_codecs_may_be_given():
    codecs = [
        TransposeCodec((1, 0)),
        {"name": "bytes", "configuration": {"endian": "big"}},
        "crc32c",
    ]
    result = plan(codecs=codecs).codecs
    assert [c.name for c in result] == ["transpose", "bytes", "crc32c"]
    assert result[1] == BytesCodec("big")


def test_a_list_of_compressors_only_gets_its_bytes():
    assert [c.name for c in plan(codecs=["zstd", "crc32c"]).codecs] == ["bytes", "zstd", "crc32c"]


def test_codecs_of_shards_are_those_of_the_chunks():
    [codec] = plan(chunks=5, shards=(10, 20), compressors="blosc").codecs
    assert isinstance(codec, ShardingCodec)
    assert codec.chunk_shape == (5, 5)
    assert codec.codecs == (BytesCodec(), BloscCodec(typesize=4))
    assert [c.name for c in codec.index_codecs] == ["bytes", "crc32c"]


@pytest.mark.parametrize("others", [{"compressors": "zstd"}, {"filters": []}, {"order": "F"}])
def test_codecs_and_parts_of_them_together_are_an_error(others):
    with pytest.raises(MetadataError, match="codecs"):
        plan(codecs=["bytes"], **others)


def test_order_f_is_a_transpose():
    assert plan(order="F").codecs[0] == TransposeCodec((1, 0))
    assert plan(order="F", shape=5).codecs[0] == BytesCodec()
    assert plan(order="F", zarr_format=2).codecs[0] == TransposeCodec((1, 0))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_another_order_is_an_error(zarr_format):
    with pytest.raises(MetadataError, match="order"):
        plan(order="K", zarr_format=zarr_format)


@for_each(
    ("options", "name"),
    [
        ({"compressors": "nosuch"}, "nosuch"),
        ({"compressors": {"id": "nosuch"}}, "nosuch"),
        ({"codecs": ["bytes", "nosuch"]}, "nosuch"),
        ({"compressors": numcodecs.JSON()}, "json2"),
        ({"compressors": "nosuch", "zarr_format": 2}, "nosuch"),
        ({"filters": "nosuch", "zarr_format": 2}, "nosuch"),
        ({"filters": {"id": "pickle"}, "dtype": object, "zarr_format": 2}, "pickle"),
        ({"shards": (10, 20), "chunks": 5, "zarr_format": 2}, "shards"),
        ({"codecs": ["bytes"], "zarr_format": 2}, "codecs"),
    ],
)
def test_what_the_format_lacks_is_refused_and_named(options, name):
    with pytest.raises(UnsupportedError, match=name):
        plan(**options)


@for_each("codecs", [["zstd", "bytes"], ["bytes", "bytes"], [5], [None], [{}]])
def test_codecs_in_an_impossible_order_or_none_at_all_are_an_error(codecs):
    with pytest.raises(MetadataError):
        plan(codecs=codecs)


def test_v2_has_one_compressor():
    with pytest.raises(MetadataError, match="one compressor"):
        plan(compressors=["zstd", "gzip"], zarr_format=2)


@pytest.mark.parametrize(
    "compressor",
    ["zlib", {"id": "zlib", "level": 1}, numcodecs.Zlib(1)],
    ids=["name", "dict", "object"],
)
def test_v2_compressors_may_be_given_in_several_ways(compressor):
    assert [c.name for c in plan(compressors=compressor, zarr_format=2).codecs] == ["bytes", "zlib"]


def test_v3_configurations_do_for_v2():
    codec = {"name": "zstd", "configuration": {"level": 1}}
    assert plan(compressors=codec, zarr_format=2).codecs[-1] == ZSTD1
    assert plan(compressors=BloscCodec("zstd"), zarr_format=2).codecs[-1].cname == "zstd"


def test_objects_are_texts_unless_a_filter_says_otherwise():
    assert plan(dtype=object, zarr_format=2).codecs[0].name == "vlen-utf8"
    result = plan(dtype=object, zarr_format=2, filters=numcodecs.JSON())
    assert result.codecs[0].name == "json2"
    assert result.fill_value == ""


# ---- the rest


@for_each("dtype", ["f4", "<f4", ">f4", np.float32, "float32", np.dtype(">f4")])
def test_v3_arrays_are_in_native_order_whatever_was_asked_for(dtype):
    assert plan(dtype=dtype).dtype == np.dtype("f4")
    assert plan(dtype=dtype).dtype.isnative


def test_v2_arrays_keep_their_byte_order():
    assert plan(dtype=">f4", zarr_format=2).dtype.str == ">f4"


@for_each(
    ("options", "keys"),
    [
        ({}, ChunkKeys("default", "/")),
        ({"separator": "."}, ChunkKeys("default", ".")),
        ({"chunk_key_encoding": "v2"}, ChunkKeys("v2", ".")),
        ({"chunk_key_encoding": "v2", "separator": "/"}, ChunkKeys("v2", "/")),
        ({"zarr_format": 2}, ChunkKeys("v2", ".")),
        ({"zarr_format": 2, "separator": "/"}, ChunkKeys("v2", "/")),
    ],
)
def test_chunk_keys(options, keys):
    assert plan(**options).keys == keys


@for_each(
    "options",
    [
        {"separator": "-"},
        {"chunk_key_encoding": "v4"},
        {"zarr_format": 1},
        {"zarr_format": "3"},
        {"dimension_names": ["x"]},
        {"dimension_names": ["x", "y", "z"]},
        {"fill_value": "text"},
        {"fill_value": 300, "dtype": "u1"},
    ],
)
def test_a_wrong_option_is_an_error(options):
    with pytest.raises((MetadataError, UnsupportedError)):
        plan(**options)


def test_the_fill_value_is_zero_unless_it_is_given():
    assert plan().fill_value == 0
    assert plan(fill_value=1.5).fill_value == np.float32(1.5)
    assert np.isnan(plan(fill_value=np.nan).fill_value)
    assert plan(dtype="u8", fill_value=2**64 - 1).fill_value == 2**64 - 1


@for_each("zarr_format", [2, "v3-draft-protocol"])
@for_each("dtype", ["f4", "c8"])
def test_the_fill_value_has_the_bits_with_which_its_document_is_read(zarr_format, dtype):
    nan = np.array([0x7FC00123, 0x7FC00123], "u4").view(dtype)[0]
    z = zarrdask.create_array(
        store := {}, shape=2, dtype=dtype, fill_value=nan, zarr_format=zarr_format
    )
    assert z[...].tobytes() == zarrdask.open_array(store)[...].tobytes()
    z[...] = nan
    assert zarrdask.open_array(store)[...].tobytes() == 2 * nan.tobytes()


@for_each(
    ("name", "value"),
    [
        ("dtype", "foo"),
        ("shape", None),
        ("shape", 2.5),
        ("chunks", 3.5),
        ("shards", object()),
        ("compressors", 5),
        ("filters", 5),
        ("attributes", [1]),
        ("dimension_names", [1]),
        ("dimension_names", "x"),
        ("dimension_names", 5),
        ("fill_value", "a text"),
    ],
)
@for_each("zarr_format", [2, 3])
def test_what_makes_no_sense_is_an_error_of_ours_that_names_it(name, value, zarr_format):
    options = {"shape": 4, "dtype": "i4", "zarr_format": zarr_format, name: value}
    store = {}
    with pytest.raises(zarrdask.ZarrdaskError) as caught:
        zarrdask.create_array(store, **options)
    assert store == {}
    assert str(caught.value)


@pytest.mark.parametrize(
    "codecs",
    [
        ["bytes", "zstd"],
        ["bytes", {"name": "blosc", "configuration": {"cname": "zstd", "shuffle": "bitshuffle"}}],
        [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [2],
                    "codecs": ["bytes", "blosc"],
                    "index_codecs": [
                        {"name": "bytes", "configuration": {"endian": "little"}},
                        "crc32c",
                    ],
                },
            }
        ],
    ],
    ids=["bytes", "blosc", "within shards"],
)
def test_what_users_leave_to_the_data_type_is_filled_in(codecs):
    store = {}
    values = np.arange(8, dtype="f4")
    zarrdask.create_array(store, shape=8, dtype="f4", chunks=4, codecs=codecs)[...] = values
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], values)


@for_each("zarr_format", [3, "v3-draft"])
@for_each(
    ("name", "wrong"),
    [
        ("chunk_key_encoding", 7),
        ("storage_transformers", 5),
        ("extensions", 5),
        ("zarr_format", [3]),
    ],
)
def test_an_option_of_the_wrong_kind_is_an_error_that_names_it(zarr_format, name, wrong):
    with pytest.raises(MetadataError, match=name):
        plan(**{"zarr_format": zarr_format, name: wrong})


def test_a_field_of_objects_can_not_be_stored_in_v3():
    with pytest.raises(UnsupportedError):
        plan(dtype=[("a", "O")])


# ---- without a fill value


@for_each("dtype", ["i4", "f8", "M8[s]", "S3", "U2", [("a", "i2")], object])
def test_v2_arrays_can_be_without_a_fill_value(dtype):
    store = {}
    options = {"dtype": dtype, "fill_value": zarrdask.NO_FILL_VALUE, "zarr_format": 2}
    z = zarrdask.create_array(store, shape=3, chunks=2, **options)
    assert z.fill_value is None
    assert json.loads(store[".zarray"])["fill_value"] is None
    assert zarrdask.open_array(store).fill_value is None
    z[1] = z[0]
    assert z[...].tolist() == z[...].tolist()[:1] * 3


def test_to_zarr_can_leave_the_fill_value_open():
    store = {}
    options = {"zarr_format": 2, "fill_value": zarrdask.NO_FILL_VALUE}
    zarrdask.to_zarr(da.arange(6, chunks=4), store, **options)
    z = zarrdask.open_array(store)
    assert z.fill_value is None
    assert z[...].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_older_dialect_of_the_draft_can_be_without_a_fill_value():
    options = {"zarr_format": "v3-draft-protocol", "fill_value": zarrdask.NO_FILL_VALUE}
    assert plan(**options).fill_value is None


@pytest.mark.parametrize("zarr_format", [3, "v3-draft"])
def test_other_arrays_need_a_fill_value(zarr_format):
    with pytest.raises(UnsupportedError, match=r"fill_value: .*NO_FILL_VALUE"):
        plan(zarr_format=zarr_format, fill_value=zarrdask.NO_FILL_VALUE)


def test_no_fill_value_is_one_object_wherever_it_is_sent():
    sent = pickle.loads(pickle.dumps(zarrdask.NO_FILL_VALUE))
    assert sent is zarrdask.NO_FILL_VALUE
    assert repr(sent) == "zarrdask.NO_FILL_VALUE"


# ---- arguments as zarr-python has them


@for_each("zarr_format", [2, 3, "v3-draft"])
def test_none_means_no_compression_and_auto_the_default(zarr_format):
    kinds = {}
    for codecs in ({}, {"compressors": None}, {"compressors": "auto", "filters": "auto"}):
        z = zarrdask.create_array({}, shape=4, dtype="f4", zarr_format=zarr_format, **codecs)
        kinds[str(codecs)] = [codec.name for codec in z.metadata.codecs]
    default, none, auto = kinds.values()
    assert default == auto
    assert none == ["bytes"]
    assert len(default) == 2


def test_objects_of_v2_have_their_filter_by_default():
    for filters in ("auto", None, []):
        z = zarrdask.create_array({}, shape=2, dtype=object, filters=filters, zarr_format=2)
        assert z.metadata.codecs[0].name == "vlen-utf8"


def test_a_copy_keeps_the_compressors_unless_it_is_told_otherwise():
    z = zarrdask.create_array({}, shape=4, dtype="f4", compressors="gzip")
    expected = {"keep": ["bytes", "gzip"], "auto": ["bytes", "zstd"], None: ["bytes"]}
    for compressors, names in expected.items():
        target = {}
        zarrdask.copy(z, target, compressors=compressors)
        assert [codec.name for codec in zarrdask.open_array(target).metadata.codecs] == names


def test_levels_may_be_scalars_of_numpy():
    for codec in (
        {"id": "gzip", "level": np.int64(3)},
        {"name": "gzip", "configuration": {"level": np.uint8(3)}},
    ):
        for zarr_format in (2, 3):
            z = zarrdask.create_array(
                {}, shape=4, dtype="f4", compressors=codec, zarr_format=zarr_format
            )
            assert z.metadata.codecs[-1] == GzipCodec(3)


def test_chunks_may_be_false_for_one_chunk_and_true_for_the_default():
    assert plan(shape=(4000, 3), chunks=False).chunk_shape == (4000, 3)
    assert plan(shape=(4000, 3000), chunks=True) == plan(shape=(4000, 3000))


def test_chunks_in_the_place_of_the_component_are_an_error_that_says_so():
    z = zarrdask.create_array({}, shape=4, dtype="f4")
    for call in (
        lambda: zarrdask.rechunk(z, {}, (2,)),
        lambda: zarrdask.copy(z, {}, 2),
        lambda: zarrdask.create_array({}, (4,), shape=4, dtype="f4"),
    ):
        with pytest.raises(MetadataError, match=r"component.*by name"):
            call()


# ---- chunks that are too large for a codec


@for_each(
    ("compressors", "size"),
    [("blosc", 2**31), ("lz4", 2**31 - 2**24), ({"id": "blosc", "cname": "zstd"}, 2**33)],
)
@for_each("zarr_format", [2, 3])
def test_chunks_that_a_codec_cannot_encode_are_refused_before_anything_is_written(
    compressors, size, zarr_format
):
    options = {"dtype": "u1", "compressors": compressors, "zarr_format": zarr_format}
    store = {}
    with pytest.raises(MetadataError, match=r"at most 2[0-9]{9} bytes"):
        zarrdask.create_array(store, shape=size, chunks=size, **options)
    z = zarrdask.create_array({}, shape=size, chunks=2**20, **options)
    for rewrite in (zarrdask.rechunk, zarrdask.copy):
        with pytest.raises(MetadataError, match=r"at most 2[0-9]{9} bytes"):
            rewrite(z, store, chunks=size)
    assert not store
    zarrdask.create_array({}, shape=2 * size, chunks=size // 8, **options)


def test_chunks_in_shards_are_what_a_codec_encodes():
    options = {"shape": 2**33, "dtype": "u1", "compressors": "blosc"}
    plan(**options, chunks=2**20, shards=2**33)
    with pytest.raises(MetadataError, match="codec blosc can't encode"):
        plan(**options, chunks=2**32, shards=2**33)
