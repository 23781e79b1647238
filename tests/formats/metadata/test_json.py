"""NaN and infinities in attributes, as xarray and zarr-python write them; lone surrogates, too."""

import copy
import json
import math
import pickle
from itertools import product

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each, sample
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata.json import _is_shallow, parse_json

FORMATS = [2, 3, "v3-draft", "v3-draft-protocol"]
#: What stands in documents, by the name of the attribute. No token is written by this library.
TEXTS = {"missing": "NaN", "range": "[-Infinity, Infinity]", "half": '"\\ud800"'}


def foreign(zarr_format, *, group=False):
    """Return a store whose array "z" has such attributes, and its root too if it is a group."""
    store = {}
    attributes = {name: f"@{name}" for name in TEXTS}
    options = {"shape": (4, 6), "chunks": (2, 3), "dtype": "i4", "fill_value": -1}
    if group:
        zarrdask.create_group(store, attributes=attributes, zarr_format=zarr_format)
    z = zarrdask.create_array(store, "z", attributes=attributes, zarr_format=zarr_format, **options)
    z[...] = np.arange(24).reshape(4, 6)
    for key, value in store.items():
        for name, text in TEXTS.items():
            value = value.replace(f'"@{name}"'.encode(), text.encode())
        store[key] = value
    return store


def tokens(store):
    """Return how often each text stands in the documents of a store."""
    documents = b"".join(value for key, value in store.items() if b'"attributes"' in value)
    documents += b"".join(value for key, value in store.items() if key.endswith(".zattrs"))
    compact = b" ".join(documents.split()).replace(b"[ ", b"[").replace(b" ]", b"]")
    return {name: compact.count(text.encode()) for name, text in TEXTS.items()}


def check_attributes(attributes):
    assert math.isnan(attributes["missing"])
    assert attributes["range"] == [-math.inf, math.inf]
    assert attributes["half"] == "\ud800"


ONCE = dict.fromkeys(TEXTS, 1)
VALUES = np.arange(24).reshape(4, 6)


@for_each("setting", ["write", "refuse"])
@for_each("zarr_format", FORMATS)
def test_what_documents_had_is_written_back_by_every_change(zarr_format, setting):
    store = foreign(zarr_format)
    assert tokens(store) == ONCE
    with dask.config.set({"zarrdask.non-finite-attributes": setting}):
        z = zarrdask.open_array(store, "z", mode="r+")
        z.resize((3, 6))
        assert tokens(store) == ONCE
        z.append(VALUES[3:])
        zarrdask.append(da.from_array(VALUES[:2]), z)
        assert tokens(store) == ONCE
        z.attrs["another"] = 1
        z.attrs["missing again"] = z.attrs["missing"]
    again = zarrdask.open_array(store, "z")
    check_attributes(again.attrs)
    assert again.attrs["another"] == 1
    assert again[...].tolist() == [*VALUES.tolist(), *VALUES[:2].tolist()]
    assert tokens(store) == {"missing": 2, "range": 1, "half": 1}


@for_each("before, after, setting", sample(product(FORMATS, FORMATS, ["write", "refuse"]), 2))
def test_copies_and_rewrites_keep_them(before, after, setting):
    source, target, rewritten = foreign(before, group=True), {}, {}
    with dask.config.set({"zarrdask.non-finite-attributes": setting}):
        zarrdask.copy(source, target, zarr_format=after)
        root = zarrdask.open_group(source)
        zarrdask.rechunk(root, rewritten, chunks=(4, 2), zarr_format=after).execute(progress=False)
    for store in (target, rewritten):
        group = zarrdask.open_group(store)
        check_attributes(group.attrs)
        check_attributes(group["z"].attrs)
        assert group["z"][...].tolist() == VALUES.tolist()
        assert tokens(store) == dict.fromkeys(TEXTS, 2)


@for_each("setting", ["write", "refuse"])
@for_each("after", ["drop", "update"])
@for_each("zarr_format", [2, 3])
def test_consolidated_metadata_hold_them(zarr_format, after, setting):
    store = foreign(zarr_format, group=True)
    settings = {
        "zarrdask.non-finite-attributes": setting,
        "zarrdask.consolidated-after-change": after,
    }
    with dask.config.set(settings):
        zarrdask.consolidate_metadata(store)
        root = zarrdask.open_group(store, mode="r+", consolidated=True)
        check_attributes(root.attrs)
        check_attributes(root["z"].attrs)
        root["z"].resize((2, 6))
        target = {}
        zarrdask.copy(store, target)
    check_attributes(zarrdask.open_array(target, "z").attrs)
    for consolidated in (False, True) if after == "update" else (False,):
        root = zarrdask.open_group(store, consolidated=consolidated)
        check_attributes(root.attrs)
        check_attributes(root["z"].attrs)
        assert root["z"].shape == (2, 6)


def test_metadata_of_v3_beside_those_of_v2_hold_them():
    store = foreign(2, group=True)
    zarrdask.upgrade(store, remove_v2=True)
    root = zarrdask.open_group(store)
    assert root.zarr_format == 3
    check_attributes(root.attrs)
    check_attributes(root["z"].attrs)


@for_each("zarr_format", FORMATS)
def test_new_ones_are_written_as_zarr_python_and_xarray_write_them(zarr_format):
    store = {}
    attributes = {
        "missing": math.nan,
        "range": (-math.inf, np.float64(math.inf)),
        "half": "\ud800",
    }
    z = zarrdask.create_array(
        store, "z", shape=3, dtype="f4", attributes=attributes, zarr_format=zarr_format
    )
    assert tokens(store) == ONCE
    check_attributes(zarrdask.open_array(store, "z").attrs)
    z.attrs["deep"] = {"in": [math.nan]}
    assert math.isnan(zarrdask.open_array(store, "z").attrs["deep"]["in"][0])


@for_each("zarr_format", FORMATS)
def test_new_ones_are_refused_where_the_setting_says_so(zarr_format):
    store = foreign(zarr_format)
    before = dict(store)
    z = zarrdask.open_array(store, "z", mode="r+")
    with dask.config.set({"zarrdask.non-finite-attributes": "refuse"}):
        with pytest.raises(MetadataError, match=r"deep\.in\[1\].*non-finite-attributes"):
            z.attrs["deep"] = {"in": [1.0, math.nan]}
        with pytest.raises(MetadataError, match="non-finite-attributes"):
            zarrdask.create_array(
                store,
                "z",
                shape=3,
                dtype="i4",
                attributes={"a": math.inf},
                zarr_format=zarr_format,
                overwrite=True,
            )
    assert store == before


def test_a_setting_that_is_unknown_is_an_error():
    with (
        dask.config.set({"zarrdask.non-finite-attributes": "quote"}),
        pytest.raises(MetadataError, match=r"zarrdask\.non-finite-attributes.*'quote'"),
    ):
        zarrdask.create_group({}, attributes={"a": math.nan})


def test_attributes_equal_their_copies():
    attributes = zarrdask.open_array(foreign(3), "z").attrs.asdict()
    assert copy.deepcopy(attributes) == attributes
    assert pickle.loads(pickle.dumps(attributes)) == attributes


def unwritable(zarr_format):
    """Return a store with an array whose documents can be read, but not written again."""
    store = foreign(zarr_format)
    [key] = [key for key, value in store.items() if b"Infinity" in value]
    document = json.loads(store[key])
    deep = 1
    for _ in range(130 if zarr_format == 2 else 129):
        deep = [deep]
    attributes = document if zarr_format == 2 else document["attributes"]
    attributes["deep"] = deep
    store[key] = json.dumps(document).encode()
    return store


@for_each("zarr_format", FORMATS)
@for_each(
    "act",
    [
        lambda z: z.resize((1, 2)),
        lambda z: z.append(VALUES),
        lambda z: zarrdask.append(da.from_array(VALUES), z),
        lambda z: z.attrs.update(a=1),
    ],
)
def test_nothing_is_changed_if_the_documents_cannot_be_written(zarr_format, act):
    store = unwritable(zarr_format)
    before = dict(store)
    with pytest.raises(MetadataError, match="nested too deeply"):
        act(zarrdask.open_array(store, "z", mode="r+"))
    assert store == before


@for_each("zarr_format", FORMATS)
def test_nothing_is_replaced_by_what_cannot_be_written(zarr_format):
    source, target = unwritable(zarr_format), foreign(zarr_format)
    before = dict(target)
    z = zarrdask.open_array(source, "z")
    with pytest.raises(MetadataError, match="nested too deeply"):
        zarrdask.copy(z, target, "z", overwrite=True, compressors="auto")
    with pytest.raises(MetadataError, match="nested too deeply"):
        zarrdask.rechunk(z, target, chunks=(1, 1), overwrite=True)
    with pytest.raises(MetadataError, match="nested too deeply"):
        zarrdask.to_zarr(
            da.zeros(3), target, "z", overwrite=True, attributes=z.attrs, zarr_format=zarr_format
        )
    assert target == before


@for_each(
    ("text", "is_shallow"),
    [
        ('{"a": [{}, [1], "b"], "c\\u00b0": {"": []}}', True),
        # Brackets and quotes in texts are not those of the document.
        ('{"a": "]", "b": [["]", ["]"]]]}', False),
        ('{"a": "\\"", "b": [[]]}', False),
        ('{"a[": "b", "c]": "d"}', False),
        ("[" * 5 + "]" * 5, True),
        ("[" * 6 + "]" * 6, False),
        ("[" * 6 + '"]' * 6 + "]" * 6, False),
        ("\0[]", False),
    ],
)
def test_brackets_show_that_a_document_is_shallow(text, is_shallow):
    assert _is_shallow(text.encode(), 5) == is_shallow


def test_a_large_document_that_is_nested_too_deeply_is_refused():
    members = {f"a{n}": {"b": [n]} for n in range(200)}
    assert parse_json(json.dumps(members).encode(), "zarr.json") == members
    for deep in ("[" * 140 + "]" * 140, "[" * 140 + '"]"' + "]" * 140):
        with pytest.raises(MetadataError, match="nested too deeply"):
            parse_json(f'{{"deep": {deep}}}'.encode(), "zarr.json")
