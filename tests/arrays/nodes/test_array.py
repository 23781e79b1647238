"""Arrays: what they tell, reads and writes with NumPy's meaning, other shapes."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import selections
from tests.arrays.nodes.stores import Counting, counting, filled, keys
from tests.covering import covering, for_each
from tests.documents import dump, same, stored, v2, v3
from zarrdask import create_array, open_array
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    ReadOnlyError,
    SelectionError,
    StoreError,
    UnsupportedError,
)
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.memory import MemoryStore

FORMATS = [2, 3]


def test_attributes_of_a_v3_array(place):
    z = create_array(
        place,
        "group/a",
        shape=(7, 10),
        dtype="f4",
        chunks=(3, 4),
        fill_value=np.nan,
        dimension_names=["y", None],
        attributes={"unit": "K"},
    )
    for each in (z, open_array(place, "group/a")):
        assert each.shape == (7, 10)
        assert each.dtype == np.float32
        assert (each.ndim, each.size, each.nbytes) == (2, 70, 280)
        assert (each.chunks, each.shards) == ((3, 4), None)
        assert np.isnan(each.fill_value)
        assert each.dimension_names == ("y", None)
        assert each.attrs == {"unit": "K"}
        assert each.zarr_format == 3
        assert each.metadata == z.metadata
        assert (each.nchunks, each.nchunks_stored()) == (9, 0)
        assert (each.path, each.name) == ("group/a", "a")
        assert len(each) == 7
        assert "(7, 10) float32" in repr(each)
        assert "group/a" in repr(each)


def test_attributes_of_a_v2_array(place):
    z = create_array(
        place,
        shape=(7, 10),
        dtype=">f4",
        chunks=(3, 4),
        order="F",
        fill_value=1.5,
        dimension_names=["y", "x"],
        attributes={"unit": "K"},
        zarr_format=2,
    )
    for each in (z, open_array(place)):
        assert each.dtype.str == ">f4"
        assert (each.chunks, each.shards) == ((3, 4), None)
        assert each.fill_value == 1.5
        assert each.dimension_names == ("y", "x")
        assert each.attrs["unit"] == "K"
        assert each.zarr_format == 2


def test_chunks_of_a_sharded_array_are_the_inner_ones(place):
    z = create_array(place, shape=(20, 20), dtype="u1", chunks=(2, 5), shards=(4, 10))
    z[:3, :3] = 1
    for each in (z, open_array(place)):
        assert (each.chunks, each.shards) == ((2, 5), (4, 10))
        assert (each.nchunks, each.nchunks_stored()) == (40, 2)
        assert "shards=(4, 10)" in repr(each)


@pytest.mark.parametrize(
    ("options", "stored_first", "chunks"),
    [({}, 2, 9), ({"shards": (6, 8)}, 2, 9), ({"zarr_format": 2}, 2, 9)],
)
def test_stored_chunks_are_counted(options, stored_first, chunks):
    z = create_array({}, shape=(7, 10), dtype="i4", chunks=(3, 4), **options)
    z[0, 3:6] = 1
    assert (z.nchunks_stored(), z.nchunks) == (stored_first, chunks)


def test_other_keys_are_not_counted_as_chunks():
    z, _ = filled((4,), (2,))
    for key in ("c/9", "c/x", "c/0.partial", "other", "c/0/0"):
        z.store.set(key, b"1")
    assert z.nchunks_stored() == 2


def test_an_array_without_axes_has_no_length():
    with pytest.raises(TypeError):
        len(create_array({}, shape=(), dtype="i4"))


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_an_array_pickles(tmp_path, zarr_format):
    z = create_array(tmp_path, shape=4, dtype="i4", chunks=2, zarr_format=zarr_format)
    z[...] = 5
    again = pickle.loads(pickle.dumps(z))
    assert (again.shape, again.metadata, again.mode) == (z.shape, z.metadata, z.mode)
    assert again[...].tolist() == [5] * 4


def test_an_array_is_iterated_by_rows():
    z, values = filled((3, 2), (2, 2))
    assert [row.tolist() for row in z] == values.tolist()


@for_each("zarr_format", FORMATS)
@for_each("shape", [(), (5,), (0,), (3, 0), (7, 10), (2, 3, 4)])
def test_numpy_takes_an_array(shape, zarr_format):
    z, values = filled(shape, chunks=3, zarr_format=zarr_format)
    same(np.asarray(z), values)
    same(np.array(z, dtype="f8"), values.astype("f8"))
    same(np.asarray(z, dtype=z.dtype), values)
    assert np.add(z, 1).tolist() == (values + 1).tolist()


def test_numpy_cannot_have_a_stored_array_without_a_copy():
    z, _ = filled()
    with pytest.raises(ValueError, match="copy"):
        np.array(z, copy=False)


def test_what_is_read_is_the_readers_own():
    z, values = filled()
    for found in (z[...], z[0:3, 0:4], z[::2], z.oindex[[0]], z.blocks[0]):
        found[...] = -1
    same(z[...], values)


@given(selections.stored_arrays(), st.data())
def test_basic_reads_are_numpys(case, data):
    z, expected = case
    index = data.draw(selections.basic(z.shape))
    found = z[index]
    same(found, expected[index])
    assert np.isscalar(found) == np.isscalar(expected[index])


@given(selections.stored_arrays(), st.data())
def test_basic_writes_are_numpys(case, data):
    z, expected = case
    index = data.draw(selections.basic(z.shape))
    result = expected[index].shape
    # A value that is broadcast along some axes.
    shape = tuple(1 if data.draw(st.booleans()) else n for n in result)
    shape = shape[data.draw(st.integers(0, len(shape))) :] if 0 not in shape else shape
    value = (np.arange(math.prod(shape)).reshape(shape) + 50) % 200
    z[index] = value
    expected[index] = value
    same(z[...], expected)


def test_an_append_that_fails_leaves_nothing_behind(monkeypatch):
    z = create_array({}, shape=2, chunks=1, dtype="i4")
    z[...] = 1
    keys, store = sorted(z.store.list()), MemoryStore.set

    def fail(self, key, value):
        if key == "c/4":
            raise StoreError("the disk is full", key=key)
        store(self, key, value)

    monkeypatch.setattr(MemoryStore, "set", fail)
    with pytest.raises(StoreError, match="the disk is full"):
        z.append([2, 3, 4])
    assert (z.shape, sorted(z.store.list())) == ((2,), keys)


@given(selections.stored_arrays(min_dims=1), st.integers(0, 2), st.integers(0, 40), st.booleans())
def test_an_index_outside_is_an_index_error_and_writes_nothing(case, axis, beyond, below):
    z, expected = case
    axis %= z.ndim
    at = -z.shape[axis] - 1 - beyond if below else z.shape[axis] + beyond
    index = (slice(None),) * axis + (at,)
    lists = (slice(None),) * axis + ([at],)
    for act in (
        lambda: z[index],
        lambda: z.__setitem__(index, 1),
        lambda: z.oindex[lists],
        lambda: z.oindex.__setitem__(lists, 1),
        lambda: z.vindex[tuple([at] if n == axis else [0] for n in range(z.ndim))],
        lambda: z.blocks[index],
    ):
        with pytest.raises(IndexError):
            act()
    same(z[...], expected)


@given(selections.stored_arrays(), st.data())
def test_a_slice_that_reaches_outside_is_cut_off(case, data):
    z, expected = case
    index = tuple(
        slice(
            data.draw(st.none() | st.integers(-30, 30)),
            data.draw(st.none() | st.integers(-30, 30)),
            data.draw(st.sampled_from([None, 1, 2, 5, 100, -1, -3, -100])),
        )
        for _ in z.shape
    )
    same(z[index], expected[index])


@for_each("index", [1.5, "1", (0, 1.5), [0.5], (0, 0, 0), (..., ...), [True, False]])
def test_what_numpy_refuses_is_an_index_error(index):
    z, values = filled()
    if index != "1":
        with pytest.raises(IndexError):
            values[index]
        with pytest.raises(IndexError):
            z[index]
        with pytest.raises(IndexError):
            z[index] = 1


@for_each("value", [np.zeros(3), np.zeros((7, 9)), np.zeros((2, 7, 10)), [1, 2]])
def test_a_value_of_another_shape_is_an_error_and_writes_nothing(value):
    z, values = filled()
    for act in (
        lambda: z.__setitem__(..., value),
        lambda: z.oindex.__setitem__((slice(None), slice(None)), value),
        lambda: z.blocks.__setitem__((slice(None), slice(None)), value),
    ):
        with pytest.raises(SelectionError) as caught:
            act()
        assert caught.value.found == np.shape(value)
    same(z[...], values)


def test_a_value_may_have_leading_axes_of_one_as_in_numpy():
    z, values = filled()
    z[0] = values[0] = np.ones((1, 1, 10))
    same(z[...], values)


@pytest.mark.parametrize("value", [300, -1])
def test_an_integer_that_the_type_cannot_hold_is_an_error_as_in_numpy(value):
    z, values = filled(dtype="u1")
    with pytest.raises(OverflowError):
        values[0] = value
    with pytest.raises((OverflowError, ValueError)):
        z[0] = value
    same(z[...], filled(dtype="u1")[1])


def test_values_of_another_type_are_converted_as_by_numpy():
    z, values = filled(dtype="f4")
    z[0] = values[0] = np.arange(10, dtype="i8")
    z[1] = values[1] = True
    z[2] = values[2] = [1.5] * 10
    same(z[...], values)


def test_values_of_another_byte_order_are_values():
    z, values = filled()
    z[...] = values.astype(">i4")
    same(z[...], values)


@for_each("options", [{}, {"shards": (6, 8)}, {"zarr_format": 2}])
@for_each("fill", [0, 7])
def test_chunks_of_the_fill_value_are_not_stored_and_erased(options, fill):
    z = create_array({}, shape=(7, 10), dtype="i4", chunks=(3, 4), fill_value=fill, **options)
    z[...] = fill
    assert keys(z) == []
    z[...] = 1
    assert z.nchunks_stored() >= z.nchunks
    z[:, 4:] = fill
    assert z.nchunks_stored() == 3
    z[:6] = fill
    z[6:] = fill
    assert keys(z) == []
    assert (z[...] == fill).all()


@for_each(
    ("dtype", "fill"),
    [
        ("f4", math.nan),
        ("f8", -0.0),
        ("c8", 1j),
        (">i4", 5),
        (">f8", 1.5),
        ("S4", b"ab"),
        ("U3", "a"),
        ("M8[s]", np.datetime64("NaT", "s")),
        ("V2", b"ab"),
        (object, "none"),
    ],
)
def test_fill_values_of_every_kind_are_recognised(dtype, fill):
    z = create_array({}, shape=4, dtype=dtype, chunks=2, fill_value=fill, zarr_format=2)
    z[...] = z[...]
    assert keys(z) == []


def test_negative_zero_is_not_the_fill_value_zero():
    z = create_array({}, shape=2, dtype="f8", chunks=2)
    z[...] = -0.0
    assert keys(z) == ["c/0"]
    assert np.signbit(z[...]).all()


@pytest.mark.parametrize("options", [{}, {"shards": (6, 8)}, {"zarr_format": 2}])
def test_chunks_of_the_fill_value_are_stored_where_that_is_set(options, setting):
    setting({"zarrdask.write-empty-chunks": True})
    z = create_array({}, shape=(7, 10), dtype="i4", chunks=(3, 4), **options)
    z[...] = 0
    assert len(keys(z)) == math.prod(z.metadata.grid.counts)
    z[0, 0] = 1
    z[0, 0] = 0
    assert len(keys(z)) == math.prod(z.metadata.grid.counts)


def test_a_write_touches_only_the_chunks_it_meets():
    z, _ = filled()
    before = {key: z.store.get(key) for key in keys(z)}
    z[3, 4] = -1
    assert [key for key in keys(z) if z.store.get(key) != before[key]] == ["c/1/1"]


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_edge_chunks_are_stored_full_and_filled_up(zarr_format):
    z = create_array(
        {}, shape=3, dtype="u1", chunks=2, fill_value=9, compressors=[], zarr_format=zarr_format
    )
    z[...] = 1
    assert [z.store.get(key) for key in keys(z)] == [b"\1\1", b"\1\x09"]


def test_a_partial_write_in_a_shard_keeps_the_other_inner_chunks_bytes():
    z = create_array({}, shape=(8,), dtype="u2", chunks=(2,), shards=(8,), compressors="gzip")
    z[...] = np.arange(1, 9)
    shard = z.metadata.shard
    # Chunks that our encoder would never write: they'd not survive being decoded and encoded.
    odd = {place: bytes(data) for place, data in shard.split(z.store.get("c/0")).items()}
    odd = {place: data[:4] + b"\1\2\3\4" + data[8:] for place, data in odd.items()}
    z.store.set("c/0", shard.assemble(odd))
    z[3] = 99
    kept = shard.split(z.store.get("c/0"))
    assert {p for p in odd if bytes(kept[p]) == odd[p]} == {(0,), (2,), (3,)}
    assert z[...].tolist() == [1, 2, 3, 99, 5, 6, 7, 8]


@for_each(
    ("index", "expected"),
    [
        ((0, 0), ["c/0/0"]),
        ((slice(2, 4), slice(4, 8)), ["c/0/1", "c/1/1"]),
        ((slice(None, None, 3), 0), ["c/0/0", "c/1/0", "c/2/0"]),
        ((slice(None, None, 6), 9), ["c/0/2", "c/2/2"]),
        ((slice(3, 3), 0), []),
        ((slice(5, 2, -1), -1), ["c/0/2", "c/1/2"][1:]),
    ],
)
def test_a_read_asks_for_the_chunks_it_meets_once(index, expected):
    z, values = filled()
    watched, store = counting(z)
    same(watched[index], values[index])
    assert sorted(store.gets) == expected


def test_a_part_of_a_shard_asks_for_its_index_and_the_inner_chunks():
    z, values = filled((8, 8), (2, 2), "u2", shards=(8, 8), compressors=[])
    watched, store = counting(z)
    same(watched[5:7, 7], values[5:7, 7])
    asked = [part for part in store.parts if part[1] >= 0]
    assert [length for _, _, length in asked] == [8, 8]
    assert len(store.parts) == 3
    assert store.gets == []


def test_a_whole_unit_is_written_without_being_read():
    z, _ = filled()
    watched, store = counting(z)
    watched[3:6, 4:8] = 5
    assert sorted(store.sets) == ["c/1/1"]
    assert store.gets == []
    assert store.parts == []


def test_a_unit_that_goes_on_beyond_the_array_is_read_once():
    z, _ = filled()
    watched, store = counting(z)
    watched[3:, 4:] = 5
    assert sorted(store.sets) == ["c/1/1", "c/1/2", "c/2/1", "c/2/2"]
    assert sorted(store.gets) == ["c/1/2", "c/2/1", "c/2/2"]
    assert store.parts == []


def test_threads_give_the_same_as_none(setting):
    z, values = filled((40, 40), (3, 4))
    for threads in (1, 2, 5):
        setting({"zarrdask.threads": threads})
        same(z[...], values)
        z[1:, 1:] = values[1:, 1:] + 1
        same(z[1:, 1:], values[1:, 1:] + 1)
        z[...] = values


LAYOUTS = [
    {"chunks": (3, 4)},
    {"chunks": (3, 4), "shards": (6, 8)},
    {"chunks": (3, 4), "zarr_format": 2},
    {"chunks": (3, 4), "zarr_format": 2, "order": "F", "separator": "/"},
    {"chunks": (1, 2), "shards": (3, 4), "order": "F"},
]


@covering(options=LAYOUTS, axis=[0, 1, -1], count=[0, 1, 5, 20])
def test_appending_along_any_axis(options, axis, count):
    z, values = filled(fill_value=-1, **options)
    shape = list(values.shape)
    shape[axis] = count
    more = np.arange(math.prod(shape)).reshape(shape) + 1000
    expected = np.concatenate([values, more], axis).astype("i4")
    assert z.append(more, axis=axis) == expected.shape
    same(z[...], expected)
    same(open_array(z.store)[...], expected)


def test_appending_to_an_empty_array():
    z = create_array({}, shape=(0, 3), dtype="i4", chunks=2)
    z.append([[1, 2, 3]])
    z.append([[4, 5, 6], [7, 8, 9]])
    assert z[...].tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


@for_each("values", [np.zeros(10), np.zeros((1, 9)), np.zeros((1, 1, 10)), 5])
def test_appending_what_does_not_fit_is_an_error_and_changes_nothing(values):
    z, expected = filled()
    with pytest.raises(IndexError):
        z.append(values)
    same(open_array(z.store)[...], expected)


@pytest.mark.parametrize("axis", [2, -3])
def test_appending_along_an_axis_that_is_not_there_is_an_error(axis):
    z, _ = filled()
    with pytest.raises(IndexError):
        z.append(np.zeros((7, 10)), axis=axis)


@pytest.mark.parametrize("options", [{}, {"zarr_format": 2}, {"shards": ()}])
def test_0d_arrays(place, options):
    z = create_array(place, shape=(), dtype="f8", fill_value=2.5, **options)
    assert z[()] == 2.5
    assert np.isscalar(z[()])
    z[()] = 7
    z = open_array(place, mode="r+")
    assert (z[()], z[...].shape, float(np.asarray(z))) == (7, (), 7)
    assert isinstance(z[...], np.ndarray)
    assert (z.size, z.nchunks, z.nchunks_stored(), z.nbytes) == (1, 1, 1, 8)
    assert z[None].tolist() == [7]
    z[...] = 8
    assert z[()] == 8
    z[()] = 2.5
    assert z.nchunks_stored() == 0


@pytest.mark.parametrize("options", [{}, {"zarr_format": 2}, {"shards": 4}])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0)])
def test_zero_length_arrays(place, shape, options):
    z = create_array(place, shape=shape, dtype="i4", chunks=2, **options)
    z[...] = 5
    z = open_array(place)
    assert (z.shape, z.size, z.nbytes, z.nchunks, z.nchunks_stored()) == (shape, 0, 0, 0, 0)
    same(z[...], np.zeros(shape, "i4"))
    same(z[::-1], np.zeros(shape, "i4"))
    assert z.oindex[tuple([] for _ in shape)].size == 0


def test_a_v2_array_without_elements_may_have_chunks_without_elements():
    z = open_array(stored(v2((0, 3), (0, 3))))
    assert z[...].shape == (0, 3)
    assert (z.nchunks, z.nchunks_stored()) == (0, 0)


@for_each("zarr_format", FORMATS)
@for_each("dtype", ["b1", "i1", "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "V5"])
def test_elements_of_every_core_type_survive(dtype, zarr_format):
    values = np.frombuffer(np.random.default_rng(3).bytes(24 * 16), "u1")
    values = (values % 2 if dtype == "b1" else values).view(dtype if dtype != "V5" else "u1")[:24]
    values = np.frombuffer(np.random.default_rng(3).bytes(120), "V5") if dtype == "V5" else values
    z = create_array({}, shape=24, dtype=dtype, chunks=7, zarr_format=zarr_format)
    z[...] = values
    assert open_array(z.store)[...].tobytes() == values.tobytes()


@for_each(
    ("dtype", "values"),
    [
        ("S5", [b"", b"a", b"abcde", b"x"]),
        ("U3", ["", "a", "äöü", "日"]),
        ("M8[ns]", ["NaT", "2020-01-01", "1969-12-31T23:59:59.5", "2020-01-01"]),
        ("m8[D]", [1, -1, "NaT", 0]),
        (">i4", [1, -2, 3, 4]),
        ("i4,f8,S2", [(1, 2.5, b"a"), (2, 3.5, b"bc"), (0, 0, b""), (-1, math.inf, b"z")]),
        ([("a", ">i2", (2,)), ("b", [("c", "U1")])], [([1, 2], ("x",))] * 4),
        (object, ["", "a", "äöü" * 50, "日"]),
    ],
)
@for_each("order", "CF")
def test_elements_of_v2s_other_types_survive(dtype, values, order):
    expected = np.array(values, dtype).reshape(2, 2)
    z = create_array({}, shape=(3, 2), dtype=dtype, chunks=2, order=order, zarr_format=2)
    z[:2] = expected
    z = open_array(z.store, mode="r+")
    same(z[:2], expected)
    same(z[1::-1, ::-1], expected[::-1, ::-1])
    z[2] = expected[0]
    same(z[2], expected[0])
    same(z.oindex[[0, 2], [1]], expected[[0, 0]][:, [1]])
    same(z.vindex[[1, 2], [0, 1]], expected[[1, 0], [0, 1]])


def test_v3_refuses_types_that_it_lacks_with_advice():
    with pytest.raises(UnsupportedError, match="zarr_format=2"):
        create_array({}, shape=3, dtype=[("several", "i4", (2,))])


def test_fields_are_read_by_name():
    z = create_array({}, shape=3, dtype=[("a", "i4"), ("b", "f8")], zarr_format=2)
    z[1] = (5, 2.5)
    assert z["a"].tolist() == [0, 5, 0]
    assert z[1]["b"] == 2.5


def test_absent_chunks_of_objects_read_as_the_fill_value_however_they_are_selected():
    z = create_array({}, shape=(4, 4), dtype=object, chunks=2, fill_value="none", zarr_format=2)
    z[0, 0] = "x"
    expected = np.full((4, 4), "none", object)
    expected[0, 0] = "x"
    same(z[...], expected)
    same(z[::2, ::-1], expected[::2, ::-1])
    same(z.oindex[[0, 3], [1, 2]], expected[np.ix_([0, 3], [1, 2])])
    same(z.vindex[[0, 3], [0, 2]], expected[[0, 3], [0, 2]])


def test_objects_may_be_lists_of_one_length():
    z = create_array({}, shape=2, dtype=object, chunks=2, filters={"id": "json2"}, zarr_format=2)
    values = np.empty(2, object)
    values[:] = [[1, 2], [3, 4]]
    z[...] = values
    assert z[...].tolist() == [[1, 2], [3, 4]]
    z[0] = {"a": None}
    assert z[0] == {"a": None}


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_attributes_are_stored_at_once_and_the_rest_stays(place, zarr_format):
    z = create_array(place, shape=3, dtype="i4", dimension_names=["x"], zarr_format=zarr_format)
    z[...] = 1
    z.attrs["a"] = [1, None]
    z.attrs.update(b="た")
    again = open_array(place)
    assert again.attrs["a"] == [1, None]
    assert again.attrs["b"] == "た"
    assert again.dimension_names == ("x",)
    assert again[...].tolist() == [1, 1, 1]
    del z.attrs["a"]
    assert "a" not in open_array(place).attrs


def test_attributes_that_are_no_json_are_an_error_and_change_nothing(place):
    z = create_array(place, shape=3, dtype="i4", attributes={"a": 1})
    with pytest.raises(MetadataError):
        z.attrs["b"] = {1, 2}
    assert z.attrs.asdict() == open_array(place).attrs.asdict() == {"a": 1}


def test_members_that_need_not_be_understood_survive_a_resize():
    z = open_array(stored(v3(novelty={"must_understand": False})), mode="r+")
    z.resize(9)
    assert open_array(z.store).metadata.extra == {"novelty": {"must_understand": False}}


def test_opening_for_reading_is_the_default(place):
    create_array(place, shape=3, dtype="i4")
    assert open_array(place).mode == "r"


@for_each(
    "act",
    [
        lambda z: z.__setitem__(..., 1),
        lambda z: z.__setitem__(0, 1),
        lambda z: z.__setitem__(slice(0, 0), 1),
        lambda z: z.oindex.__setitem__([0], 1),
        lambda z: z.vindex.__setitem__([0], 1),
        lambda z: z.blocks.__setitem__(0, 1),
        lambda z: z.__setitem__(np.array([True, False, False]), 1),
        lambda z: z.resize(5),
        lambda z: z.append([1]),
        lambda z: z.attrs.update(a=1),
        lambda z: z.attrs.__delitem__("unit"),
        lambda z: z.attrs.put({}),
    ],
)
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_an_array_opened_for_reading_cannot_be_changed(place, zarr_format, act):
    options = {"attributes": {"unit": "K"}, "zarr_format": zarr_format, "overwrite": True}
    z = create_array(place, shape=3, dtype="i4", **options)
    z[...] = 7
    before = {key: z.store.get(key) for key in z.store.list_prefix("")}
    with pytest.raises(ReadOnlyError, match=r"r\+") as caught:
        act(open_array(place))
    assert isinstance(caught.value, PermissionError)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), ReadOnlyError)
    assert {key: z.store.get(key) for key in z.store.list_prefix("")} == before


def test_opening_what_is_not_there_is_an_error(place):
    with pytest.raises(NodeNotFoundError):
        open_array(place)
    with pytest.raises(NodeNotFoundError, match="not/there"):
        open_array(place, "not/there", mode="r+")


def test_an_array_is_opened_as_itself():
    z, _ = filled()
    assert open_array(z) is z


def test_creating_over_something_is_an_error_unless_it_may_be_replaced(place):
    create_array(place, "a", shape=4, dtype="i4", chunks=2)[...] = 1
    with pytest.raises(NodeExistsError):
        create_array(place, "a", shape=2, dtype="f8")
    z = create_array(place, "a", shape=2, dtype="f8", overwrite=True)
    assert z[...].tolist() == [0, 0]
    assert z.nchunks_stored() == 0


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_what_is_created_is_written_in_its_format(zarr_format):
    store = {}
    create_array(store, "a", shape=4, dtype="i4", attributes={"x": 1}, zarr_format=zarr_format)
    expected = {2: {".zgroup", "a/.zarray", "a/.zattrs"}, 3: {"zarr.json", "a/zarr.json"}}
    assert set(store) == expected[zarr_format]


@for_each(
    ("document", "error"),
    [
        ({**v3(), "codecs": [{"name": "gzip"}, {"name": "bytes"}]}, MetadataError),
        ({**v3(), "codecs": ["bytes", "lzw"]}, UnsupportedError),
        ({**v2(), "compressor": {"id": "lzw"}}, UnsupportedError),
        ({**v2(), "filters": [{"id": "pickle"}]}, UnsupportedError),
    ],
)
def test_what_cannot_be_decoded_fails_when_it_is_opened(document, error):
    with pytest.raises(error):
        open_array(stored(document))


def test_opening_reads_documents_only():
    store = Counting(stored(v3(), {"c/0": b"1234"}))
    open_array(store)
    assert set(store.gets) == {"zarr.json", ".zarray", ".zgroup", ".zattrs"}
    assert store.parts == []


def test_a_group_is_not_an_array():
    with pytest.raises(NodeTypeError, match="component"):
        open_array({"zarr.json": dump({"zarr_format": 3, "node_type": "group"})})


def test_a_scratch_buffer_is_not_what_readers_get(tmp_path):
    z = create_array(tmp_path, shape=6, dtype="u1", chunks=2, compressors=[])
    z[...] = np.arange(6)
    held = [z[n : n + 2] for n in (0, 2, 4)]
    list(z.store.get_many(["c/0"], Scratch()))
    assert [h.tolist() for h in held] == [[0, 1], [2, 3], [4, 5]]


def test_setting_everything_takes_no_memory_for_what_is_not_there(monkeypatch):
    def write_region(chunks, request, values, **options):
        shapes.append(values.shape)

    monkeypatch.setattr("zarrdask.arrays.nodes.array.write_region", write_region)
    z, shapes = create_array({}, shape=(10**7, 10**7), dtype="u1", chunks=100), []
    z[...] = 0
    assert shapes == [z.shape]


@for_each("index", ["x", 1.5, (True, 0), {}, "a"])
def test_what_is_no_index_is_an_error_and_reads_nothing(index):
    z = create_array({}, shape=(4, 4), dtype="i4")
    with pytest.raises(SelectionError):
        z[index]


@for_each("value", [None, 1j, "text", [1, [2]]])
def test_what_is_no_value_is_an_error(value):
    z, values = filled()
    with pytest.raises(SelectionError):
        z[0] = value
    same(z[...], values)


def test_arrays_in_an_array():
    z = create_array(
        {},
        shape=3,
        chunks=2,
        dtype=object,
        zarr_format=2,
        filters={"id": "vlen-array", "dtype": "<i4"},
    )
    z[0] = np.array([5, 6, 7])
    z[2] = np.array([1])
    assert [item.tolist() for item in z[...]] == [[5, 6, 7], [], [1]]


def test_two_handles_of_one_array_do_not_undo_each_other():
    store = {}
    create_array(store, shape=(4, 2), dtype="i4", chunks=2)[...] = 1
    first, second = open_array(store, mode="r+"), open_array(store, mode="r+")
    first.append(np.full((2, 2), 2))
    second.attrs["units"] = "K"
    assert open_array(store).shape == (6, 2)
    second.append(np.full((2, 2), 3))
    found = open_array(store)
    assert found.shape == (8, 2)
    assert found[:, 0].tolist() == [1, 1, 1, 1, 2, 2, 3, 3]
    assert found.attrs.asdict() == {"units": "K"}


def test_what_an_attribute_holds_is_a_copy():
    z = create_array({}, shape=1, dtype="i4", attributes={"m": {"a": 1}})
    z.attrs["m"]["a"] = 2
    z.attrs.asdict()["m"]["a"] = 3
    assert z.attrs["m"] == {"a": 1}


def test_a_task_carries_the_store_as_it_is_when_the_task_is_made():
    class Session(MemoryStore):
        version = 1

        def __reduce__(self):
            return MemoryStore, ({"version": str(self.version).encode()},)

    store = Session()
    z = create_array(store, shape=2, dtype="i4")
    for version in (1, 2):
        store.version = version
        again = pickle.loads(pickle.dumps(chunks_of(z)))
        assert again.store.get("version") == str(version).encode()
