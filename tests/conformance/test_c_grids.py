"""C.4: chunk grids and chunk keys of v3."""

import json

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import LITTLE, rectilinear, same, sharding, stored, v3
from zarrdask.formats.grids.chunk_grid import parse_grid
from zarrdask.formats.grids.rectilinear import RectilinearGrid
from zarrdask.formats.grids.regular import RegularGrid


def regular(*chunk_shape, **others):
    configuration = {"chunk_shape": list(chunk_shape), **others}
    return {"name": "regular", "configuration": configuration}


def keys(store):
    return sorted(key for key in store if not key.endswith("zarr.json"))


def grid_of(store):
    return json.loads(store["zarr.json"])["chunk_grid"]


# ---- C-36


def test_c36_the_regular_grid_has_the_chunks_that_meet_the_array():
    grid = parse_grid(regular(2, 3), (5, 6))
    assert grid == RegularGrid((5, 6), (2, 3))
    assert grid.counts == (3, 2)
    store = {}
    zarrdask.create_array(store, shape=(5, 6), dtype="u1", chunks=(2, 3))[...] = 1
    assert grid_of(store) == regular(2, 3)
    assert keys(store) == [f"c/{i}/{j}" for i in range(3) for j in range(2)]


def test_c36_chunks_at_the_edge_are_whole_and_filled_up():
    store = {}
    z = zarrdask.create_array(store, shape=3, dtype="u1", chunks=2, fill_value=9, compressors=[])
    z[...] = [1, 2, 3]
    assert bytes(store["c/1"]) == b"\3\x09"
    store["c/1"] = b"\3\xee"
    assert zarrdask.open_array(store)[...].tolist() == [1, 2, 3]


@for_each("chunk_shape", [[0, 3], [2, -3], [2], [2, 3, 1], [], [2, 3.0], [2, "3"]])
def test_c36_lengths_are_positive_and_one_for_each_dimension(chunk_shape):
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shape"):
        zarrdask.open(stored(v3((5, 6), chunk_shape)), strict=True)


@for_each("length", [0, 5])
@for_each("chunk", [0, -1])
def test_c84_a_chunk_length_of_0_is_an_error_also_for_an_empty_axis(length, chunk):
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shape"):
        zarrdask.open(stored(v3((length,), [chunk])), strict=True)
    rectilinear = {"kind": "inline", "chunk_shapes": [[[chunk, 1]]]}
    grid = {"name": "rectilinear", "configuration": rectilinear}
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shapes"):
        zarrdask.open(stored(v3((length,), chunk_grid=grid)))


@for_each("options", [{"chunks": 0}, {"chunks": 2, "shards": 0}])
@for_each("length", [0, 5])
def test_c84_an_array_with_such_chunks_is_not_created(options, length):
    values = {}
    with pytest.raises(zarrdask.errors.MetadataError):
        zarrdask.create_array(values, shape=length, dtype="u1", **options)
    assert values == {}


def test_c84_the_chunks_of_an_empty_axis_have_a_length():
    values = {}
    zarrdask.create_array(values, shape=(0, 5), dtype="u1")
    assert all(n > 0 for n in grid_of(values)["configuration"]["chunk_shape"])


def test_c36_a_chunk_may_be_larger_than_the_array():
    z = zarrdask.open_array(stored(v3((2,), (5,), "uint8"), {"c/0": b"\1\2\3\4\5"}))
    assert z[...].tolist() == [1, 2]


# ---- C-37, C-38


def encoded(name, shape, chunk_shape, **configuration):
    """Return the keys of all chunks under an encoding, which reading finds again."""
    encoding = {"name": name}
    if configuration:
        encoding["configuration"] = configuration
    document = v3(shape, chunk_shape, "uint8", chunk_key_encoding=encoding)
    store = stored(document)
    values = np.arange(1, np.prod(shape) + 1, dtype="u1").reshape(shape)
    zarrdask.open_array(store, mode="r+")[...] = values
    same(zarrdask.open_array(store)[...], values)
    return keys(store)


def test_c37_default_puts_c_before_the_indices():
    assert encoded("default", (2, 1, 2), (1, 1, 1), separator="/") == [
        "c/0/0/0",
        "c/0/0/1",
        "c/1/0/0",
        "c/1/0/1",
    ]
    assert encoded("default", (2, 2), (1, 2), separator=".") == ["c.0.0", "c.1.0"]
    assert encoded("default", (12,), (1,), separator="/")[-3:] == ["c/7", "c/8", "c/9"]


def test_c37_the_examples_of_the_text():
    grid = v3((2, 24, 46), (1, 1, 1), "uint8")
    for separator, key in (("/", "c/1/23/45"), (".", "c.1.23.45")):
        encoding = {"name": "default", "configuration": {"separator": separator}}
        z = zarrdask.open_array(stored(grid | {"chunk_key_encoding": encoding}, {key: b"\7"}))
        assert z[1, 23, 45] == 7
        assert z.nchunks_stored() == 1


def test_c37_the_chunk_of_an_array_without_dimensions_is_c():
    assert encoded("default", (), ()) == ["c"]
    assert encoded("default", (), (), separator=".") == ["c"]


def test_c37_the_separator_is_a_slash_if_none_is_given():
    assert encoded("default", (2,), (1,)) == ["c/0", "c/1"]
    document = v3((2,), (1,), "uint8", chunk_key_encoding="default")
    assert zarrdask.open_array(stored(document, {"c/1": b"\5"}))[1] == 5


def test_c38_v2_joins_the_indices():
    assert encoded("v2", (2, 2), (1, 1), separator=".") == ["0.0", "0.1", "1.0", "1.1"]
    assert encoded("v2", (2, 2), (1, 2), separator="/") == ["0/0", "1/0"]


def test_c38_the_chunk_of_an_array_without_dimensions_is_0():
    assert encoded("v2", (), ()) == ["0"]
    assert encoded("v2", (), (), separator="/") == ["0"]


def test_c38_the_separator_is_a_dot_if_none_is_given():
    assert encoded("v2", (2, 1), (1, 1)) == ["0.0", "1.0"]
    store = {}
    options = {"chunk_key_encoding": "v2"}
    zarrdask.create_array(store, shape=(2, 1), dtype="u1", chunks=1, **options)[...] = 1
    assert keys(store) == ["0.0", "1.0"]


# ---- C-39

EXAMPLE = [
    (4, (4, 4)),
    ([1, 2, 3], (1, 2, 3)),
    ([[4, 2]], (4, 4)),
    ([[1, 3], 3], (1, 1, 1, 3)),
    ([4, 4, 4], (4, 4)),
]


@for_each(("declared", "lengths"), EXAMPLE)
def test_c39_the_examples_of_the_text_expand_to_these_lengths(declared, lengths):
    configuration = {"kind": "inline", "chunk_shapes": [declared]}
    grid = parse_grid({"name": "rectilinear", "configuration": configuration}, (6,))
    assert tuple(grid.shape_of(index)[0] for index in grid.indices()) == lengths


def test_c39_the_example_of_the_text_as_an_array():
    shapes = [declared for declared, _ in EXAMPLE]
    configuration = {"kind": "inline", "chunk_shapes": shapes}
    grid = {"name": "rectilinear", "configuration": configuration}
    store = stored(v3((6,) * 5, data_type="uint8", chunk_grid=grid))
    values = (np.arange(6**5) % 251 + 1).astype("u1").reshape((6,) * 5)
    z = zarrdask.open_array(store, mode="r+")
    z[...] = values
    assert z.nchunks == z.nchunks_stored() == 2 * 3 * 2 * 4 * 2
    assert len(store["c/1/2/0/3/1"]) == 4 * 3 * 4 * 3 * 4
    same(zarrdask.open_array(store)[...], values)
    same(zarrdask.from_zarr(store, chunks="stored").compute(scheduler="sync"), values)


def test_c39_an_index_lies_in_the_first_chunk_whose_end_is_beyond_it():
    # The drawing of the text: rows 16 and 10, columns 24 and 14.
    grid = rectilinear([[16, 10], [24, 14]])
    chunks = {"c/0/0": 1, "c/0/1": 2, "c/1/0": 3, "c/1/1": 4}
    sizes = {"c/0/0": 16 * 24, "c/0/1": 16 * 14, "c/1/0": 10 * 24, "c/1/1": 10 * 14}
    values = {key: bytes([n]) * sizes[key] for key, n in chunks.items()}
    z = zarrdask.open_array(stored(v3((26, 38), data_type="uint8", chunk_grid=grid), values))
    assert z.chunks == ((16, 10), (24, 14))
    assert z[15, 23] == 1
    assert z[15, 24] == 2
    assert z[16, 23] == 3
    assert z[16, 24] == z[25, 37] == 4
    assert z.vindex[[0, 25, 16], [37, 0, 24]].tolist() == [2, 3, 4]


def test_c39_lengths_may_reach_beyond_the_array_by_several_chunks():
    grid = rectilinear([[2, 1, 5, 7, 7]])
    store = stored(v3((3,), data_type="uint8", chunk_grid=grid), {"c/0": b"\1\2", "c/1": b"\3"})
    z = zarrdask.open_array(store, mode="r+")
    assert z[...].tolist() == [1, 2, 3]
    assert z.nchunks == 2
    z.attrs["a"] = 1
    assert grid_of(store)["configuration"]["chunk_shapes"] == [[2, 1, 5, 7]]
    z.append(np.array([4, 5], "u1"))
    assert bytes(store["c/2"]) == b"\4\5\0\0\0"


def test_c39_lengths_that_do_not_reach_the_end_are_an_error():
    for lengths in ([2, 3], [[2, 2], 1], []):
        with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shapes"):
            zarrdask.open(stored(v3((6,), chunk_grid=rectilinear([lengths]))))


@for_each(
    "lengths", [[[0, 3], 6], [6, 0], [[6, 0]], [-1, 7], [[6, -1]], [[6, 1, 1]], [[6]], [6.0], ["6"]]
)
def test_c39_every_length_and_every_count_is_positive(lengths):
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shapes"):
        zarrdask.open(stored(v3((6,), chunk_grid=rectilinear([lengths]))), strict=True)


@pytest.mark.parametrize("lengths", [[[6]], [[6], [6], [6]], []])
def test_c39_there_are_lengths_for_each_dimension(lengths):
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shapes"):
        zarrdask.open(stored(v3((6, 6), chunk_grid=rectilinear(lengths))))


def test_c39_another_kind_is_an_error():
    grid = rectilinear([[6]])
    grid["configuration"]["kind"] = "reference"
    with pytest.raises(zarrdask.errors.UnsupportedError) as caught:
        zarrdask.open(stored(v3((6,), chunk_grid=grid)))
    assert caught.value.found == "reference"
    del grid["configuration"]["kind"]
    with pytest.raises(zarrdask.errors.MetadataError, match="expected kind"):
        zarrdask.open(stored(v3((6,), chunk_grid=grid)))


def test_c39_counts_of_any_size_are_no_danger():
    endless = [[[2, 10**12]], [1, [5, 10**12]], [[1, 10**15], [1, 10**15]]]
    for lengths in endless:
        z = zarrdask.open_array(stored(v3((6,), chunk_grid=rectilinear([lengths]))))
        assert z[...].tolist() == [0] * 6
    with pytest.raises(zarrdask.errors.UnsupportedError, match="too many"):
        zarrdask.open(stored(v3((6,), chunk_grid=rectilinear([[[1, 10**12], 2]]))))


def test_c39_it_is_written_as_the_text_has_it():
    store = {}
    x = da.ones((12, 6), chunks=((1, 2, 2, 2, 2, 3), (2, 2, 2)))
    zarrdask.to_zarr(x, store, grid="rectilinear")
    assert grid_of(store) == {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[1, [2, 4], 3], 2]},
    }
    assert zarrdask.open_array(store).metadata.grid == RectilinearGrid(
        (12, 6), ((1, 2, 2, 2, 2, 3), 2)
    )


# ---- C-40


@for_each("separator", ["", "-", "//", None, 1, "./"])
@for_each("name", ["default", "v2"])
def test_c40_another_separator_is_an_error(name, separator):
    encoding = {"name": name, "configuration": {"separator": separator}}
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_key_encoding"):
        zarrdask.open(stored(v3(chunk_key_encoding=encoding)))


@pytest.mark.parametrize("name", ["default", "v2"])
def test_c40_another_member_is_an_error(name):
    encoding = {"name": name, "configuration": {"separator": "/", "suffix": "x"}}
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_key_encoding"):
        zarrdask.open(stored(v3(chunk_key_encoding=encoding)))
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_grid"):
        zarrdask.open(stored(v3((4,), chunk_grid=regular(2, order="C"))))


@pytest.mark.parametrize("size", [0, -1, -(2**31)])
def test_c40_sizes_that_are_not_positive_are_an_error(size):
    for grid in (regular(size), rectilinear([[size]]), rectilinear([[4, size]])):
        with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shape"):
            zarrdask.open(stored(v3((4,), chunk_grid=grid)), strict=True)
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shape"):
        zarrdask.open(stored(v3((4,), codecs=[sharding([size])])))


def test_c40_another_number_of_lengths_is_an_error():
    for grid in (regular(2, 2), regular(), rectilinear([[4], [4]]), rectilinear([])):
        with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shape"):
            zarrdask.open(stored(v3((4,), chunk_grid=grid)))


def test_c40_a_grid_or_an_encoding_that_is_unknown_is_an_error():
    for member in ("chunk_grid", "chunk_key_encoding"):
        with pytest.raises(zarrdask.errors.UnsupportedError) as caught:
            zarrdask.open(stored(v3(**{member: {"name": "hexagonal"}})))
        assert caught.value.found == "hexagonal"


# ---- C-41


def test_c41_chunks_have_their_own_shapes_and_the_last_one_its_declared_length():
    store = {}
    z = zarrdask.create_array(
        store, shape=(3, 5), dtype="u1", chunks=((2, 1), (1, 3, 4)), fill_value=9, compressors=[]
    )
    z[...] = np.arange(15).reshape(3, 5)
    assert {key: bytes(store[key]) for key in keys(store)} == {
        "c/0/0": bytes([0, 5]),
        "c/0/1": bytes([1, 2, 3, 6, 7, 8]),
        "c/0/2": bytes([4, 9, 9, 9, 9, 9, 9, 9]),
        "c/1/0": bytes([10]),
        "c/1/1": bytes([11, 12, 13]),
        "c/1/2": bytes([14, 9, 9, 9]),
    }


def test_c41_what_is_stored_outside_the_array_never_shows():
    grid = rectilinear([[2, 3]])
    document = v3((3,), data_type="uint8", chunk_grid=grid)
    z = zarrdask.open_array(stored(document, {"c/0": b"\1\2", "c/1": b"\3\xee\xee"}))
    assert z[...].tolist() == [1, 2, 3]
    assert z.blocks[1].tolist() == [3]


@pytest.mark.parametrize("data", [b"\1\2\3", b"\1"])
def test_c41_a_chunk_of_another_size_is_an_error(data):
    document = v3((5,), data_type="uint8", chunk_grid=rectilinear([[2, 3]]))
    with pytest.raises(zarrdask.errors.CodecError, match="c/0"):
        zarrdask.open_array(stored(document, {"c/0": data}))[...]


def test_c41_codecs_work_on_each_chunks_own_shape():
    transpose = {"name": "transpose", "configuration": {"order": [1, 0]}}
    document = v3(
        (2, 3), data_type="uint8", codecs=[transpose, LITTLE], chunk_grid=rectilinear([[2], [1, 2]])
    )
    store = stored(document)
    zarrdask.open_array(store, mode="r+")[...] = [[1, 2, 3], [4, 5, 6]]
    assert bytes(store["c/0/0"]) == bytes([1, 4])
    assert bytes(store["c/0/1"]) == bytes([2, 5, 3, 6])


def test_c41_shards_have_their_own_shapes_and_hold_chunks_of_one():
    values = np.arange(1, 13, dtype="u1")
    codecs = [sharding([2], index_codecs=[LITTLE])]
    document = v3((12,), data_type="uint8", codecs=codecs, chunk_grid=rectilinear([[2, 6, 4]]))
    store = stored(document)
    z = zarrdask.open_array(store, mode="r+")
    z[...] = values
    assert [len(store[f"c/{i}"]) for i in range(3)] == [2 + 16, 6 + 3 * 16, 4 + 2 * 16]
    assert z.chunks == (2,)
    same(zarrdask.open_array(store)[...], values)
    document["chunk_grid"] = rectilinear([[2, 5, 5]])
    with pytest.raises(zarrdask.errors.MetadataError, match="divide"):
        zarrdask.open(stored(document))
