"""X-B: where the text of the draft is silent, contradicts itself, or real writers differ."""

import base64
import gzip
import json

import dask
import numcodecs
import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.covering import for_each
from tests.documents import dump, without
from tests.drafts import (
    CODEC,
    CORE,
    DATETIME,
    ENTRY,
    JSON,
    NOBODY,
    OLDER,
    OLDER_ENTRY,
    array,
    codec,
    compressor,
    hierarchy,
    older,
    sharding,
    stored,
)
from zarrdask.errors import ComplianceWarning, MetadataError, NodeNotFoundError, UnsupportedError

DRAFT = {"zarr_format": "v3-draft"}
PROTOCOL = {"zarr_format": "v3-draft-protocol"}
GROUP = {"attributes": {}}
VALUES = np.arange(24, dtype="<u2").reshape(4, 6)


def opened(document, chunks=None, entry=ENTRY, **options):
    return zarrdask.open_array(stored(document, chunks, entry), "a", **options)


def written(zarr_format, **options):
    """Return the document of a new array."""
    store = {}
    options = {"shape": (4,), "dtype": "<u2", "chunks": 2, "compressors": []} | options
    zarrdask.create_array(store, "a", **options, **zarr_format)
    *_, key = [key for key in store if key.startswith("meta/")]
    return json.loads(store[key])


# ---- data types and fill values


@for_each(
    ("name", "stored_as"),
    [
        ("<f8", "<f8"),
        (">f8", ">f8"),
        ("<i8", "<i8"),
        (">u2", ">u2"),
        ("|u1", "|u1"),
        ("u1", "|u1"),
        ("i1", "|i1"),
        ("f8", "<f8"),
        ("i4", "<i4"),
        ("|b1", "|b1"),
        ("b1", "|b1"),
        ("<c8", "<c8"),
    ],
)
def test_xb1_typestrs_of_numpy_are_read(name, stored_as):
    values = np.array([0, 1], stored_as)
    fill = {"b": False, "c": [0, 0]}.get(values.dtype.kind, 0)
    document = array((2,), (2,), name, fill)
    found = opened(document, {"c0": values.tobytes()})
    assert found[...].tolist() == values.tolist()
    assert found.dtype == values.dtype.newbyteorder("=")
    with refused("X-B1"):
        opened(document, strict=True)


@pytest.mark.parametrize("order", ["C", "F"])
def test_xb1_big_endian_typestrs_mean_a_conversion(order):
    values = VALUES.astype(">u2")
    document = array(
        (4, 6),
        (4, 6),
        ">u2",
        codecs=[codec("gzip", level=1)],
        chunk_memory_layout=order,
    )
    store = stored(document, {"c0/0": gzip.compress(values.tobytes(order))})
    z = zarrdask.open_array(store, "a", mode="r+")
    assert z[...].tolist() == VALUES.tolist()
    z.attrs["x"] = 1
    again = json.loads(store["meta/a.array.json"])
    assert again["data_type"] == "uint16"
    assert again["codecs"] == [codec("endian", endian="big"), codec("gzip", level=1)]
    assert zarrdask.open_array(store, "a")[...].tolist() == VALUES.tolist()


@for_each("name", ["<f3", "<f16", "|f8", "=f8", "<M8[s]", "<U3", "f"])
def test_xb1_what_is_no_core_type_is_an_error(name):
    with pytest.raises((MetadataError, UnsupportedError), match="data_type"):
        opened(array(data_type=name))


@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_xb2_long_integers_are_read_and_written(name):
    values = np.array([2**63 - 1, 0], name)
    found = opened(array((2,), (2,), name), {"c0": values.astype(f"<{name[0]}8").tobytes()})
    assert found[...].tolist() == values.tolist()
    assert written(DRAFT, dtype=name)["data_type"] == name


@for_each(("name", "zero"), [("float64", 0.0), ("int8", 0), ("bool", False), ("r16", b"\0\0")])
def test_xb3_null_is_read_as_zero_with_a_warning(name, zero):
    store = stored(array(data_type=name, fill_value=None))
    with pytest.warns(ComplianceWarning, match="X-B3"):
        found = zarrdask.open_array(store, "a", mode="r+")
    value = found[0]
    assert (value.tobytes() if name == "r16" else value) == zero
    with refused("X-B3"):
        zarrdask.open_array(store, "a", strict=True)
    found.attrs["x"] = 1  # what there was to say was said
    assert json.loads(store["meta/a.array.json"])["fill_value"] is not None


def test_xb3_in_the_older_dialect_it_is_allowed_and_stays():
    store = stored(older(fill_value=None), entry=OLDER_ENTRY)
    found = zarrdask.open_array(store, "a", mode="r+")
    assert found.fill_value is None
    assert found[...].tolist() == [0] * 4
    found.attrs["x"] = 1
    assert json.loads(store["meta/root/a.array.json"])["fill_value"] is None
    with refused("X-B3"):
        zarrdask.open_array(store, "a", strict=True)


@pytest.mark.parametrize(("text", "value"), [("+Infinity", np.inf), ("Infinity", np.inf)])
def test_xb4_infinity_is_read_with_its_sign_and_without(text, value):
    for entry, name in ((ENTRY, "float64"), (OLDER_ENTRY, "<f8")):
        assert opened(array(data_type=name, fill_value=text), entry=entry)[0] == value
    assert written(DRAFT, dtype="f8", fill_value=value)["fill_value"] == "+Infinity"
    assert written(PROTOCOL, dtype="f8", fill_value=value)["fill_value"] == "Infinity"
    strict = array(data_type="float64", fill_value=text)
    if text == "Infinity":
        with refused("X-B4"):
            opened(strict, strict=True)
    else:
        assert opened(strict, strict=True)[0] == value


def test_xb5_the_first_digit_is_the_most_significant():
    for text in ("0x40490fdb", f"0b{0x40490FDB:032b}"):
        assert opened(array(data_type="float32", fill_value=text))[0] == np.float32(np.pi)
    complex_ = array(data_type="complex64", fill_value=["0x40490fdb", "0x00000000"])
    assert opened(complex_)[0] == np.float32(np.pi)


# ---- members


def test_xb6_unknown_members_fail_in_3_0_and_are_ignored_after_it():
    documents = {"a.array": array(new=1), "g.group": GROUP | {"new": 1}}
    for minor, entry in ((0, ENTRY), (1, ENTRY | {"zarr_format": CORE[:-1] + "1", "new": 1})):
        store = hierarchy(documents, entry)
        for path in ("a", "g"):
            if minor:
                assert zarrdask.open(store, path).zarr_format == "v3-draft"
            else:
                with pytest.raises(UnsupportedError, match="new"):
                    zarrdask.open(store, path)
    with pytest.raises(UnsupportedError, match="new"):
        zarrdask.open(hierarchy(documents, ENTRY | {"new": 1}))


@pytest.mark.parametrize("name", ["compressor", "dimension_separator"])
def test_xb6_members_of_real_files_are_read_unless_strict(name):
    member = {"compressor": compressor("gzip", level=1), "dimension_separator": "/"}[name]
    document = array((2,), (2,), **{name: member})
    data = np.array([1, 2], "<u2").tobytes()
    chunk = gzip.compress(data) if name == "compressor" else data
    assert opened(document, {"c0": chunk})[...].tolist() == [1, 2]
    with refused("X-B6"):
        opened(document, strict=True)


def test_xb6_they_may_not_contradict_others():
    with pytest.raises(MetadataError, match="separator"):
        opened(array(dimension_separator="."))
    both = {"codecs": [], "compressor": None}
    with pytest.raises(MetadataError, match="compressor"):
        opened(array(**both))


@for_each(
    "uri",
    [
        "https://purl.org/zarr/spec/codecs/gzip/1.0",
        "https://purl.org/zarr/spec/codecs/gzip/1",
        "https://purl.org/zarr/spec/codecs/gzip",
        "https://purl.org/zarr/spec/codec/gzip/1.0",
        "https://purl.org/zarr/spec/codec/gzip",
        "http://purl.org/zarr/spec/codecs/gzip/1.0",
    ],
)
def test_xb7_all_spellings_of_a_codecs_uri_are_read(uri):
    chunk = gzip.compress(np.array([1, 2], "<u2").tobytes())
    settings = {"configuration": {"level": 1}}
    as_codec = array((2,), (2,), codecs=[{"type": uri, **settings}])
    assert opened(as_codec, {"c0": chunk})[...].tolist() == [1, 2]
    as_compressor = older((2,), (2,), compressor={"codec": uri, **settings})
    assert opened(as_compressor, {"c0": chunk}, OLDER_ENTRY)[...].tolist() == [1, 2]


@pytest.mark.parametrize("document", [older(), older(compressor=None)])
def test_xb7_no_compressor_is_none(document):
    assert opened(document, {"c0": b"\1\0\2\0"}, OLDER_ENTRY)[:2].tolist() == [1, 2]


@for_each("found", ["gzip", {}, {"codec": 1}, {"codec": "x"}, [], {"type": CODEC}])
def test_xb7_anything_else_is_an_error(found):
    with pytest.raises(MetadataError, match="compressor"):
        opened(older(compressor=found), entry=OLDER_ENTRY)


def test_xb8_decoding_runs_backwards_from_the_last_codec():
    data = VALUES.tobytes()
    encoded = numcodecs.BZ2(1).encode(numcodecs.Zlib(1).encode(gzip.compress(data)))
    codecs = [codec("gzip", level=1), codec("zlib", level=1), codec("bz2", level=1)]
    found = opened(array((4, 6), (4, 6), codecs=codecs), {"c0/0": encoded})
    assert found[...].tolist() == VALUES.tolist()


@pytest.mark.parametrize(
    "codecs",
    [
        [codec("gzip", level=1), codec("endian", endian="big")],
        [codec("endian", endian="big"), codec("endian", endian="little")],
    ],
)
def test_xb9_a_byte_codec_is_not_followed_by_one_of_arrays(codecs):
    with pytest.raises(MetadataError, match="order"):
        opened(array(codecs=codecs))
    right = [codec("endian", endian="big"), codec("gzip", level=1)]
    assert opened(array(codecs=right)).shape == (4,)


# ---- keys and nodes


@pytest.mark.parametrize("shape", [(2,), ()])
def test_xb10_the_roots_keys_have_no_double_slash(shape):
    store = {}
    options = {"shape": shape, "dtype": "u1", "chunks": shape, "compressors": []}
    zarrdask.create_array(store, **options, **DRAFT)[...] = 1
    assert set(store) == {"zarr.json", "meta/array.json", "data/c0" if shape else "data/c"}
    assert not any("//" in key for key in store)
    assert zarrdask.open_array(store)[...].tolist() == np.ones(shape).tolist()


def test_xb10_the_roots_own_documents_are_no_children():
    store = hierarchy({"group": GROUP, "a.array": array()})
    assert list(zarrdask.open_group(store)) == ["a"]


def test_xb11_slips_in_the_texts_keys_are_not_followed():
    store = {}
    zarrdask.create_array(store, "foo/baz/qux", shape=1, dtype="u1", fill_value=0, **DRAFT)[0] = 1
    assert set(store) == {"zarr.json", "meta/foo/baz/qux.array.json", "data/foo/baz/qux/c0"}


def test_xb11_the_texts_group_example_is_no_json():
    text = b'{"attributes": {"spam": "ham", "eggs": 42,}}'
    store = hierarchy() | {"meta/g.group.json": text}
    with pytest.raises(MetadataError, match="JSON"):
        zarrdask.open(store, "g")
    store["meta/g.group.json"] = text.replace(b",}", b"}")
    assert dict(zarrdask.open_group(store, "g").attrs) == {"spam": "ham", "eggs": 42}


@pytest.mark.parametrize("entry", [ENTRY, OLDER_ENTRY])
def test_xb12_the_entry_point_alone_is_an_empty_root_group(entry, tmp_path):
    (tmp_path / "zarr.json").write_bytes(dump(entry))
    for place in ({"zarr.json": dump(entry)}, tmp_path):
        root = zarrdask.open(place)
        assert isinstance(root, zarrdask.Group)
        assert (dict(root.attrs), list(root)) == ({}, [])


def test_xb13_of_an_array_and_a_group_the_array_is_taken():
    store = hierarchy({"x.array": array(), "x.group": GROUP, "x/y.array": array()})
    with pytest.warns(ComplianceWarning, match="X-B13"):
        assert isinstance(zarrdask.open(store, "x"), zarrdask.Array)
    with pytest.warns(ComplianceWarning, match="X-B13"):
        assert [path for path, _ in zarrdask.open_group(store).walk()] == ["x"]
    with refused("X-B13"):
        zarrdask.open(store, "x", strict=True)


@for_each("found", [None, {}, "x", [NOBODY], [{"extension": NOBODY}]])
def test_xb14_an_arrays_extensions_follow_the_entry_points_rules(found):
    assert opened(array(extensions=[])).metadata.extensions == ()
    item = {"extension": NOBODY, "must_understand": False}
    assert [each.name for each in opened(array(extensions=[item])).metadata.extensions] == [NOBODY]
    with pytest.raises(MetadataError, match="extensions"):
        opened(array(extensions=found))
    with pytest.raises(MetadataError, match="extensions"):
        opened(without(array(), "extensions"))


def test_xb15_a_missing_separator_is_a_slash():
    document = array((2, 2), (1, 1), chunk_grid={"type": "regular", "chunk_shape": [1, 1]})
    assert opened(document, {"c1/1": b"\7\0"})[1, 1] == 7
    with refused("X-B15"):
        opened(document, strict=True)
    assert written(DRAFT)["chunk_grid"]["separator"] == "/"


# ---- the older dialect

MIXED = {"zarr_format": CORE, "metadata_encoding": OLDER, "extensions": []}


@for_each("entry", [MIXED, MIXED | {"metadata_key_suffix": ".json"}])
@for_each("root", ["", "root/"])
def test_xb16_the_older_form_of_the_encoding_is_read_unless_strict(entry, root):
    store = hierarchy({f"{root}g/a.array": array()}, entry)
    found = zarrdask.open_array(store, "g/a")
    assert found.zarr_format == ("v3-draft-protocol" if root else "v3-draft")
    with refused("X-B16"):
        zarrdask.open(store, strict=True)


def test_xb16_the_newer_form_in_the_older_dialect_is_read_unless_strict():
    entry = without(OLDER_ENTRY, "metadata_key_suffix") | {"metadata_encoding": JSON}
    store = hierarchy({"root/a.array": older()}, entry)
    assert zarrdask.open_array(store, "a").zarr_format == "v3-draft-protocol"
    with refused("X-B16"):
        zarrdask.open(store, strict=True)


def test_xb17_the_older_dialects_keys():
    store = {}
    root = zarrdask.create_group(store, attributes={"r": 1}, **PROTOCOL)
    z = root.create_array("g/a", shape=(2, 2), dtype="u1", chunks=1, compressors=[])
    z[...] = 1
    root.create_array("s", shape=(), dtype="u1", compressors=[])[...] = 1
    assert set(store) == {
        "zarr.json",
        "meta/root.group.json",
        "meta/root/g/a.array.json",
        "meta/root/s.array.json",
        *(f"data/root/g/a/c{i}/{j}" for i in (0, 1) for j in (0, 1)),
        "data/root/s/c0",
    }
    assert json.loads(store["zarr.json"]) == OLDER_ENTRY
    assert list(zarrdask.open_group(store)) == ["g", "s"]
    store = {}
    zarrdask.create_array(store, shape=(), dtype="u1", **PROTOCOL)
    assert set(store) == {"zarr.json", "meta/root.array.json"}


def test_xb17_the_older_dialects_document():
    options = {"shape": (4, 6), "chunks": (2, 3), "shards": (4, 6), "order": "F"}
    document = written(PROTOCOL, **options, compressors=numcodecs.GZip(1), attributes={"x": 1})
    assert document == older(
        (4, 6),
        (2, 3),
        "<u2",
        chunk_memory_layout="F",
        compressor=compressor("gzip", level=1),
        storage_transformers=[sharding(2, 2)],
        attributes={"x": 1},
    )


@for_each(
    ("dtype", "name"),
    [
        ("?", "bool"),
        ("u1", "u1"),
        ("i1", "i1"),
        ("<i4", "<i4"),
        (">f8", ">f8"),
        ("<u8", "<u8"),
        ("<f2", "<f2"),
    ],
)
def test_xb17_the_older_dialects_data_types(dtype, name):
    assert written(PROTOCOL, dtype=dtype)["data_type"] == name
    values = np.array([0, 1], dtype)
    fill = False if dtype == "?" else 0
    store = stored(older((2,), (2,), name, fill), {"c0": values.tobytes()}, OLDER_ENTRY)
    found = zarrdask.open_array(store, "a", mode="r+", strict=True)
    assert found[...].tolist() == values.tolist()
    found.attrs["x"] = 1
    assert json.loads(store["meta/root/a.array.json"])["data_type"] == name
    found[...] = values[::-1]
    assert store["data/root/a/c0"] == values[::-1].tobytes()


READTHEDOCS = "https://zarr-specs.readthedocs.io/en"
OLDER_TYPES = [
    ("<c8", f"{READTHEDOCS}/core-protocol-v3.0-dev/protocol/extensions/complex-dtypes/v1.0.html"),
    ("<M8[ns]", f"{READTHEDOCS}/latest/extensions/data-types/datetime/v1.0.html"),
    (">m8[s]", f"{READTHEDOCS}/latest/extensions/data-types/datetime/v1.0.html"),
    ("|S3", "TODO: bytestring array protocol URL"),
    ("<U4", "TODO: unicode array protocol URL"),
    (">U2", "TODO: unicode array protocol URL"),
    ([["a", "<i4"], ["b", ">f4"]], "TODO: structured array protocol URL"),
    ([["", "|V4"]], "TODO: structured array protocol URL"),
]
FALLBACKS = ["r64", "<i8", ">i8", "r24", "r128", "r64", "r64", "r32"]


def as_numpy(kind):
    if isinstance(kind, str):
        return np.dtype(kind)
    return np.dtype([tuple(field) for field in kind]) if kind[0][0] else np.dtype("V4")


@for_each(("kind", "extension"), OLDER_TYPES)
def test_xb17_the_older_dialects_extension_types(kind, extension):
    dtype = as_numpy(kind)
    values = np.frombuffer(bytes([1, 0, 0, 0] * 8)[: 2 * dtype.itemsize], dtype)
    if dtype.kind == "U":
        values = np.array(["a", "b"], dtype)
    if dtype.byteorder == ">":
        values = values.astype(dtype.newbyteorder("<")).astype(dtype)
    fill = {"c": [0, 0], "S": "", "U": ""}.get(dtype.kind, 0)
    if dtype.kind == "V":
        fill = base64.b64encode(bytes(dtype.itemsize)).decode()
    data_type = {"extension": extension, "type": kind, "fallback": None}
    store = stored(older((2,), (2,), data_type, fill), {"c0": values.tobytes()}, OLDER_ENTRY)
    found = zarrdask.open_array(store, "a", mode="r+")
    assert found[...].tolist() == values.tolist()
    assert found.dtype == (dtype if dtype.names else dtype.newbyteorder("="))
    found.attrs["x"] = 1
    again = json.loads(store["meta/root/a.array.json"])["data_type"]
    fallback = FALLBACKS[OLDER_TYPES.index((kind, extension))]
    assert again == data_type | {"fallback": fallback}
    found[...] = values[::-1]
    assert store["data/root/a/c0"] == values[::-1].tobytes()


def test_xb17_acquire_names_types_as_the_newer_dialect_does():
    document = older((4,), (1,), "uint16", storage_transformers=[sharding(2)])
    assert opened(document, entry=OLDER_ENTRY)[...].tolist() == [0] * 4
    with refused("X-B17"):
        opened(document, entry=OLDER_ENTRY, strict=True)


def test_xb17_zarr_python_keeps_filters_among_the_attributes():
    delta = {"id": "delta", "dtype": "<u2", "astype": "<u2"}
    values = np.array([5, 7, 7, 9], "<u2")
    chunk = gzip.compress(numcodecs.Delta("<u2").encode(values).tobytes())
    document = older(
        (4,),
        (4,),
        compressor=compressor("gzip", level=1),
        attributes={"filters": [delta], "x": 1},
    )
    store = stored(document, {"c0": chunk}, OLDER_ENTRY)
    z = zarrdask.open_array(store, "a", mode="r+")
    assert z[...].tolist() == values.tolist()
    assert dict(z.attrs) == {"x": 1}
    z.attrs["x"] = 2
    again = json.loads(store["meta/root/a.array.json"])["attributes"]
    assert again == {"filters": [delta], "x": 2}
    options = {"filters": numcodecs.Delta("<u2"), "compressors": numcodecs.GZip(1)}
    assert written(PROTOCOL, **options)["attributes"] == {"filters": [delta]}


def test_xb17_an_attribute_of_that_name_is_the_users_if_it_is_no_list_of_codecs():
    for filters in (["g", "r"], "none", [], [{"name": "x"}], None):
        document = older(attributes={"filters": filters})
        assert dict(opened(document, entry=OLDER_ENTRY).attrs) == {"filters": filters}
    codecs = [{"id": "delta", "dtype": "<u2"}]
    assert dict(opened(array(attributes={"filters": codecs})).attrs) == {"filters": codecs}
    with pytest.raises(MetadataError, match="filters"):
        written(PROTOCOL, attributes={"filters": codecs})


def test_xb17_objects_have_their_codec_among_the_filters():
    store = {}
    options = {"shape": (3,), "dtype": object, "chunks": 3, "compressors": []}
    z = zarrdask.create_array(store, "a", **options, **PROTOCOL)
    z[...] = np.array(["a", "bcd", ""], object)
    document = json.loads(store["meta/root/a.array.json"])
    assert document["data_type"] == {
        "extension": "TODO: object array protocol URL",
        "type": "|O",
        "fallback": None,
    }
    assert document["attributes"] == {"filters": [{"id": "vlen-utf8"}]}
    assert zarrdask.open_array(store, "a")[...].tolist() == ["a", "bcd", ""]


@for_each("name", ["blosc", "zlib", "zstd", "lz4", "bz2", "lzma"])
def test_xb17_all_compressors_of_zarr_python_are_read(name):
    encoder = numcodecs.get_codec({"id": name})
    settings = {key: value for key, value in encoder.get_config().items() if key != "id"}
    document = older((4, 6), (4, 6), compressor=compressor(name, **settings))
    chunk = bytes(encoder.encode(VALUES))
    store = stored(document, {"c0/0": chunk}, OLDER_ENTRY)
    z = zarrdask.open_array(store, "a", mode="r+")
    assert z[...].tolist() == VALUES.tolist()
    z[...] = VALUES + 1
    assert zarrdask.open_array(store, "a")[...].tolist() == (VALUES + 1).tolist()


def test_xb17_the_uri_tells_which_dialect_it_is():
    for entry, expected in ((ENTRY, "v3-draft"), (OLDER_ENTRY, "v3-draft-protocol")):
        assert zarrdask.open({"zarr.json": dump(entry)}).zarr_format == expected
    # A node that is called so is no sign of the older dialect.
    store = {}
    zarrdask.create_array(store, "root", shape=2, dtype="u1", **DRAFT)
    assert zarrdask.open_array(store, "root").zarr_format == "v3-draft"
    with pytest.raises(NodeNotFoundError):
        zarrdask.open(stored(older(), entry=OLDER_ENTRY) | {"zarr.json": dump(ENTRY)}, "a")


def test_xb17_consolidated_metadata_are_no_node():
    documents = {
        "root.group": GROUP,
        "root/a.array": older(),
        "root/consolidated.group": GROUP,
    }
    store = hierarchy(documents, OLDER_ENTRY)
    store["meta/root/consolidated/.zmetadata"] = b"{}"
    assert list(zarrdask.open_group(store)) == ["a"]


# ---- codecs and fallbacks


@for_each(
    ("before", "typesize"),
    [
        ([], 8),
        ([codec("endian", endian="little")], 8),
        ([codec("endian", endian="big")], 1),
        ([codec("gzip", level=1)], 1),
    ],
)
def test_xb18_blosc_has_the_item_size_if_it_follows_the_array(before, typesize):
    blosc = codec("blosc", cname="lz4", clevel=5, shuffle=1)
    store = stored(array((64,), (64,), "float64", codecs=[*before, blosc]))
    z = zarrdask.open_array(store, "a", mode="r+")
    z[...] = np.arange(64)
    assert store["data/a/c0"][3] == typesize
    assert zarrdask.open_array(store, "a")[...].tolist() == list(range(64))


def test_xb18_the_same_in_the_older_dialect():
    blosc = compressor("blosc", cname="lz4", clevel=5, shuffle=1, blocksize=0)
    store = stored(older((64,), (64,), ">f8", compressor=blosc), entry=OLDER_ENTRY)
    z = zarrdask.open_array(store, "a", mode="r+")
    z[...] = np.arange(64)
    assert store["data/root/a/c0"][3] == 8


@for_each(
    ("fallback", "found", "expected"),
    [
        ("r16", "0x0102", b"\1\2"),
        ("r16", "0b0000000100000010", b"\1\2"),
        ("r16", "AQI=", b"\1\2"),
        ("r16", [1, 2], b"\1\2"),
        ("int16", 513, b"\1\2"),
    ],
)
def test_xb19_a_fill_value_is_read_as_the_fallback_type_if_it_can_be(fallback, found, expected):
    kind = {"extension": NOBODY, "type": "x", "fallback": fallback}
    allowed = dask.config.set({"zarrdask.draft-fallback": True})
    with allowed, pytest.warns(ComplianceWarning, match="B-25"):
        read = opened(array(data_type=kind, fill_value=found))
    assert read[:1].tobytes() == expected


@for_each(("fallback", "found"), [("r16", 0), ("r16", "NaT"), ("r16", "0x01"), ("int16", "NaT")])
def test_xb19_otherwise_it_is_zeros_with_a_warning(fallback, found):
    kind = {"extension": NOBODY, "type": "x", "fallback": fallback}
    store = stored(array(data_type=kind, fill_value=found))
    with dask.config.set({"zarrdask.draft-fallback": True}):
        with pytest.warns(ComplianceWarning) as caught:
            read = zarrdask.open_array(store, "a")
        assert any("X-B19" in str(warning.message) for warning in caught)
        with pytest.warns(ComplianceWarning), refused("X-B19"):
            zarrdask.open_array(store, "a", strict=True)
    assert read[:1].tobytes() == b"\0\0"


def test_xb19_a_known_extension_reads_it_itself():
    kind = {"extension": DATETIME, "type": "<M8[s]", "fallback": "r64"}
    assert opened(array(data_type=kind, fill_value=5))[0] == np.datetime64(5, "s")


def test_xb3_the_datetime_example_of_the_text_opens():
    document = {
        "shape": [10000, 1000],
        "data_type": {
            "extension": "https://purl.org/zarr/spec/extensions/data-types/datetime/1.0",
            "type": "<M8[ns]",
            "fallback": "<i8",
        },
        "chunk_grid": {"type": "regular", "chunk_shape": [1000, 100], "separator": "/"},
        "chunk_memory_layout": "C",
        "codecs": [
            {
                "type": "https://purl.org/zarr/spec/codecs/gzip/1.0",
                "configuration": {"level": 1},
            }
        ],
        "fill_value": None,
        "extensions": [],
        "attributes": {},
    }
    with pytest.warns(ComplianceWarning, match="X-B3"):
        found = zarrdask.open_array(hierarchy({"array": document}))
    assert found.dtype == np.dtype("M8[ns]")
    assert (found.shape, found.chunks) == ((10000, 1000), (1000, 100))
    assert found[5, 5] == np.datetime64(0, "ns")


def test_xb17_the_older_specifications_example_opens():
    extension = f"{OLDER.rsplit('/core', 1)[0]}/extensions/datetime-dtypes/1.0"
    kind = {"extension": extension, "type": "<M8[ns]", "fallback": "<i8"}
    document = older((4,), (2,), kind, None, compressor=compressor("gzip", level=1))
    found = opened(document, entry=OLDER_ENTRY)
    assert found.dtype == np.dtype("M8[ns]")
    assert np.isnat(found[...]).all()
