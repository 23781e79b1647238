"""A.5 and A.7: how chunks of v2 are encoded."""

import base64
import bz2
import gzip
import json
import lzma
import struct
import zlib

import numcodecs
import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.covering import for_each
from tests.documents import blosc_frame, same, stored, v2, zstd_frame
from zarrdask.formats.codecs.numcodecs.adapter import make

VALUES = np.array([[1, 2, 3], [4, 5, 6]], "<i2")
RAW = VALUES.tobytes()


def opened(data, *, shape=None, dtype="|u1", strict=None, **others):
    """Return an array of one chunk, which is stored as given."""
    shape = (len(data),) if shape is None else shape
    key = ".".join("0" * len(shape)) or "0"
    document = v2(shape, shape, dtype, None, **others)
    return zarrdask.open_array(stored(document, {key: data}), strict=strict)


def stored_as(values, **options):
    """Return what is stored for an array of one chunk."""
    store = {}
    values = np.asarray(values)
    settings = {"compressors": [], **options}
    z = zarrdask.create_array(
        store, shape=values.shape, dtype=values.dtype, chunks=-1, zarr_format=2, **settings
    )
    z[...] = values
    return next(bytes(data) for key, data in store.items() if key[0] != ".")


# ---- A.5


def test_a39_without_codecs_a_value_is_the_raw_bytes():
    assert stored_as(VALUES) == RAW
    assert opened(RAW, shape=(2, 3), dtype="<i2")[...].tolist() == VALUES.tolist()


def test_a39_nothing_is_added_to_the_output_of_the_compressor():
    data = stored_as(VALUES, compressors={"id": "zlib", "level": 1})
    stream = zlib.decompressobj()
    assert stream.decompress(data) == RAW
    assert stream.eof
    assert stream.unused_data == b""
    data = stored_as(np.arange(1000), compressors={"id": "blosc"})
    assert len(data) == struct.unpack_from("<I", data, 12)[0]


@pytest.mark.parametrize("compressor", [None, {"id": "zlib", "level": 1}])
def test_a40_order_f_is_column_major_before_the_compressor(compressor):
    columns = struct.pack("<6h", 1, 4, 2, 5, 3, 6)
    data = stored_as(VALUES, order="F", compressors=compressor or [])
    assert (data if compressor is None else zlib.decompress(data)) == columns
    data = columns if compressor is None else zlib.compress(columns)
    found = opened(data, shape=(2, 3), dtype="<i2", order="F", compressor=compressor)
    assert found[...].tolist() == VALUES.tolist()


def test_a40_order_f_turns_all_dimensions_round():
    values = np.arange(24, dtype="|u1").reshape(2, 3, 4)
    data = bytes(values[i, j, k] for k in range(4) for j in range(3) for i in range(2))
    assert stored_as(values, order="F") == data
    assert opened(data, shape=(2, 3, 4), order="F")[...].tolist() == values.tolist()


SCALE = {"id": "fixedscaleoffset", "scale": 10, "offset": 1000, "dtype": "<f8", "astype": "|u1"}
DELTA = {"id": "delta", "dtype": "|u1", "astype": "|u1"}


def test_a41_filters_are_applied_in_order_and_then_the_compressor():
    values = [1000.0, 1000.5, 1012.3]
    # To tenths above 1000: 0, 5, 123; then the differences: 0, 5, 118.
    options = {"filters": [SCALE, DELTA], "compressors": {"id": "zlib", "level": 1}}
    assert zlib.decompress(stored_as(values, **options)) == b"\x00\x05\x76"
    others = {"filters": [SCALE, DELTA], "compressor": {"id": "zlib", "level": 1}}
    found = opened(zlib.compress(b"\x00\x05\x76"), shape=(3,), dtype="<f8", **others)
    np.testing.assert_allclose(found[...], values)


def test_a41_the_order_of_filters_matters():
    shuffle, crc = {"id": "shuffle", "elementsize": 2}, {"id": "crc32"}
    before = zlib.crc32(RAW).to_bytes(4, "little") + RAW
    after = stored_as(VALUES, filters=[shuffle, crc])
    assert after[4:] == RAW[::2] + RAW[1::2]
    assert stored_as(VALUES, filters=[crc]) == before
    assert stored_as(VALUES, filters=[crc, shuffle]) == before[::2] + before[1::2]


def test_a41_a_filter_gets_the_elements_that_the_one_before_gave():
    # Delta gives floats, of which bitround keeps one bit: 1.5, 1.25 (rounded to even: 1), 3.
    filters = [{"id": "delta", "dtype": "<f4"}, {"id": "bitround", "keepbits": 1}]
    store = stored(v2((3,), (3,), "<f4", None, filters=filters))
    zarrdask.open_array(store, mode="r+")[...] = [1.5, 2.75, 5.75]
    assert struct.unpack("<3f", store["0"]) == (1.5, 1.0, 3.0)
    assert zarrdask.open_array(store)[...].tolist() == [1.5, 2.5, 5.5]


COMPRESSORS = [
    None,
    {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    {"id": "zlib", "level": 1},
    {"id": "gzip", "level": 1},
    {"id": "bz2", "level": 1},
    {"id": "zstd", "level": 1},
    {"id": "lz4", "acceleration": 1},
    {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
]


@for_each("compressor", COMPRESSORS)
def test_a43_a_chunk_that_can_not_be_decoded_is_an_error(compressor):
    options = {"shape": (300,), "dtype": "<i4", "compressor": compressor}

    def encoded(size):
        return stored_as(np.arange(size, dtype="<i4"), compressors=compressor or [])

    good = encoded(300)
    assert opened(good, **options)[299] == 299
    broken = (b"", good[:1], good[: len(good) // 2], good[:-1], b"\xff" * 40)
    for data in (*broken, encoded(299), encoded(301), encoded(600)):
        with pytest.raises(zarrdask.errors.CodecError, match="0: "):
            opened(data, **options)[...]
        with pytest.raises(zarrdask.errors.CodecError):
            opened(data, **options)[7]


@pytest.mark.parametrize(
    "filters", [[DELTA], [{"id": "crc32"}], [{"id": "shuffle", "elementsize": 2}]]
)
def test_a43_a_wrong_length_behind_filters_is_an_error(filters):
    for size in (2, 6):
        data = make(filters[0]).encode(np.arange(size, dtype="u1"))
        with pytest.raises(zarrdask.errors.CodecError):
            opened(bytes(data), shape=(4,), filters=filters)[...]


def test_a43_another_number_of_objects_is_an_error():
    for count in (1, 3, 2**31):
        data = struct.pack("<II", count, 0) + bytes(8)
        with pytest.raises(zarrdask.errors.CodecError):
            opened(data, shape=(2,), dtype="|O", filters=[{"id": "vlen-utf8"}])[...]


# ---- A.7: compressors

BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
FORMATS = {"blosclz": 0, "lz4": 1, "lz4hc": 1, "zlib": 3, "zstd": 4}


@for_each("cname", FORMATS)
@for_each("dtype", ["|u1", "<i2", ">f8", "<c16"])
def test_a57_blosc_chunks_are_frames_with_a_header_of_16_bytes(cname, dtype):
    values = np.ones(5000, dtype)
    data = stored_as(values, compressors={**BLOSC, "cname": cname})
    version, _, flags, typesize, size, _, length = struct.unpack_from("<BBBBIII", data)
    assert (version, typesize, size, length) == (2, values.itemsize, values.nbytes, len(data))
    assert flags >> 5 == FORMATS[cname]
    assert not flags & 2
    found = opened(data, shape=(5000,), dtype=dtype, compressor={**BLOSC, "cname": cname})
    same(found[...], values)


@for_each(
    ("shuffle", "dtype", "flags"),
    [(0, "<i4", 0), (1, "<i4", 1), (2, "<i4", 4), (-1, "<i4", 1), (-1, "|u1", 4), (1, "|u1", 0)],
)
def test_a57_blosc_shuffles_bytes_bits_or_what_suits_the_element(shuffle, dtype, flags):
    data = stored_as(np.arange(5000).astype(dtype), compressors={**BLOSC, "shuffle": shuffle})
    # Blosc sets the flag for bytes too where an element has one: it then means nothing.
    assert data[2] & (4 if dtype == "|u1" else 5) == flags


def test_a57_a_blosc_frame_needs_nothing_of_the_configuration_to_be_decoded():
    values = np.arange(5000, dtype="<i4")
    for cname, shuffle in (("zstd", 2), ("zlib", 0), ("blosclz", 1)):
        data = numcodecs.Blosc(cname, 3, shuffle).encode(values)
        same(opened(data, shape=(5000,), dtype="<i4", compressor=BLOSC)[...], values)
    frame = blosc_frame(RAW)
    same(opened(frame, shape=(2, 3), dtype="<i2", compressor={"id": "blosc"})[...], VALUES)


def test_a57_the_type_size_is_that_of_what_the_filters_give():
    for astype, size in (("<i4", 4), ("<i2", 2)):
        delta = {"id": "delta", "dtype": "<i4", "astype": astype}
        assert stored_as(np.arange(5000, dtype="<i4"), filters=delta, compressors=BLOSC)[3] == size


@for_each("member", ["compressor", "filters"])
@for_each("name", ["NONE", "BYTE", "BIT", "1"])
def test_a57_the_name_of_a_shuffle_is_read_unless_strict(name, member):
    # As GDAL up to 3.6 writes it.
    config = {**BLOSC, "shuffle": name}
    others = {member: [config] if member == "filters" else config}
    frame = numcodecs.Blosc(shuffle=2).encode(VALUES)
    same(opened(frame, shape=(2, 3), dtype="<i2", **others)[...], VALUES)
    with refused("A-57"):
        opened(frame, shape=(2, 3), dtype="<i2", strict=True, **others)


@for_each("name", ["zlib", "gzip", "zstd", "blosc"])
def test_a58_an_unknown_member_of_a_compressor_is_read_unless_strict(name):
    config = {"id": name, "other": 1}
    frame = numcodecs.get_codec({"id": name}).encode(VALUES)
    same(opened(frame, shape=(2, 3), dtype="<i2", compressor=config)[...], VALUES)
    with refused("A-58"):
        opened(frame, shape=(2, 3), dtype="<i2", strict=True, compressor=config)


def test_a57_a_blosc_frame_of_snappy_is_not_written():
    with pytest.raises(zarrdask.errors.CodecError, match="snappy"):
        stored_as(np.arange(5000), compressors={**BLOSC, "cname": "snappy"})


def test_a57_a_blosc_frame_of_snappy_is_read():
    # One block; its one stream: the size, a literal of 3 bytes, a copy of 9 from 3 back.
    snappy = bytes([12, 2 << 2, 7, 8, 9, (9 - 4) << 2 | 1, 3])
    block = struct.pack("<I", len(snappy)) + snappy
    head = struct.pack("<BBBBIII", 2, 1, 2 << 5, 1, 12, 12, 20 + len(block))
    data = head + struct.pack("<I", 20) + block
    found = opened(data, shape=(12,), compressor={**BLOSC, "cname": "snappy"})
    assert found[...].tolist() == [7, 8, 9] * 4
    assert found[3:8].tolist() == [7, 8, 9, 7, 8]


TEXT = bytes(range(256)) * 4
LZMA = {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}
RAW_LZMA = {"id": "lzma", "format": 3, "check": -1, "preset": None, "filters": [{"id": 33}]}
ALONE = {"id": "lzma", "format": 2, "check": -1, "preset": 1, "filters": None}


@for_each(
    ("config", "compress", "decompress"),
    [
        ({"id": "zlib", "level": 9}, zlib.compress, zlib.decompress),
        ({"id": "gzip", "level": 9}, gzip.compress, gzip.decompress),
        ({"id": "bz2", "level": 9}, bz2.compress, bz2.decompress),
        (LZMA, lzma.compress, lzma.decompress),
        (ALONE, lambda d: lzma.compress(d, lzma.FORMAT_ALONE), lzma.decompress),
        (
            RAW_LZMA,
            lambda d: lzma.compress(d, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2}]),
            lambda d: lzma.decompress(d, lzma.FORMAT_RAW, None, [{"id": lzma.FILTER_LZMA2}]),
        ),
    ],
)
def test_a58_compressors_are_those_of_the_standard_library(config, compress, decompress):
    data = stored_as(np.frombuffer(TEXT, "u1"), compressors=config)
    assert decompress(data) == TEXT
    found = opened(compress(TEXT), shape=(1024,), compressor=config)
    assert found[...].tobytes() == TEXT


def test_a58_the_delta_of_lzma_is_ignored_unless_strict():
    # GDAL says so of the filter within the stream.
    config = {**LZMA, "delta": 2}
    found = opened(lzma.compress(RAW), shape=(2, 3), dtype="<i2", compressor=config)
    same(found[...], VALUES)
    with refused("A-58"):
        opened(lzma.compress(RAW), shape=(2, 3), dtype="<i2", compressor=config, strict=True)


def test_a58_the_level_is_written_and_used():
    values = np.tile(np.arange(999) % 7, 50)
    for name in ("zlib", "gzip", "bz2", "zstd"):
        store, sizes = {}, []
        for level in (1, 9):
            settings = {"shape": values.shape, "dtype": values.dtype, "chunks": -1}
            config = {"id": name, "level": level}
            z = zarrdask.create_array(
                store, **settings, compressors=config, zarr_format=2, overwrite=True
            )
            assert json.loads(store[".zarray"])["compressor"] == config
            z[...] = values
            sizes.append(len(store["0"]))
        assert sizes[1] < sizes[0] or name == "bz2"


@pytest.mark.parametrize("level", [23, 99, -(10**6)])
def test_a58_levels_of_zstd_beyond_its_limits_are_the_limits(level):
    # numcodecs writes with the limit, and the level that it was given in the document.
    compressor = {"id": "zstd", "level": level}
    data = bytes(numcodecs.Zstd(level).encode(RAW))
    found = opened(data, shape=(2, 3), dtype="<i2", compressor=compressor, strict=True)
    same(found[...], VALUES)
    assert stored_as(VALUES, compressors=compressor) == data


def test_a58_zstd_frames_with_and_without_a_checksum():
    for checksum in (False, True):
        config = {"id": "zstd", "level": 1, **({"checksum": True} if checksum else {})}
        data = stored_as(np.frombuffer(TEXT, "u1"), compressors=config)
        assert data[:4] == b"\x28\xb5\x2f\xfd"
        assert bool(data[4] & 4) is checksum
        assert bytes(numcodecs.Zstd().decode(data)) == TEXT
    for sized in (True, False):
        found = opened(
            zstd_frame(b"12345678", sized=sized), shape=(8,), compressor={"id": "zstd", "level": 1}
        )
        assert found[...].tobytes() == b"12345678"


def test_a58_lz4_is_the_size_and_a_block():
    # 4 bytes of size; a token of 3 literals; their bytes.
    block = bytes([3, 0, 0, 0, 3 << 4, 1, 2, 3])
    config = {"id": "lz4", "acceleration": 1}
    assert stored_as(np.array([1, 2, 3], "u1"), compressors=config) == block
    assert opened(block, shape=(3,), compressor=config)[...].tolist() == [1, 2, 3]


# ---- A.7: filters


def check(config, dtype, values, data, decoded=None):
    """Check the bytes that a filter makes of values, and what it makes of the bytes."""
    values = np.array(values, dtype)
    assert stored_as(values, filters=config).hex() == data
    found = opened(bytes.fromhex(data), shape=values.shape, dtype=dtype, filters=[config])[...]
    same(found, values if decoded is None else np.array(decoded, dtype))


@for_each(
    ("config", "dtype", "values", "data"),
    [
        ({"dtype": "<i4"}, "<i4", [5, 7, 4], "0500000002000000fdffffff"),
        ({"dtype": ">i2", "astype": ">i2"}, ">i2", [5, 7, 4], "00050002fffd"),
        ({"dtype": "<i2", "astype": "|i1"}, "<i2", [5, 7, 4], "0502fd"),
        ({"dtype": "<f8", "astype": "<f4"}, "<f8", [1.5, 2.0], "0000c03f0000003f"),
        ({"dtype": "|u1"}, "|u1", [[1, 2], [4, 8]], "01010204"),
    ],
)
def test_a59_delta_is_the_first_element_and_differences(config, dtype, values, data):
    check({"id": "delta", **config}, dtype, values, data)


def test_a60_fixedscaleoffset_rounds_what_was_moved_and_scaled():
    config = {"id": "fixedscaleoffset", "scale": 10, "offset": 1000, "dtype": "<f8"}
    values = [1000.04, 1000.5, 1012.36]
    decoded = [1000.0, 5 / 10 + 1000, 124 / 10 + 1000]
    check({**config, "astype": "|u1"}, "<f8", values, "00057c", decoded)
    check({**config, "astype": "<i2"}, "<f8", values, "000005007c00", decoded)


def test_a60_a_negative_scale_and_offset():
    config = {"id": "fixedscaleoffset", "scale": -2, "offset": -3, "dtype": "<f4", "astype": "|i1"}
    check(config, "<f4", [-3, -2, 1.5], "00fef7")


def test_a61_quantize_keeps_digits():
    # One digit after the point: multiples of 1/16.
    config = {"id": "quantize", "digits": 1, "dtype": "<f8"}
    kept = [20 / 16, -1 / 16]
    check(config, "<f8", [1.26, -0.04], struct.pack("<2d", *kept).hex(), kept)
    small = {**config, "astype": "<f4"}
    check(small, "<f8", [1.26, -0.04], struct.pack("<2f", *kept).hex(), kept)


def test_a61_bitround_rounds_half_to_even():
    kept = [1.0, 1.5, 1.25, -1.5]
    data = struct.pack("<4f", *kept).hex()
    check({"id": "bitround", "keepbits": 2}, "<f4", [1.125, 1.375, 1.2, -1.376], data, kept)


def test_a61_astype_stores_another_type():
    config = {"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<f4"}
    check(config, "<f4", [3, -1], "0300ffff")


@pytest.mark.parametrize(("size", "data"), [(2, "02040103"), (4, "02010403"), (1, "02010403")])
def test_a61_shuffle_puts_like_bytes_together(size, data):
    check({"id": "shuffle", "elementsize": size}, "<u2", [0x0102, 0x0304], data)


def test_a61_a_shuffle_of_netcdf_without_size_takes_that_of_the_elements_unless_strict():
    # As netCDF-C 4.9 writes it.
    members = {"filters": [{"id": "shuffle", "elementsize": 0}], "_NCZARR_ARRAY": {}}
    data = RAW[::2] + RAW[1::2]
    same(opened(data, shape=(2, 3), dtype="<i2", **members)[...], VALUES)
    with refused("A-61"):
        opened(data, shape=(2, 3), dtype="<i2", strict=True, **members)


def test_a61_any_other_shuffle_without_size_changes_nothing():
    config = {"id": "shuffle", "elementsize": 0}
    same(opened(RAW, shape=(2, 3), dtype="<i2", filters=[config])[...], VALUES)


@pytest.mark.parametrize(
    ("values", "data"),
    [
        ([1, 0, 1, 1, 0, 0, 0, 0, 1, 1], "06b0c0"),
        ([0, 1, 0, 0, 0, 0, 0, 1], "0041"),
        ([1], "0780"),
    ],
)
def test_a62_packbits_has_the_padding_and_then_the_bits(values, data):
    check({"id": "packbits"}, "|b1", values, data)


def test_a63_categorize_numbers_the_labels_from_one():
    config = {"id": "categorize", "labels": ["female", "male"], "dtype": "<U6", "astype": "|u1"}
    check(config, "<U6", ["male", "female", "", "male"], "02010002")
    objects = {**config, "dtype": "|O"}
    found = opened(b"\2\1\0", shape=(3,), dtype="|O", filters=[objects])
    assert found[...].tolist() == ["male", "female", ""]


def test_a63_what_is_no_label_is_none():
    config = {"id": "categorize", "labels": ["a"], "dtype": "<U1", "astype": "<u2"}
    check(config, "<U1", ["a", "z"], "01000000", ["a", ""])


CHECKSUMS = [
    # The customary check values of "123456789", and of a sentence by the author of lookup3.
    ({"id": "crc32"}, b"123456789", "2639f4cb", "start"),
    ({"id": "crc32", "location": "end"}, b"123456789", "2639f4cb", "end"),
    ({"id": "adler32"}, b"123456789", "de011e09", "start"),
    ({"id": "adler32", "location": "end"}, b"123456789", "de011e09", "end"),
    ({"id": "crc32c"}, b"123456789", "839206e3", "end"),
    ({"id": "crc32c", "location": "start"}, b"123456789", "839206e3", "start"),
    ({"id": "fletcher32"}, b"abcde", "c729f04f", "end"),
    ({"id": "fletcher32"}, b"abcdef", "2d2a5650", "end"),
    ({"id": "jenkins_lookup3"}, b"Four score and seven years ago", "51057717", "end"),
]


@for_each(("config", "text", "checksum", "place"), CHECKSUMS)
def test_a64_checksums_are_four_bytes_at_their_place(config, text, checksum, place):
    data = text.hex() + checksum if place == "end" else checksum + text.hex()
    check(config, "|u1", list(text), data)


@for_each(("config", "text", "checksum", "place"), CHECKSUMS)
def test_a64_a_checksum_that_does_not_match_is_an_error(config, text, checksum, place):
    good = stored_as(np.frombuffer(text, "u1"), filters=config)
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 0x10
        with pytest.raises(zarrdask.errors.ChecksumError, match=config["id"]):
            opened(bytes(bad), shape=(len(text),), filters=[config])[...]
    for data in (b"", good[:3], good[:-1]):
        with pytest.raises(zarrdask.errors.CodecError):
            opened(data, shape=(len(text),), filters=[config])[...]


def check_objects(config, values, data):
    chunk = np.empty(len(values), object)
    chunk[:] = values
    assert stored_as(chunk, filters=config, fill_value=0) == data
    found = opened(data, shape=(len(values),), dtype="|O", filters=[config])
    assert found[...].tolist() == values


def test_a65_vlen_utf8_has_the_count_and_each_length():
    data = b"\3\0\0\0" + b"\2\0\0\0hi" + b"\0\0\0\0" + b"\3\0\0\0\xe3\x81\x9f"
    check_objects({"id": "vlen-utf8"}, ["hi", "", "た"], data)


def test_a65_vlen_bytes_has_the_same_layout():
    data = b"\2\0\0\0" + b"\2\0\0\0\0\xff" + b"\1\0\0\0a"
    check_objects({"id": "vlen-bytes"}, [b"\0\xff", b"a"], data)


def test_a65_json2_is_a_list_with_type_and_shape_at_its_end():
    check_objects({"id": "json2"}, ["a", [1, None]], b'["a",[1,null],"|O",[2]]')


def test_a65_msgpack2_is_the_same_list():
    data = b"\x94\xa1a\x92\x01\xc0\xa2|O\x91\x02"
    check_objects({"id": "msgpack2"}, ["a", [1, None]], data)


def test_a65_base64_is_a_filter_on_bytes():
    check({"id": "base64"}, "<i2", VALUES.tolist(), base64.b64encode(RAW).hex())


@pytest.mark.parametrize("member", ["filters", "compressor"])
def test_a65_pickle_is_refused(member):
    config = {"id": "pickle", "protocol": 5}
    others = {member: [config] if member == "filters" else config}
    with pytest.raises(zarrdask.errors.UnsupportedError, match="pickle"):
        opened(b"", shape=(1,), **others)


@for_each("member", ["filters", "compressor"])
@for_each("name", ["lzw", "Blosc", "", "imagecodecs_jpegxl"])
def test_a66_an_unknown_codec_is_named_at_open(member, name):
    config = {"id": name, "level": 1}
    with pytest.raises(zarrdask.errors.UnsupportedError) as caught:
        opened(b"", shape=(1,), **{member: [config] if member == "filters" else config})
    assert caught.value.found == name
    with pytest.raises(zarrdask.errors.UnsupportedError) as caught:
        zarrdask.create_array({}, shape=1, dtype="i1", compressors=config, zarr_format=2)
    assert caught.value.found == name


@for_each(
    ("name", "package"), [("imagecodecs_jpegxl", "imagecodecs-numcodecs"), ("grib", "kerchunk")]
)
def test_a66_the_package_of_an_unknown_codec_is_named(name, package):
    with pytest.raises(zarrdask.errors.UnsupportedError, match=package):
        opened(b"", shape=(1,), compressor={"id": name})


@pytest.mark.parametrize("name", ["zfpy", "pcodec"])
def test_a66_an_optional_codec_that_is_not_installed_is_named(name, monkeypatch):
    monkeypatch.delitem(numcodecs.registry.codec_registry, name, raising=False)
    with pytest.raises(zarrdask.errors.UnsupportedError, match="not installed") as caught:
        opened(b"", shape=(1,), compressor={"id": name, "never": "asked for before"})
    assert caught.value.found == name


@pytest.mark.parametrize("member", ["filters", "compressors"])
def test_a66_zfp_gets_the_elements_and_their_type(member):
    config = {"id": "zfpy", "mode": 4, "tolerance": 1e-3}
    values = np.arange(64, dtype="<f4").reshape(8, 8) / 7
    data = stored_as(values, **{member: config})
    assert data[:3] == b"zfp"
    others = {"filters": [config]} if member == "filters" else {"compressor": config}
    found = opened(data, shape=(8, 8), dtype="<f4", **others)[...]
    np.testing.assert_allclose(found, values, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["pcodec"])
@pytest.mark.parametrize("member", ["filters", "compressors"])
def test_a66_an_optional_codec_that_is_installed_gets_the_elements(name, member, monkeypatch):
    class Optional(numcodecs.abc.Codec):
        """Stands for a codec that depends on the type of the elements."""

        codec_id = name

        def __init__(self, reader=""):
            self.reader = reader

        def encode(self, buf):
            assert buf.dtype == np.dtype("<f4")
            return b"f4" + buf.tobytes()

        def decode(self, buf, out=None):
            assert bytes(buf)[:2] == b"f4"
            return np.frombuffer(bytes(buf)[2:], "<f4").reshape(2, 2)

    monkeypatch.setitem(numcodecs.registry.codec_registry, name, Optional)
    config = {"id": name, "reader": member}
    values = np.array([[1, 2], [3, 4]], "<f4")
    assert stored_as(values, **{member: config}) == b"f4" + values.tobytes()
    others = {"filters": [config]} if member == "filters" else {"compressor": config}
    found = opened(b"f4" + values.tobytes(), shape=(2, 2), dtype="<f4", **others)
    same(found[...], values)
