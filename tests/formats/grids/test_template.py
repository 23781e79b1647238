"""Chunk keys that a format describes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.formats.grids.keys import parse_keys


def keys_of(form, separator=None):
    own = {"format": form} if separator is None else {"format": form, "separator": separator}
    return parse_keys({"name": "template", "configuration": own})


@for_each(
    ("form", "separator", "index", "key"),
    [
        ("{0}.{1}", None, (1, 23), "1.23"),
        ("{1}/{0:03}", None, (1, 23), "23/001"),
        ("{-1}/{0}", None, (1, 2), "2/1"),
        ("t{0:04}/{*}", "x", (7, 1, 23), "t0007/1x23"),
        ("c/{*:02}", "/", (1, 234), "c/01/234"),
        ("{{{*}}}", ",", (1, 2), "{1,2}"),
        ("{*}s{-1}", "_", (1, 2, 3), "1_2s3"),
        ("c{0}", None, (5,), "c5"),
        ("only", None, (), "only"),
    ],
)
def test_keys_and_indices(form, separator, index, key):
    keys = keys_of(form, separator)
    assert keys.key(index) == key
    assert keys.names([index, index]) == [key, key]
    assert keys.index(key, len(index)) == index
    assert parse_keys(keys.to_json()) == keys


@for_each(
    ("form", "key", "ndim"),
    [
        ("{0:03}.{1}", "1.23", 2),
        ("{0:03}.{1}", "0001.23", 2),
        ("{0}.{1}", "01.2", 2),
        ("{0}.{1}", "1.2.3", 2),
        ("{0}.{1}", "1x2", 2),
        ("{0}", "²", 1),
        ("c{0}", "zarr.json", 1),
    ],
)
def test_other_keys_are_no_chunk_keys(form, key, ndim):
    assert keys_of(form).index(key, ndim) is None


@for_each(
    ("form", "separator", "reason"),
    [
        ("{0", None, "brace"),
        ("0}", None, "brace"),
        ("{x}", None, "brace"),
        ("{0:3}", None, "brace"),
        ("{+1}", None, "brace"),
        ("{0:099999999999}", None, "digits"),
        ("{*}{*}", "/", "more than once"),
        ("{*}", None, "separator"),
        (3, None, "invalid value"),
        ("{0}", 3, "invalid value"),
    ],
)
def test_invalid_formats(form, separator, reason):
    with pytest.raises(MetadataError, match=reason):
        keys_of(form, separator)


@for_each(
    ("form", "separator", "reason"),
    [
        ("{0}", None, "same key"),
        ("{0}.{0}", None, "axes"),
        ("{0}.{-2}", None, "axes"),
        ("{0}.{2}", None, "axes"),
        ("{0}{1}", None, "same"),
        ("{0}0{1}", None, "same"),
        ("{*}", "", "same"),
        ("../{*}", "/", "below"),
        ("/{*}", "/", "below"),
        ("{*}", "/../", "below"),
        ("{*}/", "/", "below"),
        ("zarr.json/{*}", "/", "below"),
    ],
)
def test_an_array_whose_chunks_can_not_be_named_is_not_created(form, separator, reason):
    values, own = {}, {"format": form, "separator": separator}
    with pytest.raises(MetadataError, match=reason):
        zarrdask.create_array(
            values,
            shape=(4, 4),
            chunks=2,
            dtype="u1",
            chunk_key_encoding={"name": "template", "configuration": own},
        )
    assert not values


def test_the_document_of_an_array_is_not_the_key_of_its_chunk():
    with pytest.raises(MetadataError, match=r"zarr\.json"):
        keys_of("zarr.json").key(())


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=5).map(tuple))
def test_a_key_gives_back_its_index(index):
    keys = keys_of("{-1:03}/c{*:02}-{0}", ".")
    assert keys.index(keys.key(index), len(index)) == index


def test_an_array_is_written_and_read():
    values, expected = {}, np.arange(24).reshape(4, 6)
    encoding = {"name": "template", "configuration": {"format": "y{0:02}.{*}", "separator": "."}}
    z = zarrdask.create_array(
        values, shape=(4, 6), chunks=(2, 3), dtype="i8", chunk_key_encoding=encoding
    )
    z[...] = expected
    assert {*values} - {"zarr.json"} == {"y00.0", "y00.1", "y01.0", "y01.1"}
    again = zarrdask.open_array(values)
    np.testing.assert_array_equal(again[...], expected)
    assert again.nchunks_stored() == 4
    np.testing.assert_array_equal(zarrdask.from_zarr(values).compute(), expected)
