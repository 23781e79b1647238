"""B.3: the document of an array of the draft."""

import json

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import without
from tests.drafts import DATETIME, ENTRY, NOBODY, array, codec, hierarchy, sharding, stored
from zarrdask.errors import ComplianceWarning, MetadataError, UnsupportedError
from zarrdask.formats.metadata.draft.dtypes import ExtensionType

DRAFT = {"zarr_format": "v3-draft"}
MANDATORY = (
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_memory_layout",
    "fill_value",
    "extensions",
    "attributes",
)


def opened(document, chunks=None):
    return zarrdask.open_array(stored(document, chunks), "a")


def made(**options):
    """Return the document of a new array."""
    store = {}
    options = {"shape": (4,), "dtype": "<u2", "chunks": 2, "compressors": []} | options
    zarrdask.create_array(store, "a", **options, **DRAFT)
    return json.loads(store["meta/a.array.json"])


@for_each("member", MANDATORY)
def test_b20_a_missing_member_is_an_error_that_names_it(member):
    with pytest.raises(MetadataError, match=member):
        opened(without(array(), member))


def test_b20_codecs_and_storage_transformers_may_be_left_out():
    assert opened(array())[...].tolist() == [0] * 4
    assert set(made()) == set(MANDATORY)
    assert opened(array(codecs=[], storage_transformers=[])).shape == (4,)


@for_each("member", ["chunks", "zarr_format", "node_type", "Shape", "x"])
def test_b21_another_name_is_an_error_that_names_it(member):
    with pytest.raises(UnsupportedError) as caught:
        opened(array(**{member: 1}))
    assert caught.value.found == [member]


def test_b21_no_other_name_is_written():
    options = {
        "shards": 4,
        "compressors": "gzip",
        "order": "F",
        "attributes": {"a": 1},
        "dimension_names": ["x"],
    }
    assert set(made(**options)) == {*MANDATORY, "codecs", "storage_transformers"}


@for_each("name", ["zarr_format", "node_type", "dimension_names", "chunk_key_encoding"])
def test_b22_members_of_the_final_version_are_not_known(name):
    assert name not in made(dimension_names=["x"])
    with pytest.raises(UnsupportedError):
        opened(array(**{name: None}))


@for_each("shape", [[], [0], [4], [2, 3, 4]])
def test_b23_the_shape_is_a_list_of_integers(shape):
    found = opened(array(shape, [1] * len(shape)))
    assert found.shape == tuple(shape)
    assert made(shape=shape, chunks=-1)["shape"] == shape


@for_each("shape", [None, 4, "4", [4.0], ["4"], [-1], [True], {"0": 4}])
def test_b23_anything_else_is_an_error(shape):
    with pytest.raises(MetadataError, match="shape"):
        opened(array() | {"shape": shape})


def test_b24_a_data_type_is_an_identifier_or_an_extension_with_its_type():
    assert opened(array(data_type="uint16")).dtype == np.dtype("u2")
    kind = {"extension": DATETIME, "type": "<M8[ns]"}
    assert opened(array(data_type=kind)).dtype == np.dtype("M8[ns]")


@for_each(
    "found",
    [
        None,
        3,
        ["uint16"],
        {},
        {"extension": DATETIME},
        {"type": "<M8[ns]"},
        {"extension": 3, "type": "<M8[ns]"},
        {"name": "uint16"},
    ],
)
def test_b24_anything_else_is_an_error(found):
    with pytest.raises(MetadataError, match="data_type"):
        opened(array(data_type=found))


@for_each("name", ["int128", "string", "float", "UINT16", ""])
def test_b24_an_unknown_identifier_is_an_error_that_names_it(name):
    with pytest.raises(UnsupportedError) as caught:
        opened(array(data_type=name))
    assert (caught.value.key.split(": ")[-1], caught.value.found) == ("data_type", name)


@for_each(
    ("fallback", "dtype"),
    [
        ("uint16", "u2"),
        (["uint16"], "u2"),
        (["unheard-of", "int16", "uint16"], "i2"),
        ([{"extension": NOBODY, "type": 1}, "r16"], "V2"),
        (["unheard-of", {"extension": DATETIME, "type": "<M8[s]"}], "M8[s]"),
    ],
)
def test_b25_the_first_known_fallback_is_used_if_the_user_allows(fallback, dtype):
    kind = {"extension": NOBODY, "type": "x", "fallback": fallback}
    data = bytes(range(2 * np.dtype(dtype).itemsize))
    fill = "0x0000" if dtype == "V2" else 0
    store = stored(array(data_type=kind, fill_value=fill), {"c0": data})
    with pytest.raises(UnsupportedError, match="draft-fallback") as caught:
        zarrdask.open_array(store, "a")
    assert caught.value.found == NOBODY
    allowed = dask.config.set({"zarrdask.draft-fallback": True})
    with allowed, pytest.warns(ComplianceWarning, match=NOBODY):
        found = zarrdask.open_array(store, "a")
    assert found.dtype == np.dtype(dtype)
    assert found[:2].tobytes() == data


@for_each("fallback", [None, [], "unheard-of", ["a", "b"], [3]])
def test_b25_without_a_known_fallback_it_is_an_error(fallback):
    kind = {"extension": NOBODY, "type": "x", "fallback": fallback}
    with dask.config.set({"zarrdask.draft-fallback": True}):
        with pytest.raises(UnsupportedError, match=NOBODY):
            opened(array(data_type=kind))
        with pytest.raises(UnsupportedError, match=NOBODY):
            opened(array(data_type=without(kind, "fallback")))


def test_b25_what_is_not_understood_stays_when_the_document_is_written_again():
    kind = {"extension": NOBODY, "type": {"of": "any"}, "fallback": "uint16"}
    store = stored(array(data_type=kind, fill_value=7))
    with dask.config.set({"zarrdask.draft-fallback": True}), pytest.warns(ComplianceWarning):
        found = zarrdask.open_array(store, "a", mode="r+")
    # What was allowed, and said, where it was opened is so still.
    found.attrs["x"] = 1
    written = json.loads(store["meta/a.array.json"])
    assert written == array(data_type=kind, fill_value=7, attributes={"x": 1})


@for_each(("dtype", "last"), [("M8[ns]", "r64"), ("S3", "r24"), ("U2", "r64"), ("u1,f4", "r40")])
def test_b26_raw_bytes_are_the_last_fallback(dtype, last):
    assert made(dtype=dtype)["data_type"]["fallback"][-1] == last


def test_b27_the_extension_gives_the_fallbacks_and_the_user_may_give_others():
    assert made(dtype="M8[ns]")["data_type"]["fallback"] == ["int64", "r64"]
    chosen = ExtensionType(np.dtype("M8[ns]"), ("float64",))
    written = made(dtype=chosen)["data_type"]
    assert written == {"extension": DATETIME, "type": "<M8[ns]", "fallback": ["float64"]}


def test_b27_fallbacks_are_kept_when_the_document_is_written_again():
    kind = {"extension": DATETIME, "type": "<M8[ns]", "fallback": ["float64", "int64"]}
    store = stored(array(data_type=kind))
    zarrdask.open_array(store, "a", mode="r+").attrs["x"] = 1
    assert json.loads(store["meta/a.array.json"])["data_type"] == kind


@pytest.mark.parametrize("separator", ["/", "."])
def test_b28_a_regular_grid_has_chunk_shape_and_separator(separator):
    grid = {"type": "regular", "chunk_shape": [2, 3], "separator": separator}
    assert made(shape=(4, 6), chunks=(2, 3), separator=separator)["chunk_grid"] == grid
    store = stored(array((4, 6)) | {"chunk_grid": grid}, {f"c1{separator}0": bytes(range(12))})
    assert zarrdask.open_array(store, "a")[2:, :3].tobytes() == bytes(range(12))


@for_each(
    "grid",
    [
        None,
        "regular",
        {"type": "regular", "separator": "/"},
        {"chunk_shape": [2], "separator": "/"},
        {"type": "regular", "chunk_shape": [2], "separator": "-"},
        {"type": "regular", "chunk_shape": [2], "separator": None},
        {"type": "regular", "chunk_shape": [2, 2], "separator": "/"},
        {"type": "regular", "chunk_shape": [], "separator": "/"},
        {"type": "regular", "chunk_shape": [2.0], "separator": "/"},
        {"type": "regular", "chunk_shape": 2, "separator": "/"},
    ],
)
def test_b28_anything_else_is_an_error(grid):
    with pytest.raises(MetadataError, match="chunk"):
        opened(array() | {"chunk_grid": grid})


def test_b28_another_separator_is_not_written():
    with pytest.raises(MetadataError, match="separator"):
        made(separator="-")


@pytest.mark.parametrize(
    "grid",
    [
        {"extension": NOBODY, "type": "rectangular"},
        {"type": "rectangular", "chunk_shape": [2], "separator": "/"},
    ],
)
def test_b29_an_unknown_grid_is_an_error(grid):
    with pytest.raises(UnsupportedError, match="chunk_grid") as caught:
        opened(array() | {"chunk_grid": grid})
    assert caught.value.found == grid.get("extension", "rectangular")


@pytest.mark.parametrize("layout", ["C", "F"])
def test_b30_the_memory_layout_is_c_or_f(layout):
    chunk = np.arange(6, dtype="<u2").reshape(2, 3)
    document = array((2, 3), (2, 3), chunk_memory_layout=layout)
    found = opened(document, {"c0/0": chunk.tobytes(layout)})
    assert found[...].tolist() == chunk.tolist()
    assert made(shape=(2, 3), order=layout)["chunk_memory_layout"] == layout


def test_b30_an_unknown_layout_is_an_error_that_names_it():
    with pytest.raises(UnsupportedError) as caught:
        opened(array(chunk_memory_layout={"extension": NOBODY, "type": "morton"}))
    assert caught.value.found == NOBODY
    for layout in ("c", "A", None, ["C"], {}):
        with pytest.raises(MetadataError, match="chunk_memory_layout"):
            opened(array(chunk_memory_layout=layout))


def test_b31_attributes_are_an_object_of_anything():
    attributes = {"foo": 42, "bar": "äpfel", "baz": [1, None, {"x": True}]}
    assert dict(opened(array(attributes=attributes)).attrs) == attributes
    assert made(attributes=attributes)["attributes"] == attributes
    assert made()["attributes"] == {}


@for_each("attributes", [None, [], "x", 3])
def test_b31_anything_else_is_an_error(attributes):
    with pytest.raises(MetadataError, match="attributes"):
        opened(array(attributes=attributes))


def test_b32_codecs_are_objects_with_a_type():
    found = opened(array(codecs=[codec("gzip", level=1)]))
    assert [each.name for each in found.metadata.codecs] == ["bytes", "gzip"]
    assert opened(array(codecs=[{"type": codec("gzip")["type"]}])).shape == (4,)
    assert opened(array()).metadata == opened(array(codecs=[])).metadata
    assert made(compressors="gzip")["codecs"] == [codec("gzip", level=5)]


@for_each(
    "codecs",
    [
        None,
        {},
        "gzip",
        ["gzip"],
        [codec("gzip")["type"]],
        [{"configuration": {}}],
        [{"type": 1}],
        [codec("gzip") | {"configuration": []}],
        [codec("gzip", level=1) | {"more": 1}],
    ],
)
def test_b32_anything_else_is_an_error(codecs):
    with pytest.raises(MetadataError, match="codec"):
        opened(array(codecs=codecs))


def test_b33_without_storage_transformers_there_are_none():
    assert opened(array()).shards is None
    assert opened(array(storage_transformers=[])).metadata == opened(array()).metadata
    assert opened(array(storage_transformers=[sharding(2)])).shards == (4,)


def test_b33_an_unknown_one_is_an_error_that_names_it():
    with pytest.raises(UnsupportedError) as caught:
        opened(array(storage_transformers=[{"extension": NOBODY, "type": "x"}]))
    assert caught.value.found == NOBODY


@for_each(
    "found",
    [
        None,
        {},
        [NOBODY],
        [{"extension": NOBODY}],
        [{"type": "indexed"}],
        [sharding(2) | {"configuration": []}],
        [sharding(2) | {"must_understand": False}],
    ],
)
def test_b33_anything_else_is_an_error(found):
    with pytest.raises(MetadataError, match="storage_transformers"):
        opened(array(storage_transformers=found))


def test_b20_the_example_of_the_text_opens():
    document = {
        "shape": [10000, 1000],
        "data_type": "<f8",
        "chunk_grid": {"type": "regular", "chunk_shape": [1000, 100], "separator": "/"},
        "chunk_memory_layout": "C",
        "codecs": [
            {
                "type": "https://purl.org/zarr/spec/codecs/gzip/1.0",
                "configuration": {"level": 1},
            }
        ],
        "fill_value": "NaN",
        "extensions": [],
        "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
    }
    found = zarrdask.open_array(hierarchy({"array": document}, ENTRY))
    assert (found.shape, found.chunks, found.dtype) == ((10000, 1000), (1000, 100), "f8")
    assert found.metadata.grid.counts == (10, 10)
    assert dict(found.attrs) == document["attributes"]
    assert np.isnan(found[5:7, 900:902]).all()
