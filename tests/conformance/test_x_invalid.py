"""Invalid documents of older writers, which other readers accept: X-A7, X-C14."""

import json
import warnings

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.covering import for_each
from tests.documents import BIG, LITTLE, dump, named, sharding, stored, v2, v3, without
from zarrdask.errors import ComplianceWarning, MetadataError


def document(store, name):
    return json.loads(bytes(store[name]))


def opened(store, *, doubtful=False, mode="r"):
    """Open an array, with a warning if values could differ; strict mode refuses it."""
    rule = "X-A7" if ".zarray" in store else "X-C14"
    with refused(rule):
        zarrdask.open_array(store, strict=True)
    if doubtful:
        with pytest.warns(ComplianceWarning, match=rule):
            return zarrdask.open_array(store, mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return zarrdask.open_array(store, mode=mode)


# ---- X-A7


@for_each(
    ("dtype", "text", "value"),
    [
        ("|u1", "0", 0),
        ("<u8", "18446744073709551615", 2**64 - 1),
        (">i2", "-7", -7),
        ("<i4", "3.0", 3),
        ("<f4", "0", 0),
        (">f8", "1.5", 1.5),
        ("<f8", "-2e3", -2000),
        ("<M8[s]", "0", np.datetime64(0, "s")),
    ],
)
def test_xa7_a_fill_value_as_text_is_the_number(dtype, text, value):
    store = stored(v2((4,), (2,), dtype, text))
    with pytest.warns(ComplianceWarning, match="X-A7"):
        assert (zarrdask.from_zarr(store).compute() == value).all()
    z = opened(store, doubtful=True, mode="r+")
    assert z.fill_value == value
    z[0] = z[1]
    number = document(store, ".zarray")["fill_value"]
    assert type(number) in (int, float)
    assert zarrdask.open_array(store, strict=True).fill_value == value


@for_each("text", ["nan", "inf", "Inf", "-inf", "infinity"])
def test_xa7_other_spellings_of_infinity_and_nan_are_read(text):
    np.testing.assert_array_equal(opened(stored(v2((2,), (2,), "<f8", text)))[0], float(text))
    np.testing.assert_array_equal(
        opened(stored(v2((2,), (2,), "<c16", [text, 0.0])))[0].real, float(text)
    )


@for_each("text", ["", "x", "1_0", " 1", "0x10", "1.5", "1e400"])
def test_xa7_other_texts_are_no_integers(text):
    with pytest.raises(MetadataError, match="fill_value"):
        zarrdask.open_array(stored(v2((2,), (2,), "<i4", text)))


@for_each("shape", [(0,), (3,)])
def test_xa7_a_chunk_length_of_0_is_1(shape):
    store = stored(v2(shape, (0,), "<i4", 5))
    z = opened(store, doubtful=shape != (0,), mode="r+")
    assert z.chunks == (1,)
    assert z[...].tolist() == [5] * shape[0]
    z.append(np.array([7], "i4"))
    assert document(store, ".zarray")["chunks"] == [1]
    assert zarrdask.open_array(store, strict=True)[...].tolist() == [*[5] * shape[0], 7]


def test_xa7_true_is_a_length_of_1():
    assert opened(stored(v2((2, 4), (True, 4)))).chunks == (1, 4)


@for_each("member", ["filters", "compressor"])
def test_xa7_missing_filters_and_compressors_are_null(member):
    store = stored(without(v2((2,), (2,), "|u1", 0), member), {"0": b"\1\2"})
    assert opened(store)[...].tolist() == [1, 2]


def test_xa7_an_empty_zgroup_is_a_group():
    store = {".zgroup": b"{}"}
    with refused("X-A7"):
        zarrdask.open_group(store, strict=True)
    group = zarrdask.open_group(store, mode="r+")
    group.attrs["a"] = 1
    assert document(store, ".zgroup") == {"zarr_format": 2}


@for_each(
    "compressor",
    [
        {"id": "gzip", "level": "5"},
        {"id": "zlib", "level": 1.0},
        {"id": "bz2", "level": "1"},
        {"id": "zstd", "level": "-3"},
        {"id": "blosc", "cname": "lz4", "clevel": "5", "shuffle": 1, "blocksize": 0.0},
    ],
)
def test_xa7_levels_may_be_texts_and_floats(compressor):
    store = stored({**v2((2,), (2,), "|u1", 0), "compressor": compressor})
    z = opened(store, mode="r+")
    z[...] = [1, 2]
    assert zarrdask.open_array(store, strict=True)[...].tolist() == [1, 2]


@for_each(("word", "number"), [("noshuffle", 0), ("shuffle", 1), ("bitshuffle", 2)])
def test_xa7_shuffles_may_be_words(word, number):
    compressor = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": word, "blocksize": 0}
    store = stored({**v2((2,), (2,), "|u1", 0), "compressor": compressor})
    assert zarrdask.open_array(store).metadata.codecs[-1].shuffle == number


# ---- X-C14

GZIP = named("gzip", level=1)


def edges(*lengths):
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": lengths}}


def regular(*lengths):
    return {"name": "regular", "configuration": {"chunk_shape": lengths}}


@for_each(
    ("shape", "chunks", "codecs", "expected"),
    [
        ((0,), (0,), [LITTLE], (1,)),
        ((0, 4), (0, 4), [LITTLE], (1, 4)),
        ((0, 4), (0, 4), [sharding((3, 2), [LITTLE])], (3, 4)),
        ((5,), (0,), [LITTLE], (1,)),
        ((5, 4), (0, 2), [BIG], (1, 2)),
    ],
)
def test_xc14_a_chunk_length_of_0_is_the_shortest_one(shape, chunks, codecs, expected):
    store = stored(v3(shape, chunks, "uint16", 9, codecs))
    z = opened(store, doubtful=0 not in shape, mode="r+")
    assert z.metadata.chunk_shape == expected
    assert (z[...] == 9).all()
    added = np.full((2, *shape[1:]), 3, "u2")
    assert z.append(added)[0] == shape[0] + 2
    assert document(store, "zarr.json")["chunk_grid"] == regular(*expected) | {
        "configuration": {"chunk_shape": list(expected)}
    }
    assert (zarrdask.open_array(store, strict=True)[-2:] == 3).all()


@for_each(
    ("members", "expected"),
    [
        ({"chunk_grid": regular(True, 4)}, (1, 4)),
        ({"chunk_grid": regular(2, 4), "codecs": [sharding((True, 2), [LITTLE])]}, (1, 2)),
        ({"chunk_grid": edges([True, True], 4)}, (1, 4)),
        ({"chunk_grid": edges([2.0], [[4.0, 1]])}, (2, 4)),
        ({"codecs": [LITTLE, named("gzip", level="1")]}, (2, 4)),
        (
            {"codecs": [sharding((1, 4), [LITTLE, named("zstd", level=3.0, checksum=False)])]},
            (1, 4),
        ),
    ],
)
def test_xc14_other_spellings_of_integers_are_read(members, expected):
    store = stored({**v3((2, 4), (2, 4), "uint16", 9), **members})
    z = opened(store, mode="r+")
    assert z.chunks == expected
    z[...] = 7
    assert (zarrdask.open_array(store, strict=True)[...] == 7).all()


@for_each("text", ["nan", "inf", "-inf"])
def test_xc14_other_spellings_of_infinity_and_nan_are_read(text):
    z = opened(stored(v3((2,), (2,), "float32", text)))
    np.testing.assert_array_equal(z[0], np.float32(text))


def write_element(store):
    zarrdask.open_array(store, mode="r+")[3, 0] = 7


def write_region(store):
    x = da.full((1, 4), 7, dtype="u2")
    zarrdask.to_zarr(x, store, region=(slice(3, 4), slice(0, 4)))


def erase(store):
    zarrdask.open_array(store, mode="r+").erase(slice(0, 1))


@for_each("write", [write_element, write_region, erase])
def test_xc14_a_regular_grid_of_lists_is_rectilinear_and_stored_so_before_a_chunk(write):
    store = stored(v3((6, 4), data_type="uint16", fill_value=9, chunk_grid=regular([1, 2, 3], 4)))
    assert opened(store, doubtful=True).chunks == ((1, 2, 3), (4,))
    with pytest.warns(ComplianceWarning):
        write(store)
    assert document(store, "zarr.json")["chunk_grid"]["name"] == "rectilinear"
    z = zarrdask.open_array(store, strict=True)
    assert z[3, 0] == (9 if write is erase else 7)


def test_xc14_consolidated_metadata_has_such_documents_too():
    store = {}
    group = zarrdask.create_group(store)
    group.create_array("a", shape=(0, 2), dtype="u1", chunks=(1, 2))
    invalid = {**document(store, "a/zarr.json"), "chunk_grid": regular(0, 2)}
    store["a/zarr.json"] = dump(invalid)
    zarrdask.consolidate_metadata(store)
    assert zarrdask.open_group(store, consolidated=True)["a"].chunks == (1, 2)
    assert zarrdask.verify(store, strict=True).ok is False
