"""C.7: the codec pipeline, core codecs, registered codecs and numcodecs' in v3."""

import bz2
import gzip
import math
import struct
import zlib

import ml_dtypes
import numcodecs
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import (
    BIG,
    CRC32C,
    LITTLE,
    blosc_frame,
    crc32c,
    named,
    same,
    sharding,
    stored,
    v3,
    zstd_frame,
)

GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZSTD = {"name": "zstd", "configuration": {"level": 1}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def opened(
    codecs, data=None, *, shape=(2, 3), data_type="uint16", fill_value=0, strict=None, **others
):
    """Return an array of one chunk, which is stored as given."""
    document = v3(shape, shape, data_type, fill_value, codecs, **others)
    key = "/".join(["c", *"0" * len(shape)])
    return zarrdask.open_array(stored(document, {} if data is None else {key: data}), strict=strict)


def written(values, codecs, **others):
    """Return what is stored for an array of one chunk, which is also read back."""
    values = np.asarray(values)
    store = {}
    options = {"dtype": values.dtype, "chunks": -1, **others}
    z = zarrdask.create_array(store, shape=values.shape, codecs=codecs, **options)
    z[...] = values
    found = zarrdask.open_array(store, strict=True)[...]
    assert found.tobytes() == values.tobytes() or np.array_equal(found, values)
    [data] = [bytes(value) for key, value in store.items() if key != "zarr.json"]
    return data


VALUES = np.arange(1, 7, dtype="u2").reshape(2, 3)
RAW = VALUES.tobytes()


# ---- The pipeline


@for_each(
    "codecs",
    [
        [LITTLE, LITTLE],
        [LITTLE, TRANSPOSE],
        [GZIP, LITTLE],
        [TRANSPOSE, GZIP, LITTLE],
        [LITTLE, GZIP, TRANSPOSE],
        [sharding((1, 3)), LITTLE],
    ],
)
def test_c42_any_order_but_array_array_then_array_bytes_then_bytes_bytes_fails_at_open(codecs):
    with pytest.raises(zarrdask.errors.MetadataError, match="codecs"):
        opened(codecs)


def test_c42_the_one_order_opens():
    data = gzip.compress(VALUES.T.tobytes())
    same(opened([TRANSPOSE, TRANSPOSE, TRANSPOSE, LITTLE, GZIP], data)[...], VALUES)


@for_each(
    "codecs",
    [
        [named("transpose", order=[0, 1, 2]), LITTLE],
        [named("reshape", shape=[6]), TRANSPOSE, LITTLE],
        [named("cast_value", data_type="string"), LITTLE],
        [named("cast_value", data_type="uint8"), named("numcodecs.packbits"), LITTLE],
        [{"name": "bytes"}],
        ["vlen-utf8"],
        [sharding((2, 2))],
    ],
)
def test_c43_a_codec_that_can_not_take_what_it_is_given_fails_at_open(codecs):
    with pytest.raises(zarrdask.errors.MetadataError):
        opened(codecs)


def test_c43_shape_type_and_fill_value_are_followed_through_the_chain():
    codecs = [
        named("reshape", shape=[[0, 1]]),
        named("scale_offset", offset=1),
        named("cast_value", data_type="int8"),
        sharding((3,), [{"name": "bytes"}]),
    ]
    z = opened(codecs, fill_value=4)
    spec = z.metadata.pipeline.serializer.spec
    assert (spec.shape, spec.dtype, spec.fill_value) == ((6,), np.dtype("i1"), 3)


def test_c44_codecs_are_applied_in_order_and_undone_backwards():
    data = written(VALUES, [TRANSPOSE, BIG, named("numcodecs.zlib", level=1), CRC32C])
    stream = zlib.compress(VALUES.T.astype(">u2").tobytes(), 1)
    assert data == stream + crc32c(stream)


@for_each(
    "codecs",
    [
        [LITTLE, named("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4, blocksize=0)],
        [sharding((10, 5), [LITTLE, ZSTD])],
        [TRANSPOSE, sharding((20, 10), [sharding((10, 5), [BIG, GZIP])])],
        [TRANSPOSE, LITTLE, GZIP],
        [named("reshape", shape=[-1]), "packbits"],
    ],
)
@for_each(
    "part", [np.s_[3:5, 7:9], np.s_[::9, ::4], np.s_[-1], np.s_[:, 12], np.s_[[1, 3], [19, 2]]]
)
def test_c45_a_part_is_that_part_of_the_whole(codecs, part):
    values = np.arange(800, dtype="u4").reshape(40, 20)
    store = {}
    z = zarrdask.create_array(store, shape=(40, 20), dtype="u4", chunks=(40, 20), codecs=codecs)
    z[...] = values
    z = zarrdask.open_array(store)
    same(z[part], z[...][part])
    same(z[part], values[part])


@pytest.mark.parametrize("codecs", [[LITTLE, "nosuch"], [named("nosuch"), LITTLE], ["nosuch"]])
def test_c46_an_unknown_codec_is_named_in_the_error(codecs):
    with pytest.raises(zarrdask.errors.UnsupportedError) as caught:
        opened(codecs)
    assert caught.value.found == "nosuch"


# ---- Core codecs


def test_c47_bytes_are_the_elements_in_c_order_and_the_given_byte_order():
    assert written(VALUES, [LITTLE]) == struct.pack("<6H", 1, 2, 3, 4, 5, 6)
    assert written(VALUES, [BIG]) == struct.pack(">6H", 1, 2, 3, 4, 5, 6)
    assert written(np.array([True, False]), ["bytes"]) == b"\1\0"
    assert written(np.array([1 + 2j], "c8"), [BIG]) == struct.pack(">2f", 1, 2)


def test_c47_several_bytes_need_a_byte_order():
    with pytest.raises(zarrdask.errors.MetadataError, match=r"bytes\.endian"):
        opened([{"name": "bytes"}], RAW)
    with pytest.raises(zarrdask.errors.MetadataError, match=r"bytes\.endian"):
        opened([named("bytes", endian="middle")], RAW)


@pytest.mark.parametrize("codec", [{"name": "bytes"}, LITTLE, BIG])
def test_c47_single_bytes_need_none(codec):
    found = opened([codec], b"\1\2\3\4\5\6", data_type="int8")[...]
    same(found, VALUES.astype("i1"))


def test_c48_axis_i_of_the_result_is_axis_order_i_of_the_chunk():
    assert written(VALUES, [TRANSPOSE, LITTLE]) == struct.pack("<6H", 1, 4, 2, 5, 3, 6)
    values = np.arange(24, dtype="u1").reshape(2, 3, 4)
    assert (
        written(values, [named("transpose", order=[2, 0, 1]), "bytes"])
        == values.transpose(2, 0, 1).tobytes()
    )


@for_each("order", [[0], [0, 0], [1, 2], [0, 1, 2], [-1, 0], [1.0, 0], None, "K"])
def test_c48_what_is_no_permutation_of_the_axes_is_an_error(order):
    with pytest.raises(zarrdask.errors.MetadataError, match=r"transpose\.order"):
        opened([named("transpose", order=order), LITTLE], RAW)


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(RAW, mtime=0),
        gzip.compress(RAW[:5], mtime=0)
        + gzip.compress(RAW[5:], mtime=0)
        + gzip.compress(b"", mtime=0),
    ],
)
def test_c49_gzip_streams_decode_also_of_several_members(data):
    same(opened([LITTLE, GZIP], data)[...], VALUES)


@pytest.mark.parametrize("level", [0, 1, 9])
def test_c49_gzip_is_written_as_rfc_1952_says(level):
    assert gzip.decompress(written(VALUES, [LITTLE, named("gzip", level=level)])) == RAW


@for_each("level", [-1, 10, 5.0, "5", None, True])
def test_c49_another_level_is_an_error(level):
    with pytest.raises(zarrdask.errors.MetadataError, match=r"gzip\.level"):
        opened([LITTLE, named("gzip", level=level)], strict=True)


def test_c50_shuffle_and_typesize_that_were_used_are_written_down():
    z = zarrdask.create_array({}, shape=4, dtype="f8", compressors="blosc")
    found = z.metadata.codecs[-1].to_json()["configuration"]
    assert found == {
        "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 8, "blocksize": 0
    }  # fmt: skip
    z = zarrdask.create_array(
        {}, shape=4, dtype="i1", compressors=numcodecs.Blosc(shuffle=numcodecs.Blosc.AUTOSHUFFLE)
    )
    found = z.metadata.codecs[-1].to_json()["configuration"]
    assert (found["shuffle"], found["typesize"]) == ("bitshuffle", 1)


def test_c50_a_frame_is_read_whatever_the_metadata_say():
    codec = named("blosc", cname="zstd", clevel=1, shuffle="bitshuffle", typesize=8, blocksize=0)
    same(opened([LITTLE, codec], blosc_frame(RAW))[...], VALUES)
    frame = numcodecs.Blosc("lz4", 5, numcodecs.Blosc.SHUFFLE).encode(VALUES)
    same(opened([LITTLE, codec], frame)[...], VALUES)


@for_each(
    "members",
    [
        {"shuffle": "shuffle"},
        {"shuffle": 1, "typesize": 2},
        {"shuffle": "noshuffle", "cname": "lzo"},
        {"shuffle": "noshuffle", "clevel": 10},
        {"shuffle": "noshuffle", "blocksize": -1},
    ],
)
def test_c50_a_wrong_configuration_is_an_error(members):
    with pytest.raises(zarrdask.errors.MetadataError, match="blosc"):
        opened([LITTLE, named("blosc", **members)])


def test_c51_the_checksum_is_four_bytes_at_the_end():
    assert written(np.frombuffer(b"123456789", "u1"), ["bytes", "crc32c"]) == (
        b"123456789" + (0xE3069283).to_bytes(4, "little")
    )


@for_each("data", [RAW + b"\0\0\0\0", crc32c(RAW) + RAW, b"", RAW[:3]])
def test_c51_a_checksum_that_does_not_match_is_an_error(data):
    with pytest.raises(zarrdask.errors.CodecError, match="crc32c"):
        opened([LITTLE, CRC32C], data)[...]


def test_c51_there_is_no_configuration():
    with pytest.raises(zarrdask.errors.MetadataError, match="crc32c"):
        opened([LITTLE, named("crc32c", location="end")])


def test_c52_sharding_indexed_is_a_codec():
    z = opened([sharding((1, 3))])
    assert (z.shards, z.chunks) == ((2, 3), (1, 3))


# ---- Registered codecs


@pytest.mark.parametrize("sized", [True, False])
def test_c53_zstd_frames_decode_also_without_their_size(sized):
    same(opened([LITTLE, ZSTD], zstd_frame(RAW, sized=sized))[...], VALUES)
    both = zstd_frame(RAW[:6], sized=sized) + zstd_frame(RAW[6:], sized=sized)
    same(opened([LITTLE, ZSTD], both)[...], VALUES)


@for_each("level", [-131072, -1, 0, 22])
def test_c53_zstd_has_these_levels_and_writes_a_checksum_that_is_false(level):
    z = zarrdask.create_array({}, shape=4, dtype="i1", compressors=named("zstd", level=level))
    assert z.metadata.codecs[-1].to_json() == named("zstd", level=level, checksum=False)
    assert written(VALUES, [LITTLE, named("zstd", level=level)])[:4] == b"\x28\xb5\x2f\xfd"


@for_each("level", [-131073, 23, 1.5, None])
def test_c53_another_level_is_an_error(level):
    with pytest.raises(zarrdask.errors.MetadataError, match=r"zstd\.level"):
        opened([LITTLE, named("zstd", level=level)])


def test_c54_texts_are_a_count_and_each_its_length_and_utf8():
    texts = np.array([["é", ""], ["ab", "日"]], object)
    expected = struct.pack("<I", 4) + b"".join(
        struct.pack("<I", len(text)) + text for text in ("é".encode(), b"", b"ab", "日".encode())
    )
    assert written(texts, ["vlen-utf8"], dtype="string") == expected
    for codec in ("vlen-utf8", {"name": "vlen-utf8"}, named("vlen-utf8")):
        z = opened([codec], expected, shape=(2, 2), data_type="string", fill_value="")
        assert z[...].tolist() == texts.tolist()


def test_c54_vlen_utf8_is_for_strings_only():
    for data_type, fill_value in (("bytes", ""), ("uint16", 0)):
        with pytest.raises(zarrdask.errors.MetadataError, match="vlen-utf8"):
            opened(["vlen-utf8"], data_type=data_type, fill_value=fill_value)
    with pytest.raises(zarrdask.errors.MetadataError, match="vlen-utf8"):
        opened([named("vlen-utf8", level=1)], data_type="string", fill_value="")


def test_c55_bytes_are_laid_out_as_texts_are():
    values = np.array([b"\xff\0", b""], object)
    expected = struct.pack("<II", 2, 2) + b"\xff\0" + struct.pack("<I", 0)
    assert written(values, ["vlen-bytes"], dtype=bytes) == expected
    z = opened(["vlen-bytes"], expected, shape=(2,), data_type="bytes", fill_value="")
    assert z[...].tolist() == values.tolist()


def test_c55_vlen_bytes_is_for_bytes_only():
    with pytest.raises(zarrdask.errors.MetadataError, match="vlen-bytes"):
        opened(["vlen-bytes"], data_type="string", fill_value="")


def test_c56_the_registrys_samples_of_floats():
    values = np.array([0, 0.1, 1.2, 12.3, 123.4, 1234.5, math.nan, math.inf, -math.inf], "f4")
    z = zarrdask.create_array({}, shape=9, dtype="f4", filters=named("bitround", keepbits=3))
    z[...] = values
    expected = [0, 0.1015625, 1.25, 12, 120, 1280, math.nan, math.inf, -math.inf]
    same(z[...], np.array(expected, "f4"))


def test_c56_the_registrys_samples_of_integers():
    z = zarrdask.create_array({}, shape=10, dtype="u1", filters=named("bitround", keepbits=3))
    z[...] = [0, 1, 10, 11, 100, 123, 200, 208, 209, 255]
    assert z[...].tolist() == [0, 1, 10, 12, 96, 128, 192, 192, 224, 224]


@pytest.mark.parametrize("name", ["bitround", "numcodecs.bitround"])
def test_c56_decoding_changes_nothing_under_either_name(name):
    values = np.array([0.1, 1.2], "f4")
    z = opened([named(name, keepbits=1), LITTLE], values.tobytes(), shape=(2,), data_type="float32")
    same(z[...], values)


def test_c56_each_part_of_a_complex_number_is_rounded():
    z = zarrdask.create_array({}, shape=1, dtype="c8", filters=named("bitround", keepbits=3))
    z[...] = 1.2 + 12.3j
    assert z[...].tolist() == [1.25 + 12j]


def cast(values, data_type, **members):
    """Return the numbers that are stored of an array."""
    values = np.asarray(values)
    store = {}
    filters = named("cast_value", data_type=data_type, **members)
    z = zarrdask.create_array(
        store, shape=values.shape, dtype=values.dtype, filters=filters, compressors=[]
    )
    z[...] = values
    stored_type = zarrdask.formats.dtypes.registry.parse_data_type(data_type).dtype
    [data] = [value for key, value in store.items() if key != "zarr.json"]
    return np.frombuffer(bytes(data), stored_type).tolist()


@for_each(
    ("rounding", "expected"),
    [
        (None, [2, 2, 4, -2, -2, 3]),
        ("nearest-even", [2, 2, 4, -2, -2, 3]),
        ("nearest-away", [2, 3, 4, -2, -3, 3]),
        ("towards-zero", [1, 2, 3, -1, -2, 3]),
        ("towards-positive", [2, 3, 4, -1, -2, 4]),
        ("towards-negative", [1, 2, 3, -2, -3, 3]),
    ],
)
def test_c57_rounding(rounding, expected):
    members = {} if rounding is None else {"rounding": rounding}
    assert cast([1.5, 2.5, 3.5, -1.5, -2.5, 3.2], "int8", **members) == expected


def test_c57_rounding_goes_before_the_range():
    assert cast([255.4, -0.4], "uint8") == [255, 0]
    with pytest.raises(zarrdask.errors.CodecError):
        cast([255.5], "uint8")


@for_each("value", [256.0, -1.0, math.inf, math.nan])
def test_c57_a_number_that_no_rule_is_for_is_an_error(value):
    with pytest.raises(zarrdask.errors.CodecError, match="cast_value"):
        cast([value], "uint8")


def test_c57_clamped_numbers_are_the_nearest_or_infinite_where_there_is_infinity():
    assert cast([300.0, -300.0, math.inf], "int8", out_of_range="clamp") == [127, -128, 127]
    assert cast([1e300, -1e300], "float32", out_of_range="clamp") == [math.inf, -math.inf]
    assert cast([1e300, -1e300], "float4_e2m1fn", out_of_range="clamp") == [6, -6]
    with pytest.raises(zarrdask.errors.CodecError, match="NaN"):
        cast([math.nan], "int8", out_of_range="clamp")


def test_c57_wrapped_numbers_are_modulo_two_to_the_bits_and_integers_only():
    assert cast([256, -1, 511], "uint8", out_of_range="wrap") == [0, 255, 255]
    assert cast([128.0, -129.0, 2.0**70], "int8", out_of_range="wrap") == [-128, 127, 0]
    assert cast([8, 15], "int4", out_of_range="wrap") == [-8, -1]
    with pytest.raises(zarrdask.errors.MetadataError, match="out_of_range"):
        cast([1.0], "float32", out_of_range="wrap")


def test_c57_the_scalar_map_is_asked_first_and_its_first_pair_wins():
    pairs = {"encode": [["NaN", 0], [300, 1], [300, 2], [5, 50]]}
    assert cast([math.nan, 300, 5, 6], "uint8", scalar_map=pairs) == [0, 1, 50, 6]


def test_c57_zeros_keep_their_signs_and_wide_integers_all_their_digits():
    assert [math.copysign(1, n) for n in cast([-0.0, 0.0], "float32")] == [-1, 1]
    assert cast([2**63 - 1, 2**53 + 1], "uint64") == [2**63 - 1, 2**53 + 1]
    found = cast([2**63 - 1, 2**53 + 1], "float64", rounding="towards-zero")
    assert found == [float(2**63 - 1024), float(2**53)]


@pytest.mark.parametrize("members", [{"kind": "x"}, {"rounding": "up"}, {"out_of_range": "error"}])
def test_c57_other_keys_and_values_are_errors(members):
    with pytest.raises(zarrdask.errors.MetadataError, match="cast_value"):
        opened([named("cast_value", data_type="uint8", **members), LITTLE])


def test_c58_the_fill_value_is_cast_through_the_chain():
    pairs = {"encode": [["NaN", 255]], "decode": [[255, "NaN"]]}
    codecs = [
        named("cast_value", data_type="uint8", scalar_map=pairs),
        sharding((1, 3), [{"name": "bytes"}]),
    ]
    store = {}
    z = zarrdask.create_array(
        store, shape=(2, 3), dtype="f8", chunks=(2, 3), codecs=codecs, fill_value=math.nan
    )
    z[0] = [1, 2, 3]
    assert z.metadata.pipeline.serializer.spec.fill_value == 255
    assert len(store["c/0/0"]) == 3 + 36, "the chunk of NaN is left out"
    same(z[...], np.array([[1, 2, 3], [math.nan] * 3]))


@for_each("fill_value", [0.5, 256, "NaN", "Infinity"])
def test_c58_a_fill_value_that_does_not_come_back_is_an_error(fill_value):
    codecs = [named("cast_value", data_type="uint8", out_of_range="clamp"), {"name": "bytes"}]
    with pytest.raises(zarrdask.errors.MetadataError, match="fill value"):
        opened(codecs, data_type="float64", fill_value=fill_value)
    with pytest.raises(zarrdask.errors.MetadataError, match="fill value"):
        zarrdask.create_array({}, shape=3, dtype="f8", codecs=codecs, fill_value=float(fill_value))


def test_c59_the_sample_of_the_other_software():
    codecs = [
        named("scale_offset", offset=-10, scale=0.1),
        named(
            "cast_value",
            data_type="uint8",
            scalar_map={"encode": [["NaN", 0]], "decode": [[0, "NaN"]]},
        ),
        {"name": "bytes"},
    ]
    values = np.array([0, 10, math.nan, 2540])
    assert written(values, codecs, fill_value=math.nan) == b"\x01\x02\x00\xff"
    data = b"\x01\x02\x00\xff"
    same(opened(codecs, data, shape=(4,), data_type="float64", fill_value="NaN")[...], values)


def test_c59_the_arithmetic_is_the_input_types():
    values = np.array([0.1, 3.7], "f4")
    z = zarrdask.create_array(
        {}, shape=2, dtype="f4", filters=named("scale_offset", offset=0.3, scale=0.7)
    )
    z[...] = values
    offset, scale = np.array([0.3, 0.7], "f4")
    same(z[...], (values - offset) * scale / scale + offset)
    assert (
        written(
            np.array([1000, 1255], "u2"),
            [named("scale_offset", offset=1000), LITTLE],
            fill_value=1000,
        )
        == b"\0\0\xff\0"
    )


@for_each(
    ("dtype", "value", "members"),
    [
        ("u1", 3, {"offset": 4}),
        ("u1", 100, {"scale": 3}),
        ("i8", 2**62, {"scale": 2}),
        ("f4", 3e38, {"scale": 2}),
    ],
)
def test_c59_what_can_not_be_represented_is_an_error(dtype, value, members):
    z = zarrdask.create_array(
        {},
        shape=1,
        dtype=dtype,
        filters=named("scale_offset", **members),
        fill_value=members.get("offset", 0),
    )
    with pytest.raises(zarrdask.errors.CodecError, match="scale_offset"):
        z[...] = value


def test_c59_the_configuration_is_optional_and_has_two_keys():
    same(opened(["scale_offset", LITTLE], RAW)[...], VALUES)
    with pytest.raises(zarrdask.errors.MetadataError, match="scale_offset"):
        opened([named("scale_offset", factor=2), LITTLE])


def test_c59_the_fill_value_is_transformed():
    z = opened([named("scale_offset", offset=1, scale=2), sharding((1, 3))], fill_value=4)
    assert z.metadata.pipeline.serializer.spec.fill_value == 6
    assert z[...].tolist() == [[4] * 3] * 2
    with pytest.raises(zarrdask.errors.MetadataError, match="fill value"):
        opened([named("scale_offset", offset=1), LITTLE], fill_value=0)


def test_c60_fixedscaleoffset_rounds_and_casts():
    codec = named("numcodecs.fixedscaleoffset", offset=1000, scale=10, dtype="<f8", astype="|u1")
    data = bytes([0, 5, 123])
    z = opened([codec, {"name": "bytes"}], data, shape=(3,), data_type="float64")
    assert z[...].tolist() == [1000.0, 1000.5, 1012.3]
    z = zarrdask.create_array({}, shape=3, dtype="f8", filters=codec, fill_value=1000)
    z[...] = [1000.04, 1000.46, 1012.3]
    assert z[...].tolist() == [1000.0, 1000.5, 1012.3]


@for_each(
    ("shape", "before", "after"),
    [
        ([[0, 1], [2], 3], (10, 5, 6, 3), (50, 6, 3)),
        ([-1, 3], (2, 3), (2, 3)),
        ([6], (2, 3), (6,)),
        ([[0], [1, 2], 2, -1], (2, 3, 4, 6), (2, 12, 2, 3)),
    ],
)
def test_c61_elements_keep_their_order_in_another_shape(shape, before, after):
    values = np.arange(math.prod(before), dtype="u2").reshape(before)
    codecs = [named("reshape", shape=shape), LITTLE]
    z = opened(codecs, values.tobytes(), shape=before)
    assert z.metadata.pipeline.serializer.spec.shape == after
    same(z[...], values)
    turned = [
        named("reshape", shape=shape),
        named("transpose", order=list(range(len(after)))[::-1]),
    ]
    assert written(values, [*turned, LITTLE]) == values.reshape(after).T.tobytes()


@for_each(
    "shape",
    [[5], [-1, -1], [4, -1], [[1], [0]], [[1, 0]], [[0], [0]], [[1], 2], [[0, 2]], [0, 6], [6.0]],
)
def test_c61_other_shapes_are_errors(shape):
    with pytest.raises(zarrdask.errors.MetadataError, match=r"reshape\.shape"):
        opened([named("reshape", shape=shape), LITTLE])


def test_c62_bits_come_lowest_first_as_in_these_bytes():
    assert written(np.arange(8) % 2 == 1, ["packbits"]) == b"\xaa"
    nibbles = np.arange(-8, 8).astype("i1").astype(ml_dtypes.int4)
    assert written(nibbles, ["packbits"])[:3] == bytes.fromhex("98badc")


@pytest.mark.parametrize(
    ("padding", "expected"), [("none", "05"), ("first_byte", "0505"), ("last_byte", "0505")]
)
def test_c62_the_number_of_padding_bits_may_stand_before_or_after(padding, expected):
    values = np.array([True, False, True])
    data = written(values, [named("packbits", padding_encoding=padding)])
    assert data.hex() == expected
    z = opened(
        [named("packbits", padding_encoding=padding)],
        data,
        shape=(3,),
        data_type="bool",
        fill_value=False,
    )
    same(z[...], values)
    with pytest.raises(zarrdask.errors.CodecError, match="packbits"):
        opened(
            [named("packbits", padding_encoding=padding)],
            data + b"\0",
            shape=(3,),
            data_type="bool",
            fill_value=False,
        )[...]


def test_c62_some_bits_of_each_element_are_extended_by_sign_or_zeros():
    values = np.array([-4, 3, -1], "i2")
    assert written(values, [named("packbits", last_bit=2)]) == bytes([0b11011100, 1])
    some = named("packbits", first_bit=4, last_bit=7)
    assert written(np.array([0x10, 0xF0], "u2"), [some]) == b"\xf1"
    z = opened([some], b"\xf1", shape=(2,), data_type="int16")
    assert z[...].tolist() == [0x10, -16]


def test_c62_complex_numbers_are_two_components():
    values = np.array([1 + 2j], "c8")
    bits = int.from_bytes(struct.pack("<f", 1), "little") >> 16
    more = int.from_bytes(struct.pack("<f", 2), "little") >> 16
    data = written(values, [named("packbits", first_bit=16)])
    assert data == struct.pack("<2H", bits, more)


def test_c62_the_last_bit_below_the_first_is_an_error():
    with pytest.raises(zarrdask.errors.MetadataError, match="last_bit"):
        opened([named("packbits", first_bit=3, last_bit=2)])


@for_each("shape", [(), (5,), (4, 5), (3, 4, 5), (2, 3, 4, 5)])
@for_each("dtype", ["i4", "u4", "i8", "u8", "f4", "f8"])
def test_c63_zfp_takes_up_to_four_axes_of_these_types(shape, dtype):
    values = np.arange(1, math.prod(shape) + 1, dtype=dtype).reshape(shape)
    assert written(values, [named("zfp", mode="reversible")])[:3] != b"zfp", "no header"


@for_each(
    ("members", "error"),
    [
        ({"mode": "fixed_accuracy", "tolerance": 0.05}, 0.05),
        ({"mode": "fixed_rate", "rate": 16}, 0.05),
        ({"mode": "fixed_precision", "precision": 20}, 0.05),
        ({"mode": "expert", "minbits": 1, "maxbits": 16658, "maxprec": 64, "minexp": -5}, 0.05),
        ({"mode": "reversible"}, 0),
    ],
)
def test_c63_the_modes_of_zfp(members, error):
    values = np.cumsum(np.random.default_rng(1).normal(size=(16, 16)), axis=0)
    store = {}
    z = zarrdask.create_array(store, shape=(16, 16), dtype="f8", codecs=[named("zfp", **members)])
    z[...] = values
    again = zarrdask.open_array(store, strict=True)
    assert np.abs(again[...] - values).max() <= error
    assert again.metadata.codecs[0].to_json() == named("zfp", **members)


def test_c63_what_zfp_has_not_is_an_error():
    for members in ({}, {"mode": "fixed_rate"}, {"mode": "reversible", "rate": 8}):
        with pytest.raises(zarrdask.errors.MetadataError, match="zfp"):
            opened([named("zfp", **members)])
    with pytest.raises(zarrdask.errors.MetadataError, match="four axes"):
        opened([named("zfp", mode="reversible")], shape=(1,) * 5, data_type="int32")


def test_c64_a_bit_of_the_header_says_whether_a_codec_was_applied():
    codec = named("conditional", codecs=[named("numcodecs.zlib", level=1), CRC32C])
    packed = zlib.compress(RAW, 1)
    for data in (
        b"\0" + RAW,
        b"\1" + packed,
        b"\2" + RAW + crc32c(RAW),
        b"\3" + packed + crc32c(packed),
    ):
        same(opened([LITTLE, codec], data)[...], VALUES)


def test_c64_the_header_is_as_long_as_it_is_said_to_be_and_little_endian():
    nine = [named("numcodecs.shuffle", elementsize=1)] * 9
    assert written(VALUES, [LITTLE, named("conditional", codecs=nine)]) == b"\xff\1" + RAW
    wide = named("conditional", codecs=nine[:1], header_bits=24)
    assert written(VALUES, [LITTLE, wide]) == b"\1\0\0" + RAW


def test_c64_reserved_bits_are_zero():
    codec = named("conditional", codecs=[CRC32C])
    with pytest.raises(zarrdask.errors.CodecError, match="conditional"):
        opened([LITTLE, codec], b"\2" + RAW)[...]


@for_each(
    "members",
    [
        {"codecs": [LITTLE]},
        {"codecs": [CRC32C], "header_bits": 7},
        {"codecs": [CRC32C] * 9, "header_bits": 8},
        {},
    ],
)
def test_c64_a_wrong_configuration_is_an_error(members):
    with pytest.raises(zarrdask.errors.MetadataError):
        opened([LITTLE, named("conditional", **members)])


N5 = [TRANSPOSE, BIG]


def block(shape, values, mode=0):
    head = struct.pack(f">HH{len(shape)}I", mode, len(shape), *shape)
    return head + struct.pack(f">{len(values)}H", *values)


def test_c65_an_n5_block_is_its_header_and_the_elements_in_n5s_order():
    expected = block((2, 3), [1, 4, 2, 5, 3, 6])
    assert written(VALUES, [named("n5_default", codecs=N5)]) == expected
    same(opened([named("n5_default", codecs=N5)], expected)[...], VALUES)


@pytest.mark.parametrize(
    ("shape", "values", "expected"),
    [
        ((1, 3), [1, 2, 3], [[1, 2, 3], [9, 9, 9]]),
        ((2, 2), [1, 4, 2, 5], [[1, 2, 9], [4, 5, 9]]),
        ((2, 4), [1, 4, 2, 5, 3, 6, 7, 8], [[1, 2, 3], [4, 5, 6]]),
    ],
)
def test_c65_a_block_of_another_size_is_padded_or_cut_off(shape, values, expected):
    z = opened([named("n5_default", codecs=N5)], block(shape, values), fill_value=9)
    assert z[...].tolist() == expected


@pytest.mark.parametrize("data", [block((2, 3), [0] * 6, mode=1), block((2, 3, 1), [0] * 6), b"\0"])
def test_c65_another_mode_or_number_of_dimensions_is_an_error(data):
    with pytest.raises(zarrdask.errors.CodecError, match="N5"):
        opened([named("n5_default", codecs=N5)], data)[...]


@for_each(
    "codecs", [[BIG], [TRANSPOSE, LITTLE], [TRANSPOSE, BIG, GZIP, CRC32C], [TRANSPOSE, "bytes"]]
)
def test_c65_other_codecs_within_are_errors(codecs):
    with pytest.raises(zarrdask.errors.MetadataError, match="n5_default"):
        opened([named("n5_default", codecs=codecs)])


def test_c65_new_arrays_have_n5s_chunk_keys():
    z = zarrdask.create_array(
        {}, shape=(2, 3), dtype="u1", codecs=[named("n5_default", codecs=[TRANSPOSE, "bytes"])]
    )
    assert z.metadata.keys.to_json() == named("v2", separator="/")


# ---- numcodecs


def test_c66_the_sample_of_zarr_python():
    codecs = [named("numcodecs.delta", dtype="<i4"), LITTLE, named("numcodecs.zlib", level=1)]
    data = zlib.compress(struct.pack("<4i", 1, 1, 2, 4), 1)
    z = opened(codecs, data, shape=(4,), data_type="int32")
    assert z[...].tolist() == [1, 2, 4, 8]
    values = np.array([1, 2, 4, 8], "i4")
    assert zlib.decompress(written(values, codecs)) == zlib.decompress(data)


INTEGERS = np.array([[3, 1], [4, 60]], "i4")


@pytest.mark.parametrize("spelled", ["<i4", "int32"])
def test_c66_data_types_may_be_spelled_in_two_ways(spelled):
    codecs = [named("numcodecs.delta", dtype=spelled, astype="|i1"), {"name": "bytes"}]
    assert written(INTEGERS, codecs) == bytes([3, 254, 3, 56])


@pytest.mark.parametrize(
    ("codec", "dtype"),
    [
        (named("numcodecs.delta", dtype="<i4"), "i4"),
        (named("numcodecs.fixedscaleoffset", offset=0, scale=2, dtype="<i4", astype="<i8"), "i8"),
        (named("numcodecs.astype", encode_dtype="<f4", decode_dtype="<i4"), "f4"),
    ],
)
def test_c66_array_array_codecs_tell_the_type_that_comes_out(codec, dtype):
    config = {"id": codec["name"].removeprefix("numcodecs."), **codec["configuration"]}
    data = written(INTEGERS, [codec, LITTLE])
    assert data == np.asarray(numcodecs.get_codec(config).encode(INTEGERS)).tobytes()
    z = opened([codec, LITTLE], data, shape=(2, 2), data_type="int32")
    assert z.metadata.pipeline.serializer.spec.dtype == np.dtype(dtype)


def test_c66_filters_of_floats():
    values = np.array([1.25, 2.5])
    for codec in (
        named("numcodecs.quantize", digits=3, dtype="<f8"),
        named("numcodecs.bitround", keepbits=10),
    ):
        assert written(values, [codec, LITTLE]) == values.tobytes()


def test_c66_packbits_of_numcodecs_is_array_array_and_highest_bit_first():
    flags = np.array([1, 0, 1, 1, 0, 0, 0, 0, 1, 1], bool)
    assert written(flags, ["numcodecs.packbits", "bytes"]) == b"\x06\xb0\xc0"


@pytest.mark.parametrize("name", ["zfpy", "pcodec"])
def test_c66_array_bytes_codecs_write_what_numcodecs_does(name):
    values = np.arange(12, dtype="f4").reshape(3, 4)
    data = written(values, [f"numcodecs.{name}"])
    assert np.array_equal(numcodecs.get_codec({"id": name}).decode(data).reshape(3, 4), values)


@for_each(
    "name",
    [
        *("blosc", "zlib", "gzip", "bz2", "lzma", "lz4", "zstd", "shuffle", "crc32", "crc32c"),
        *("adler32", "fletcher32", "jenkins_lookup3"),
    ],
)
def test_c66_bytes_bytes_codecs_write_what_numcodecs_does(name):
    members = {"elementsize": 2} if name == "shuffle" else {}
    theirs = numcodecs.get_codec({"id": name, **members})
    codec = named(f"numcodecs.{name}", **members)
    assert bytes(theirs.decode(written(VALUES, [LITTLE, codec]))) == RAW
    same(opened([LITTLE, codec], bytes(theirs.encode(RAW)))[...], VALUES)


@for_each("name", ["delta", "zlib", "blosc", "crc32", "quantize", "zfpy", "pcodec"])
def test_c66_the_configuration_has_no_id_and_no_other_members(name):
    for members in ({"id": name}, {"nosuch": 1}):
        with pytest.raises(zarrdask.errors.MetadataError, match=name):
            opened([LITTLE, named(f"numcodecs.{name}", **members)])


def test_c66_registered_equivalents_are_preferred_in_writing():
    for given, name in (
        (numcodecs.Zstd(), "zstd"),
        (numcodecs.GZip(), "gzip"),
        (numcodecs.Blosc(), "blosc"),
        (numcodecs.CRC32C(), "crc32c"),
        (numcodecs.Zlib(), "numcodecs.zlib"),
    ):
        z = zarrdask.create_array({}, shape=4, dtype="i4", compressors=given)
        assert z.metadata.codecs[-1].name == name


@for_each(
    ("name", "data"),
    [
        ("bz2", bz2.compress(RAW)),
        ("zlib", zlib.compress(RAW)),
        ("fletcher32", bytes(numcodecs.get_codec({"id": "fletcher32"}).encode(RAW))),
        ("https://codec.zarrs.dev/bytes_to_bytes/bz2", bz2.compress(RAW)),
    ],
)
def test_c67_bare_names_of_zarrs_are_aliases(name, data):
    same(opened([LITTLE, {"name": name}], data)[...], VALUES)
    with pytest.raises(zarrdask.errors.MetadataError, match="C-67"):
        opened([LITTLE, {"name": name}], data, strict=True)


def test_c67_pcodec_by_its_bare_name():
    data = numcodecs.PCodec().encode(VALUES)
    same(opened([named("pcodec", level=8)], data)[...], VALUES)


@for_each("name", ["vlen-array", "zarrs.squeeze", "zarrs.gdeflate", "zarrs.vlen"])
def test_c67_others_are_an_error_that_names_them(name):
    with pytest.raises(zarrdask.errors.UnsupportedError) as caught:
        opened([name, LITTLE])
    assert caught.value.found == name
