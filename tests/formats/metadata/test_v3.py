"""v3 documents."""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.covering import for_each
from tests.documents import CRC32C, LITTLE, dump, sharding, v3
from tests.formats.codecs.chains import chains
from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError
from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata
from zarrdask.formats.metadata.v3 import V3

FORMAT = V3()

GROUP = {"zarr_format": 3, "node_type": "group"}


def parse(document):
    return FORMAT.parse({"zarr.json": document if isinstance(document, bytes) else dump(document)})


def render(metadata):
    [(name, data)] = FORMAT.render(metadata).items()
    assert name == "zarr.json"
    return json.loads(data)


def test_a_document_becomes_metadata():
    result = parse(
        v3(
            (10, 20),
            (5, 6),
            "float32",
            "NaN",
            [LITTLE, CRC32C],
            attributes={"unit": "K"},
            dimension_names=["y", None],
        )
    )
    assert (result.zarr_format, result.shape, result.chunk_shape) == (3, (10, 20), (5, 6))
    assert result.dtype == np.float32
    assert result.keys == ChunkKeys("default", "/")
    assert np.isnan(result.fill_value)
    assert [codec.name for codec in result.codecs] == ["bytes", "crc32c"]
    assert result.attributes == {"unit": "K"}
    assert result.dimension_names == ("y", None)


def test_a_group_becomes_metadata():
    assert parse(GROUP) == GroupMetadata(3)
    assert parse({**GROUP, "attributes": {"a": [1]}}) == GroupMetadata(3, {"a": [1]})


def test_no_document_is_no_node():
    assert FORMAT.parse({}) is None
    assert FORMAT.parse({"zarr.json": None}) is None


MANDATORY = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
]


@for_each("version", ["3", 2, 3.0, 4, None, True, "https://purl.org/zarr/spec/3.0"])
@for_each("document", [v3(), GROUP])
def test_another_zarr_format_is_an_error_that_shows_it(document, version):
    with pytest.raises(MetadataError) as caught:
        parse({**document, "zarr_format": version})
    assert caught.value.key == "zarr_format"
    assert caught.value.found == version


@for_each("kind", ["Array", "", None, 1, ["array"]])
def test_another_node_type_is_an_error(kind):
    with pytest.raises(MetadataError, match="node_type"):
        parse(v3(node_type=kind))


@for_each(
    "data", [b"", b"{", b"not json", b"\xff\xfe\x00", b"[]", b"[1]", b'"text"', b"3", b"null"]
)
def test_what_is_no_json_object_is_an_error_that_names_the_document(data):
    with pytest.raises(MetadataError) as caught:
        parse(data)
    assert caught.value.key == "zarr.json"


def test_json_nested_too_deeply_is_an_error():
    with pytest.raises(MetadataError):
        parse(b"[" * 100_000)


WRONG = [
    ("shape", None),
    ("shape", 4),
    ("shape", "4"),
    ("shape", [-1]),
    ("shape", [4.0]),
    ("shape", ["4"]),
    ("shape", [True]),
    ("shape", [2**63]),
    ("shape", [4, 4]),
    ("data_type", None),
    ("data_type", 5),
    ("data_type", []),
    ("data_type", {}),
    ("data_type", {"name": 5}),
    ("data_type", {"name": "uint16", "configuration": {"a": 1}}),
    ("data_type", {"name": "uint16", "configuration": []}),
    ("data_type", {"name": "uint16", "otherwise": "r16"}),
    ("data_type", "r12"),
    ("chunk_grid", None),
    ("chunk_grid", "regular"),
    ("chunk_grid", [2]),
    ("chunk_grid", {"name": "regular"}),
    ("chunk_grid", {"name": "regular", "configuration": {}}),
    ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [-2]}}),
    ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [2, 2]}}),
    ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": []}}),
    ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": 2}}),
    ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [2], "x": 1}}),
    ("chunk_key_encoding", None),
    ("chunk_key_encoding", {"configuration": {"separator": "/"}}),
    ("chunk_key_encoding", {"name": "default", "configuration": {"separator": "-"}}),
    ("chunk_key_encoding", {"name": "default", "configuration": {"separator": None}}),
    ("chunk_key_encoding", {"name": "v2", "configuration": {"separator": ".", "x": 1}}),
    ("chunk_key_encoding", {"name": "default", "separator": "/"}),
    ("codecs", None),
    ("codecs", {}),
    ("codecs", "bytes"),
    ("codecs", [{"configuration": {}}]),
    ("codecs", [None]),
    ("attributes", None),
    ("attributes", []),
    ("dimension_names", []),
]


@for_each(("member", "value"), WRONG)
def test_a_wrong_member_is_a_metadata_error(member, value):
    with pytest.raises(MetadataError):
        parse(
            v3(**{member: value})
            if member in ("attributes", "dimension_names")
            else {**v3(), member: value}
        )


UNKNOWN = [
    ("data_type", "int3", "int3"),
    ("data_type", {"name": "numpy.datetime65", "configuration": {"unit": "s"}}, "numpy.datetime65"),
    ("chunk_grid", {"name": "hexagonal", "configuration": {}}, "hexagonal"),
    ("chunk_key_encoding", {"name": "suffixed"}, "suffixed"),
    ("codecs", [LITTLE, {"name": "lzw"}], "lzw"),
    ("codecs", [LITTLE, "lzw"], "lzw"),
    ("codecs", [sharding((2,), [LITTLE, {"name": "lzw"}])], "lzw"),
    (
        "codecs",
        [{"name": "https://example.org/codec", "configuration": {}}],
        "https://example.org/codec",
    ),
    ("storage_transformers", [{"name": "encrypted"}], "encrypted"),
    ("storage_transformers", [{"name": "encrypted", "must_understand": True}], "encrypted"),
]


@for_each(("member", "value", "name"), UNKNOWN)
def test_what_is_unknown_is_refused_and_named(member, value, name):
    with pytest.raises(UnsupportedError) as caught:
        parse({**v3(), member: value})
    assert caught.value.key == member
    assert name in str(caught.value)


SHORT = [
    {"data_type": {"name": "uint16"}},
    {"data_type": {"name": "uint16", "configuration": {}}},
    {"chunk_key_encoding": {"name": "default"}},
    {"chunk_key_encoding": "default"},
    {"chunk_key_encoding": {"name": "default", "configuration": {}}},
    {"dimension_names": None},
    {"attributes": {}},
]


@for_each("change", SHORT)
def test_other_spellings_mean_the_same(change):
    assert parse({**v3(), **change}) == parse(v3())


def test_what_is_written_has_the_mandatory_members_and_no_shorthand():
    document = render(
        parse({**v3(), "chunk_key_encoding": "default", "codecs": ["bytes"], "data_type": "uint8"})
    )
    assert set(MANDATORY) <= set(document)
    assert document["zarr_format"] == 3
    assert type(document["zarr_format"]) is int
    assert document["chunk_key_encoding"]["name"] == "default"
    assert all(isinstance(codec, dict) for codec in document["codecs"])
    assert "storage_transformers" not in document or document["storage_transformers"] == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMES = ["int16", "uint64", "float32", "float64", "complex64", "complex128"]


@st.composite
def documents(draw):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=50))
    chunks = tuple(draw(st.integers(1, 6)) for _ in shape)
    name = draw(st.sampled_from(NAMES))
    fill = draw(st.integers(0, 100))
    document = v3(
        shape, chunks, name, [fill, 0.5] if "complex" in name else fill, draw(chains(chunks))
    )
    encoding = {"separator": draw(st.sampled_from("./"))}
    document["chunk_key_encoding"] = {
        "name": draw(st.sampled_from(["default", "v2"])),
        "configuration": encoding,
    }
    if draw(st.booleans()):
        document["attributes"] = draw(st.dictionaries(st.text(), JSON, max_size=3))
    if draw(st.booleans()) and shape:
        document["dimension_names"] = [draw(st.none() | st.text(max_size=3)) for _ in shape]
    return document


@given(documents())
def test_metadata_survive_being_written_and_read(document):
    metadata = parse(document)
    assert isinstance(metadata, ArrayMetadata)
    written = render(metadata)
    assert parse(written) == metadata
    for member in ("shape", "data_type", "chunk_grid", "chunk_key_encoding"):
        assert written[member] == document[member]
    assert written["attributes"] == document.get("attributes", {})
    assert render(parse(written)) == written


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_groups_survive_being_written_and_read(attributes):
    assert parse(render(GroupMetadata(3, attributes))) == GroupMetadata(3, attributes)


@given(st.sampled_from([*MANDATORY, "attributes", "dimension_names", "storage_transformers"]), JSON)
def test_any_json_in_any_member_is_read_or_an_error_of_ours(member, value):
    with suppress(ZarrdaskError):
        assert parse({**v3(), member: value}) is not None


@given(
    JSON,
    st.sampled_from(["bytes", "gzip", "zstd", "blosc", "crc32c", "transpose", "sharding_indexed"]),
)
def test_any_json_as_a_codecs_configuration_is_read_or_an_error_of_ours(value, name):
    for codecs in (
        [LITTLE, {"name": name, "configuration": value}],
        [{"name": name, "configuration": value}],
    ):
        with suppress(ZarrdaskError):
            parse(v3(codecs=codecs))


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", np.float32(1), object()])
def test_attributes_that_are_no_json_are_an_error_that_names_them(value):
    with pytest.raises(
        MetadataError, match=r"attributes\.a\.b\[1\].*a value of NumPy has"
    ) as caught:
        FORMAT.render(GroupMetadata(3, {"a": {"b": [1, value]}}))
    assert caught.value.found is value


def test_text_is_kept_as_it_is():
    assert "た" in FORMAT.render(GroupMetadata(3, {"foo": "た"}))["zarr.json"].decode()
