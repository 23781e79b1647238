"""The same array in another format: what its description becomes, and what can't be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.dtypes.fill_values import NO_FILL_VALUE
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.convert import convert, convert_group
from zarrdask.formats.metadata.losses import losses
from zarrdask.formats.metadata.model import GroupMetadata
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.parallel.rewrite.copying.move import encoded_transfer

FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")


def new(zarr_format=3, **options):
    options = {"shape": (6, 8), "chunks": (2, 4), "dtype": "i4"} | options
    return plan_array(ArrayOptions(zarr_format=zarr_format, **options))


def names(metadata):
    return [codec.name for codec in metadata.codecs]


def document(metadata):
    return [codec.to_json() for codec in metadata.codecs]


class TestCodecs:
    @for_each("name", ["blosc", "zstd", "gzip"])
    @for_each("zarr_format", FORMATS)
    def test_those_that_all_formats_have_stay_what_they_are(self, name, zarr_format):
        before = new(2, compressors=name, separator="/")
        after = convert(before, zarr_format=zarr_format)
        assert names(after) == ["bytes", name]
        assert encoded_transfer(before, after) == "units"
        assert convert(after, zarr_format=2) == before

    def test_what_only_numcodecs_has_goes_by_its_name(self):
        for name in ("bz2", "zlib", "lz4", "lzma"):
            before = new(2, compressors={"id": name})
            after = convert(before, zarr_format=3)
            assert names(after) == ["bytes", f"numcodecs.{name}"]
            assert names(convert(after, zarr_format=2))[-1] == name

    def test_the_order_of_v2_is_a_transposition(self):
        after = convert(new(2, order="F", compressors=()), zarr_format=3)
        assert document(after)[0] == {"name": "transpose", "configuration": {"order": [1, 0]}}
        assert convert(after, zarr_format=2).codecs[0] == after.codecs[0]

    def test_a_byte_order_of_v2_is_one_of_the_codec(self):
        before = new(2, dtype=">f4", compressors=())
        after = convert(before, zarr_format=3)
        assert after.data_type.to_json() == "float32"
        assert document(after) == [{"name": "bytes", "configuration": {"endian": "big"}}]
        assert convert(after, zarr_format=2).dtype == ">f4"

    def test_the_size_of_elements_that_blosc_shuffles_is_told(self):
        after = convert(new(2, dtype="f8", compressors="blosc"), zarr_format=3)
        assert document(after)[-1]["configuration"]["typesize"] == 8
        assert document(after)[-1]["configuration"]["shuffle"] == "shuffle"

    def test_filters_of_elements_come_before_the_bytes(self):
        before = new(2, filters=[{"id": "delta", "dtype": "<i4", "astype": ">i2"}])
        after = convert(before, zarr_format=3)
        assert names(after) == ["numcodecs.delta", "bytes", "zstd"]
        assert document(after)[1]["configuration"] == {"endian": "big"}
        assert encoded_transfer(before, after) == "units"
        back = convert(after, zarr_format=2)
        assert names(back) == ["bytes", "delta", "zstd"]
        assert encoded_transfer(after, back) == "units"

    def test_filters_of_bytes_come_after_them(self):
        before = new(2, filters=[{"id": "shuffle", "elementsize": 4}, {"id": "crc32c"}])
        after = convert(before, zarr_format=3)
        assert names(after) == ["bytes", "numcodecs.shuffle", "crc32c", "zstd"]
        assert encoded_transfer(before, after) == "units"

    def test_a_filter_of_elements_that_follows_one_of_bytes_has_no_equivalent(self):
        filters = [{"id": "shuffle", "elementsize": 4}, {"id": "delta", "dtype": "|u1"}]
        with pytest.raises(UnsupportedError, match="delta"):
            convert(new(2, filters=filters), zarr_format=3)

    @pytest.mark.parametrize("zarr_format", [2, "v3-draft", "v3-draft-protocol"])
    def test_what_only_v3_has_is_an_error_that_names_it(self, zarr_format):
        with pytest.raises(UnsupportedError, match="packbits"):
            convert(new(dtype="bool", codecs=["packbits"]), zarr_format=zarr_format)

    def test_the_draft_has_no_filters_but_its_older_dialect_has(self):
        before = new(2, filters=[{"id": "delta", "dtype": "<i4"}])
        with pytest.raises(UnsupportedError, match="delta"):
            convert(before, zarr_format="v3-draft")
        assert encoded_transfer(before, convert(before, zarr_format="v3-draft-protocol")) == "units"

    def test_others_can_be_asked_for(self):
        after = convert(new(dtype="bool", codecs=["packbits"]), zarr_format=2, compressors="gzip")
        assert names(after) == ["bytes", "gzip"]
        after = convert(new(2, order="F"), zarr_format=3, compressors="gzip")
        assert names(after) == ["transpose", "bytes", "gzip"]
        assert names(convert(after, codecs=["zstd"])) == ["bytes", "zstd"]


class TestElements:
    @for_each("dtype", ["bfloat16", "int4", "float8_e5m2"])
    @for_each("zarr_format", [2, "v3-draft", "v3-draft-protocol"])
    def test_types_that_only_v3_has(self, dtype, zarr_format):
        with pytest.raises(UnsupportedError, match="data type"):
            convert(new(dtype=dtype), zarr_format=zarr_format)

    def test_objects_of_v2_are_what_their_codec_stores(self):
        after = convert(new(2, dtype=object, filters=[{"id": "vlen-utf8"}]), zarr_format=3)
        assert (after.data_type.to_json(), after.fill_value) == ("string", "")
        after = convert(new(2, dtype=object, filters=[{"id": "vlen-bytes"}]), zarr_format=3)
        assert (after.data_type.to_json(), after.fill_value) == ("bytes", b"")
        with pytest.raises(UnsupportedError, match="json2"):
            convert(new(2, dtype=object, filters=[{"id": "json2"}]), zarr_format=3)

    @for_each(
        "codec",
        ["vlen-bytes", "json2", "msgpack2", "vlen-utf8", {"id": "vlen-array", "dtype": "u1"}],
    )
    @for_each("zarr_format", [2, "v3-draft-protocol"])
    @for_each("filters", [None, [], ()])
    def test_another_compressor_keeps_the_codec_of_objects(self, codec, zarr_format, filters):
        before = new(2, dtype=object, filters=codec)
        after = convert(before, compressors="gzip", filters=filters, zarr_format=zarr_format)
        assert names(after) == [before.codecs[0].name, "gzip"]
        assert after.codecs[0].config == before.codecs[0].config
        assert convert(before, compressors="gzip", chunks=(3, 4)).codecs == after.codecs

    def test_the_codec_of_objects_follows_another_type_or_filter(self):
        before = new(2, dtype=object, filters="vlen-bytes")
        assert names(convert(before, compressors=(), filters="json2")) == ["json2"]
        assert names(convert(before, compressors=(), dtype="string")) == ["vlen-utf8"]
        bytes_of_v3 = new(3, dtype="bytes")
        assert names(convert(bytes_of_v3, compressors=(), zarr_format=2)) == ["vlen-bytes"]
        assert names(convert(before, compressors="gzip", zarr_format=3)) == ["vlen-bytes", "gzip"]

    def test_text_of_v3_are_objects_in_v2(self):
        before = new(dtype="string", fill_value="none")
        after = convert(before, zarr_format=2)
        assert (after.dtype, after.fill_value, names(after)[0]) == (object, "none", "vlen-utf8")
        assert encoded_transfer(before, after) == "units"

    def test_fields_of_both_byte_orders_get_one(self):
        before = new(2, dtype=[("a", "<i2"), ("b", ">f4")], compressors=())
        after = convert(before, zarr_format=3)
        assert document(after) == [{"name": "bytes", "configuration": {"endian": "little"}}]
        assert encoded_transfer(before, after) is None
        assert losses(before, after) == ("the byte order of the fields is the same for all now",)

    def test_fields_of_both_byte_orders_keep_them_in_the_draft(self):
        dtype = [("a", "<i2"), ("b", ">f4")]
        assert convert(new(2, dtype=dtype), zarr_format="v3-draft").dtype == dtype
        assert convert(new(2, dtype=">f4"), zarr_format="v3-draft").dtype == "=f4"

    @pytest.mark.parametrize("dtype", ["i4", object])
    def test_a_fill_value_can_be_left_open_in_old_formats(self, dtype):
        before = new(2, dtype=dtype, fill_value=NO_FILL_VALUE)
        assert before.fill_value is None
        assert convert(before, chunks=(1, 8)).fill_value is None
        assert convert(before, zarr_format="v3-draft-protocol").fill_value is None
        after = convert(new(2, dtype=dtype), fill_value=NO_FILL_VALUE)
        assert after.fill_value is None
        for zarr_format in (3, "v3-draft"):
            with pytest.raises(UnsupportedError, match="fill_value"):
                convert(new(2), fill_value=NO_FILL_VALUE, zarr_format=zarr_format)

    def test_a_fill_value_that_is_left_open_is_the_zero_that_it_reads_as(self):
        before = new("v3-draft-protocol")
        before = type(before)(**{**vars_of(before), "fill_value": None})
        after = convert(before, zarr_format=3)
        assert (before.fill_value, after.fill_value) == (None, 0)
        assert losses(before, after) == ("the fill value, which was undefined, is 0 now",)
        assert convert(before, zarr_format=2).fill_value is None

    @pytest.mark.parametrize("zarr_format", [3, "v3-draft"])
    def test_fill_values_keep_every_bit(self, zarr_format):
        nan = np.array([0x7FC00123], "u4").view("f4")[0]
        before = new(dtype="f4", fill_value=nan)
        after = convert(before, zarr_format=zarr_format)
        assert np.asarray(after.fill_value).tobytes() == nan.tobytes()
        assert encoded_transfer(before, after) == "units"

    @pytest.mark.parametrize("zarr_format", [2, "v3-draft-protocol"])
    def test_where_the_format_has_one_nan_only_absent_chunks_are_another_value(self, zarr_format):
        nan = np.array([0x7FC00123], "u4").view("f4")[0]
        before = new(dtype="f4", fill_value=nan)
        after = convert(before, zarr_format=zarr_format)
        assert np.isnan(after.fill_value)
        assert encoded_transfer(before, after) is None

    def test_another_type_is_another_size_for_blosc(self):
        after = convert(new(compressors="blosc"), dtype="f8")
        assert (after.dtype, after.codecs[-1].typesize) == ("f8", 8)
        assert convert(new(2, compressors="blosc"), dtype=">f8").dtype == ">f8"

    def test_numbers_can_become_text_and_the_other_way_round(self):
        after = convert(new(), dtype="string", fill_value="")
        assert names(after) == ["vlen-utf8", "zstd"]
        assert names(convert(after, dtype="f4", fill_value=0)) == ["bytes", "zstd"]

    def test_a_fill_value_that_the_other_type_lacks_has_to_be_given(self):
        before = new(dtype="f4", fill_value=np.nan)
        with pytest.raises(MetadataError, match="pass another fill_value"):
            convert(before, dtype="i4")
        assert convert(before, dtype="i4", fill_value=-1).fill_value == -1


def vars_of(metadata):
    return {n: getattr(metadata, n) for n, f in metadata.__dataclass_fields__.items() if f.init}


class TestUnits:
    def test_v2_has_no_shards_so_their_chunks_are_the_units(self):
        before = new(chunks=(2, 4), shards=(4, 8))
        after = convert(before, zarr_format=2)
        assert (after.chunk_shape, after.shard) == ((2, 4), None)
        assert losses(before, after) == ("shards of 4 x 8 became chunks of 2 x 4",)
        with pytest.raises(UnsupportedError, match="no shards"):
            convert(before, zarr_format=2, shards=(4, 8))

    def test_transposed_shards_become_transposed_chunks(self):
        inner = {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [4, 2],
                "codecs": ["zstd"],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            },
        }
        inner["configuration"]["codecs"] = [
            {"name": "bytes", "configuration": {"endian": "little"}}
        ]
        turned = {"name": "transpose", "configuration": {"order": [1, 0]}}
        before = new(chunks=(4, 8), codecs=[turned, inner])
        after = convert(before, zarr_format=2)
        assert after.chunk_shape == (2, 4)
        assert names(after) == ["transpose", "bytes"]
        assert encoded_transfer(before, after) == "inner"

    def test_shards_of_the_draft_have_its_index(self):
        before = new(shards=(4, 8))
        after = convert(before, zarr_format="v3-draft", codecs=["gzip"])
        assert after.shard.codec.index_codecs == (after.shard.codec.index_codecs[0],)
        plain = new(shards=(4, 8), codecs=["gzip"])
        draft = convert(plain, zarr_format="v3-draft")
        assert encoded_transfer(plain, draft) == "inner"
        assert encoded_transfer(draft, convert(draft, zarr_format=3)) == "units"

    def test_shards_come_and_go(self):
        plain, sharded = new(), new(shards=(4, 8))
        assert convert(plain, shards=(4, 8)) == sharded
        assert convert(sharded, shards=False) == convert(sharded, shards=np.False_) == plain
        for zarr_format in (2, 3):
            with pytest.raises((MetadataError, UnsupportedError), match="shards"):
                convert(sharded, zarr_format=zarr_format, shards=0)
        assert convert(sharded, chunks=(1, 2)).shard.codec.chunk_shape == (1, 2)
        assert convert(sharded, chunks=(1, 2)).chunk_shape == (4, 8)

    @pytest.mark.parametrize("zarr_format", [3, "v3-draft", "v3-draft-protocol"])
    def test_shards_in_shards(self, zarr_format):
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        codecs = [little, {"name": "gzip", "configuration": {"level": 1}}]
        for length in (2, 4):
            members = {
                "chunk_shape": [length] * 2,
                "codecs": codecs,
                "index_codecs": [little],
            }
            codecs = [{"name": "sharding_indexed", "configuration": members}]
        nested = new(shape=(16, 16), chunks=(8, 8), codecs=codecs)

        def lengths(metadata):
            (shards,) = metadata.codecs
            (within,) = shards.codecs
            return metadata.chunk_shape, shards.chunk_shape, within.chunk_shape

        before = convert(nested, zarr_format=zarr_format)
        assert encoded_transfer(nested, before) == "units"
        assert lengths(convert(before, chunks=(8, 8), shards=(16, 16))) == (
            (16, 16),
            (8, 8),
            (2, 2),
        )
        assert lengths(convert(before, dtype="f8")) == ((8, 8), (4, 4), (2, 2))
        for changes in ({"zarr_format": 2}, {"shards": False}, {"shards": False, "chunks": 2}):
            after = convert(before, **changes)
            assert (after.chunk_shape, names(after)) == ((2, 2), ["bytes", "gzip"])

    def test_other_chunks(self):
        assert convert(new(2), chunks=(3, 8)).chunk_shape == (3, 8)
        assert convert(new(), chunks=((1, 5), 8)).grid.counts == (2, 1)

    @pytest.mark.parametrize("zarr_format", [2, "v3-draft", "v3-draft-protocol"])
    def test_chunks_of_several_shapes_are_for_v3_only(self, zarr_format):
        before = new(chunks=((1, 5), 8), compressors="gzip")
        with pytest.raises(UnsupportedError, match="rectilinear"):
            convert(before, zarr_format=zarr_format)
        assert convert(before, zarr_format=zarr_format, chunks=2).chunk_shape == (2, 2)

    def test_keys_are_those_of_the_format(self):
        before = new(2)
        assert before.keys.key((1, 0)) == "1.0"
        assert convert(before, zarr_format=3).keys.key((1, 0)) == "c/1/0"
        assert convert(before, zarr_format="v3-draft").keys.key((1, 0)) == "c1/0"
        assert convert(new(), zarr_format=2).keys.key((1, 0)) == "1/0"
        kept = convert(before, zarr_format=3, chunk_key_encoding="v2")
        assert kept.keys.key((1, 0)) == "1.0"


class TestNames:
    @for_each("zarr_format", FORMATS)
    @for_each("source", FORMATS)
    def test_names_of_dimensions_and_attributes_go_with_it(self, source, zarr_format):
        options = {"dimension_names": ("y", "x"), "attributes": {"a": [1, None]}}
        before = new(source, compressors="gzip", **options)
        after = convert(before, zarr_format=zarr_format)
        assert (after.dimension_names, after.attributes) == (("y", "x"), {"a": [1, None]})

    def test_v2_has_names_for_all_dimensions_or_for_none(self):
        with pytest.raises(UnsupportedError, match="all dimensions"):
            convert(new(dimension_names=("y", None)), zarr_format=2)
        before = new(dimension_names=(None, None))
        after = convert(before, zarr_format=2)
        assert after.dimension_names is None
        assert "had no names" in losses(before, after)[0]
        assert convert(new(dimension_names=("y", None)), zarr_format=2, dimension_names="yx")

    def test_an_attribute_that_holds_other_names_is_an_error(self):
        before = new(dimension_names=("y", "x"), attributes={"_ARRAY_DIMENSIONS": ["a", "b"]})
        with pytest.raises(MetadataError, match="_ARRAY_DIMENSIONS"):
            convert(before, zarr_format=2)

    def test_extensions_that_need_not_be_understood_are_dropped(self):
        extension = {"name": "https://x.y/z", "must_understand": False}
        before = new(extensions=[extension])
        after = convert(before, zarr_format=2)
        assert losses(before, after) == ("the extension https://x.y/z was dropped",)
        assert convert(before).extensions == before.extensions

    def test_groups(self):
        before = GroupMetadata(2, {"a": 1}, extra={"b": 2})
        same = convert_group(before, None)  # no other member is written
        assert losses(before, same) == ("the member b was dropped",)
        after = convert_group(before, 3)
        assert after == GroupMetadata(3, {"a": 1})
        assert losses(before, after) == ("the member b was dropped",)
        with pytest.raises(MetadataError, match="unknown format"):
            convert_group(before, 4)


def test_no_changes_are_no_changes():
    for zarr_format in FORMATS:
        before = new(zarr_format, compressors="gzip")
        assert convert(before) == before


def test_unknown_formats_and_changes():
    with pytest.raises(MetadataError, match="unknown format"):
        convert(new(), zarr_format=1)
    with pytest.raises(TypeError, match="chunk"):
        convert(new(), chunk=3)


DTYPES = ("?", "i1", "<u2", ">i4", "u8", "f2", "<f4", ">f8", "c8", "S3", "<U2", ">M8[D]", "V3")


@settings(max_examples=50)
@given(
    source=st.sampled_from(FORMATS),
    target=st.sampled_from(FORMATS),
    dtype=st.sampled_from(DTYPES),
    codec=st.sampled_from(["blosc", "gzip", {"id": "zlib"}, {"id": "bz2"}]),
    order=st.sampled_from("CF"),
)
def test_bytes_stay_the_same_wherever_the_format_has_the_codec(source, target, dtype, codec, order):
    before = convert(new(2, dtype=dtype, compressors=codec, order=order), zarr_format=source)
    after = convert(before, zarr_format=target)
    assert after.zarr_format == target
    assert encoded_transfer(before, after) == "units"
    values = np.arange(48).reshape(6, 8).astype("u1").astype(before.dtype.str.replace("V", "S"))
    values = values.astype(before.dtype)
    chunk = np.ascontiguousarray(values[:2, :4])
    stored = bytes(before.pipeline.encode(chunk))
    result = after.pipeline.decode(stored)
    assert result.astype(before.dtype).tobytes() == chunk.tobytes()
