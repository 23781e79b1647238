"""v2 documents."""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.covering import for_each
from tests.documents import dump, v2
from tests.formats.metadata.test_v3 import JSON
from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError
from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata
from zarrdask.formats.metadata.v2 import V2

FORMAT = V2()

BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}


def parse(document, attributes=None, name=".zarray"):
    result = {name: document if isinstance(document, bytes) else dump(document)}
    if attributes is not None:
        result[".zattrs"] = attributes if isinstance(attributes, bytes) else dump(attributes)
    return FORMAT.parse(result)


def render(metadata):
    return {
        name: None if data is None else json.loads(data)
        for name, data in FORMAT.render(metadata).items()
    }


def test_documents_become_metadata():
    result = parse(
        v2((10, 20), (5, 6), ">f4", "NaN", compressor=BLOSC, order="F", dimension_separator="/"),
        {"unit": "K"},
    )
    assert (result.zarr_format, result.shape, result.chunk_shape) == (2, (10, 20), (5, 6))
    assert result.dtype == np.dtype(">f4")
    assert result.keys == ChunkKeys("v2", "/")
    assert np.isnan(result.fill_value)
    assert [codec.name for codec in result.codecs] == ["transpose", "bytes", "blosc"]
    assert result.attributes == {"unit": "K"}


def test_a_group_becomes_metadata():
    assert parse({"zarr_format": 2}, name=".zgroup") == GroupMetadata(2)
    assert parse({"zarr_format": 2}, {"a": 1}, ".zgroup") == GroupMetadata(2, {"a": 1})


def test_attributes_alone_are_no_node():
    assert FORMAT.parse({".zattrs": b"{}"}) is None
    assert FORMAT.parse({}) is None


MANDATORY = [
    "zarr_format",
    "shape",
    "chunks",
    "dtype",
    "compressor",
    "fill_value",
    "order",
    "filters",
]


def test_a_group_needs_its_version():
    with pytest.raises(MetadataError, match="zarr_format"):
        parse({"extra": 1}, name=".zgroup")


@for_each("version", [1, 3, "2", 2.5, 2.0, None, True])
@for_each(("document", "name"), [(v2(), ".zarray"), ({}, ".zgroup")])
def test_another_zarr_format_is_an_error_that_shows_it(document, name, version):
    with pytest.raises(MetadataError) as caught:
        parse({**document, "zarr_format": version}, name=name)
    assert "zarr_format" in caught.value.key
    assert caught.value.found == version


@for_each("data", [b"", b"{", b"[]", b"[2]", b"null", b"\xff"])
@for_each("name", [".zarray", ".zgroup", ".zattrs"])
def test_what_is_no_json_object_is_an_error_that_names_the_document(data, name):
    documents = {".zarray": dump(v2())} if name == ".zattrs" else {}
    with pytest.raises(MetadataError) as caught:
        FORMAT.parse({**documents, name: data})
    assert caught.value.key == name


WRONG = [
    ("shape", [4, 4]),
    ("chunks", True),
    ("dtype", "u2"),
    ("dtype", "uint16"),
    ("dtype", "<M8[]"),
    ("dtype", "|O"),
    ("compressor", {"id": "blosc", "cname": "lzo"}),
    ("compressor", {"id": "gzip", "level": 99}),
    ("compressor", {"id": "bz2", "levels": 1}),
    ("filters", [{"id": "delta"}]),
]


@for_each(("member", "value"), WRONG)
def test_a_wrong_member_is_a_metadata_error(member, value):
    with pytest.raises(MetadataError):
        parse({**v2(), member: value})


@pytest.mark.parametrize("member", ["filters", "compressor"])
def test_pickle_is_refused_with_the_reason(member):
    value = {"id": "pickle", "protocol": 5}
    document = v2(dtype="|O", fill_value=None, filters=[{"id": "vlen-utf8"}])
    document[member] = [value] if member == "filters" else value
    with pytest.raises(UnsupportedError, match="runs code") as caught:
        parse(document)
    assert caught.value.found == "pickle"


def test_objects_need_an_object_codec():
    with pytest.raises(MetadataError, match="vlen-utf8"):
        parse(v2(dtype="|O", fill_value=None))
    with pytest.raises(UnsupportedError) as caught:
        parse(v2(dtype="|O", fill_value=None, filters=[{"id": "zlib"}]))
    assert caught.value.found == "zlib"


def test_an_object_codec_takes_objects_only():
    with pytest.raises(ZarrdaskError):
        parse(v2(dtype="<i4", filters=[{"id": "nosuch-utf8"}]))


def test_attributes_are_written_only_if_there_are_any():
    assert render(parse(v2()))[".zattrs"] is None
    assert render(GroupMetadata(2))[".zattrs"] is None
    assert render(GroupMetadata(2)) == {".zgroup": {"zarr_format": 2}, ".zattrs": None}
    assert render(GroupMetadata(2, {"foo": "た"}))[".zattrs"] == {"foo": "た"}


COMPRESSORS = [
    None,
    BLOSC,
    {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2, "blocksize": 0},
    {"id": "zlib", "level": 1},
    {"id": "gzip", "level": 9},
    {"id": "zstd", "level": 3},
    {"id": "zstd", "level": 3, "checksum": True},
    {"id": "bz2", "level": 2},
    {"id": "lz4", "acceleration": 1},
    {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
]
FILTERS = [
    None,
    [{"id": "delta", "dtype": "<i4", "astype": "<i4"}],
    [{"id": "shuffle", "elementsize": 4}],
    [{"id": "delta", "dtype": "<i4", "astype": "<i4"}, {"id": "zlib", "level": 1}],
    [{"id": "crc32", "location": "start"}],
]


@for_each("compressor", COMPRESSORS)
@for_each("filters", FILTERS)
@for_each("order", "CF")
def test_codecs_survive_being_written_and_read(compressor, filters, order):
    document = v2((6, 6), (2, 3), "<i4", 7, compressor=compressor, filters=filters, order=order)
    metadata = parse(document)
    chunk = np.arange(6, dtype="<i4").reshape(2, 3)
    data = bytes(metadata.pipeline.encode(chunk))
    again = parse(render(metadata)[".zarray"])
    assert bytes(again.pipeline.encode(chunk)) == data
    assert np.array_equal(again.pipeline.decode(data), chunk)
    if not (compressor is None and filters and filters[-1]["id"] == "zlib"):
        assert {k: v for k, v in render(metadata)[".zarray"].items() if v is not None} == {
            k: v for k, v in document.items() if v is not None
        }


DTYPES = [
    "<i4",
    ">i2",
    "|u1",
    "<f8",
    ">f4",
    "<c16",
    "|b1",
    "|S5",
    "<U3",
    ">U2",
    "<M8[ns]",
    ">m8[D]",
    "|V4",
]


@st.composite
def documents(draw):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=50))
    chunks = [draw(st.integers(1, 6)) for _ in shape]
    document = v2(shape, chunks, draw(st.sampled_from(DTYPES)), None)
    document["order"] = draw(st.sampled_from("CF")) if len(shape) > 1 else "C"
    document["compressor"] = draw(st.sampled_from(COMPRESSORS))
    if draw(st.booleans()):
        document["dimension_separator"] = "/"
    return document


@given(documents(), st.dictionaries(st.text(), JSON, max_size=3))
def test_metadata_survive_being_written_and_read(document, attributes):
    metadata = parse(document, attributes)
    assert isinstance(metadata, ArrayMetadata)
    written = render(metadata)
    assert parse(written[".zarray"], written[".zattrs"]) == metadata
    assert written[".zarray"] == document
    assert (written[".zattrs"] or {}) == attributes


@given(st.sampled_from([*MANDATORY, "dimension_separator"]), JSON)
def test_any_json_in_any_member_is_read_or_an_error_of_ours(member, value):
    with suppress(ZarrdaskError):
        assert parse({**v2(), member: value}) is not None


@given(
    st.sampled_from(
        [
            "blosc",
            "gzip",
            "zlib",
            "zstd",
            "bz2",
            "lz4",
            "lzma",
            "delta",
            "fixedscaleoffset",
            "packbits",
        ]
    ),
    st.sampled_from(
        [
            "level",
            "cname",
            "clevel",
            "shuffle",
            "blocksize",
            "dtype",
            "astype",
            "acceleration",
            "format",
        ]
    ),
    JSON,
)
def test_any_json_in_a_codecs_configuration_is_read_or_an_error_of_ours(name, member, value):
    for change in (
        {"compressor": {"id": name, member: value}},
        {"filters": [{"id": name, member: value}]},
    ):
        with suppress(ZarrdaskError):
            parse({**v2(), **change})


def test_a_type_that_v2_lacks_cannot_be_written():
    from zarrdask.formats.metadata.array_options import ArrayOptions
    from zarrdask.formats.metadata.new_metadata import plan_array

    padded = np.dtype([("a", "i1"), ("b", "i4")], align=True)
    with pytest.raises(UnsupportedError, match="packed"):
        FORMAT.render(plan_array(ArrayOptions(shape=3, dtype=padded, zarr_format=2)))
