"""Many stored arrays as one."""

import json
import pickle

import dask
import numpy as np
import pytest

import zarrdask
from tests.arrays.nodes.concatenations.random_cases import random_case, random_index
from tests.covering import seeds
from zarrdask.errors import (
    CodecError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    UnsupportedError,
)

#: The cases of each run, and those of the slow tests.
FEW, MANY, STEP = 50, 1000, 100


def check_reads(seed):
    case, rng = random_case(seed), np.random.default_rng(seed)
    array, values = case.array, case.values
    assert array.shape == values.shape
    assert array.dtype.newbyteorder("=") == values.dtype.newbyteorder("=")
    np.testing.assert_array_equal(array[...], values)
    for _ in range(3):
        index = random_index(rng, values.shape)
        np.testing.assert_array_equal(array[index], values[index])
    if values.size:
        points = tuple(rng.integers(0, n, 5) for n in values.shape)
        np.testing.assert_array_equal(array.vindex[points], values[points])
        outer = tuple(rng.integers(0, n, 3) for n in values.shape)
        np.testing.assert_array_equal(array.oindex[outer], values[np.ix_(*outer)])
        first, both = array.read_many([0, slice(0, 2)])
        np.testing.assert_array_equal(first, values[0])
        np.testing.assert_array_equal(both, values[:2])


def check_writes(seed):
    case, rng = random_case(seed), np.random.default_rng(seed)
    array, values = pickle.loads(pickle.dumps(case.array)), case.values
    index = random_index(rng, values.shape)
    x = zarrdask.from_zarr(array)
    np.testing.assert_array_equal(x[index].compute(scheduler="sync"), values[index])
    blocks = zarrdask.from_zarr(array, chunks="stored")
    np.testing.assert_array_equal(blocks.rechunk(3).compute(scheduler="sync"), values)
    for write in (lambda to: zarrdask.to_zarr(x, to), lambda to: zarrdask.copy(array, to)):
        target = {}
        write(target)
        np.testing.assert_array_equal(zarrdask.open_array(target)[...], values)
    if values.size:
        target = {}
        chunks = tuple(int(rng.integers(1, n + 1)) for n in values.shape)
        zarrdask.rechunk(array, target, chunks=chunks).execute(progress=False)
        np.testing.assert_array_equal(zarrdask.open_array(target)[...], values)


@pytest.mark.parametrize("seed", seeds(FEW))
def test_random_reads_are_those_of_numpy(seed):
    check_reads(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, MANY, STEP))
def test_many_random_reads_are_those_of_numpy(start):
    for seed in range(start, start + STEP):
        check_reads(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, MANY, STEP))
def test_many_random_writes_have_the_values_of_numpy(start):
    for seed in range(start, start + STEP):
        check_writes(seed)


def test_a_pattern_is_sorted_by_the_numbers_in_names(tmp_path):
    for number in (10, 9, 1):
        z = zarrdask.create_array(tmp_path / f"day-{number}.zarr", shape=(1,), dtype="i4")
        z[...] = number
    assert zarrdask.concat(f"{tmp_path}/day-*.zarr")[...].tolist() == [1, 9, 10]


def test_nothing_that_matches_a_pattern_is_an_error(tmp_path):
    with pytest.raises(NodeNotFoundError, match="nothing matches"):
        zarrdask.concat(f"{tmp_path}/day-*.zarr")


def test_a_component_is_the_path_of_the_array_in_each_source(tmp_path):
    for number in range(3):
        group = zarrdask.create_group(tmp_path / f"{number}.zarr")
        z = group.create_array("t2m", shape=(2,), dtype="i4")
        z[...] = number
    array = zarrdask.concat(f"{tmp_path}/*.zarr", component="t2m")
    assert array[...].tolist() == [0, 0, 1, 1, 2, 2]


def test_a_missing_member_is_an_error_or_the_fill_value(tmp_path):
    z = zarrdask.create_array(tmp_path / "0.zarr", shape=(2,), dtype="i4", fill_value=7)
    z[...] = 1
    sources = [tmp_path / "0.zarr", tmp_path / "1.zarr"]
    with pytest.raises(NodeNotFoundError, match='missing="fill"'):
        zarrdask.concat(sources)
    assert zarrdask.concat(sources, missing="fill")[...].tolist() == [1, 1, 7, 7]


def test_axes_have_names():
    first = zarrdask.create_array({}, shape=(2, 3), dtype="i4", dimension_names=("y", "x"))
    assert zarrdask.concat([first, first], "x").shape == (2, 6)
    stacked = zarrdask.stack([first, first], dimension_names="run")
    assert stacked.dimension_names == ("run", "y", "x")


def test_attributes_are_those_that_all_members_have():
    arrays = [
        zarrdask.create_array({}, shape=1, dtype="i4", attributes={"units": "K", "day": day})
        for day in range(2)
    ]
    assert zarrdask.concat(arrays).attrs.asdict() == {"units": "K"}


def test_shapes_that_do_not_fit_name_the_member(tmp_path):
    zarrdask.create_array(tmp_path / "a.zarr", shape=(2, 3), dtype="i4")
    zarrdask.create_array(tmp_path / "b.zarr", shape=(2, 4), dtype="i4")
    with pytest.raises(MetadataError, match=r"b\.zarr.*does not fit"):
        zarrdask.concat([tmp_path / "a.zarr", tmp_path / "b.zarr"])
    with pytest.raises(MetadataError, match="differ in their number of axes"):
        zarrdask.concat([tmp_path / "a.zarr", (tmp_path / "b.zarr", 0)])


def test_the_setting_of_casts_decides_which_data_types_are_promoted():
    arrays = [zarrdask.create_array({}, shape=1, dtype=dtype) for dtype in ("i8", "u8")]
    assert zarrdask.concat(arrays).dtype == "f8"
    with dask.config.set({"zarrdask.casting": "safe"}), pytest.raises(CodecError, match="casting"):
        zarrdask.concat(arrays)
    durations = zarrdask.create_array({}, shape=1, dtype="m8[s]")
    with pytest.raises(CodecError, match="unit of time"):
        zarrdask.concat([arrays[0], durations])
    with dask.config.set({"zarrdask.casting": "numpy"}):
        assert zarrdask.concat([arrays[0], durations]).dtype == "m8[s]"


def test_a_concatenation_is_read_only():
    z = zarrdask.create_array({}, shape=2, dtype="i4")
    array = zarrdask.concat([z, z])
    with pytest.raises(ReadOnlyError, match="write to its members"):
        array[0] = 1


def test_lists_of_different_lengths_are_no_table():
    z = zarrdask.create_array({}, shape=(2, 2), dtype="i4")
    with pytest.raises(MetadataError, match="differ in length"):
        zarrdask.concat([[z, z], [z]])


def test_a_slice_reads_only_the_members_that_it_overlaps(tmp_path):
    arrays = []
    for number in range(3):
        z = zarrdask.create_array(tmp_path / f"{number}.zarr", shape=(4,), dtype="i4", chunks=2)
        z[...] = number
        arrays.append(z)
    array = zarrdask.concat(arrays)
    (tmp_path / "1.zarr" / "c" / "0").write_bytes(b"damaged")
    assert array[[0, 11]].tolist() == [0, 2]
    assert zarrdask.from_zarr(array)[6:].compute().tolist() == [1, 1, 2, 2, 2, 2]
    with pytest.raises(CodecError, match=r"1\.zarr"):
        array[3:6]


@pytest.fixture
def days(tmp_path):
    """Return a function that stores the array of a day, and the pattern of all days."""

    def store(number, **options):
        path = tmp_path / f"day-{number}.zarr"
        z = zarrdask.create_array(path, shape=(2,), dtype="i4", **options)
        z[...] = number

    for number in range(3):
        store(number)
    return store, f"{tmp_path}/day-*.zarr"


@pytest.mark.parametrize("name", ["saved.json", "saved.parquet", "saved"])
def test_a_saved_concatenation_is_opened_without_asking_its_members(tmp_path, days, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    array = zarrdask.concat(days[1])
    array.save(tmp_path / name)
    for path in tmp_path.glob("day-*.zarr/zarr.json"):
        path.rename(path.with_name("hidden"))
    opened = zarrdask.open_array(tmp_path / name)
    assert (opened.shape, opened.nmembers) == ((6,), 3)
    for path in tmp_path.glob("day-*.zarr/hidden"):
        path.rename(path.with_name("zarr.json"))
    assert opened[...].tolist() == [0, 0, 1, 1, 2, 2]
    assert zarrdask.from_zarr(tmp_path / name)[3:].compute().tolist() == [1, 2, 2]


def test_a_saved_concatenation_is_moved_with_its_members(tmp_path, days):
    zarrdask.concat(days[1]).save(tmp_path / "saved.json")
    tmp_path.rename(tmp_path.with_name("moved"))
    opened = zarrdask.open_array(tmp_path.with_name("moved") / "saved.json")
    assert opened[...].tolist() == [0, 0, 1, 1, 2, 2]


def test_refresh_finds_new_and_changed_and_removed_members(tmp_path, days):
    store, pattern = days
    zarrdask.concat(pattern).save(tmp_path / "saved.json")
    opened = zarrdask.open_array(tmp_path / "saved.json")
    store(10)
    store(1, overwrite=True, fill_value=5)
    with pytest.raises(StoreError, match=r"refresh\(\)"):
        opened[...]
    changes = opened.refresh()
    names = [[url.rpartition("/")[2] for url in urls] for urls in changes]
    assert names == [["day-10.zarr"], ["day-1.zarr"], []]
    assert opened[...].tolist() == [0, 0, 1, 1, 2, 2, 10, 10]


def test_a_store_without_a_url_is_not_saved(tmp_path):
    z = zarrdask.create_array({}, shape=2, dtype="i4")
    with pytest.raises(UnsupportedError, match="no URL"):
        zarrdask.concat([z, z]).save(tmp_path / "saved.json")
    assert not (tmp_path / "saved.json").exists()


def test_a_damaged_document_is_an_error_that_names_it(tmp_path, days):
    zarrdask.concat(days[1]).save(tmp_path / "saved.json")
    document = json.loads((tmp_path / "saved.json").read_text())
    document["arrays"][""]["path"] = 7
    (tmp_path / "saved.json").write_text(json.dumps(document))
    with pytest.raises(MetadataError, match=r"saved\.json"):
        zarrdask.open_array(tmp_path / "saved.json")
    document["arrays"][""]["path"] = {"value": "../day-0.zarr"}
    (tmp_path / "saved.json").write_text(json.dumps(document))
    with pytest.raises(MetadataError, match="leaves its store"):
        zarrdask.open_array(tmp_path / "saved.json")
    (tmp_path / "saved.json").write_text("{}")
    with pytest.raises(MetadataError, match="of a saved concatenation"):
        zarrdask.open_array(tmp_path / "saved.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lengths", [[-2, 8]]),
        ("lengths", [[2, 2, 3]]),
        ("added", [9]),
        ("document", {"value": -1}),
        ("missing", {"value": "none"}),
        ("regions", {"0": [[[0, 99, 1]], [0]]}),
        ("regions", {"0": [[[0, 2, 1]], [7]]}),
    ],
)
def test_a_list_of_members_that_do_not_fit_is_an_error(tmp_path, days, key, value):
    zarrdask.concat(days[1]).save(tmp_path / "saved.json")
    document = json.loads((tmp_path / "saved.json").read_text())
    document["arrays"][""][key] = value
    (tmp_path / "saved.json").write_text(json.dumps(document))
    with pytest.raises(MetadataError, match=r"saved\.json.*damaged"):
        zarrdask.open_array(tmp_path / "saved.json")


def test_a_recipe_that_is_none_is_an_error(tmp_path, days):
    zarrdask.concat(days[1]).save(tmp_path / "saved.json")
    document = json.loads((tmp_path / "saved.json").read_text())
    for recipe in ({"verb": "open_many", "sources": "x"}, {"verb": "mean", "sources": "x"}):
        (tmp_path / "saved.json").write_text(json.dumps({**document, "recipe": recipe}))
        with pytest.raises(MetadataError, match="make it again"):
            zarrdask.open_array(tmp_path / "saved.json").refresh()


def test_only_saved_concatenations_are_replaced(tmp_path, days):
    array = zarrdask.concat(days[1])
    array.save(tmp_path / "saved.json")
    array.save(tmp_path / "saved.json")
    other = tmp_path / "other.json"
    other.write_text("{}")
    with pytest.raises(NodeExistsError, match=r"other\.json.*not a saved concatenation"):
        array.save(other)
    assert other.read_text() == "{}"
    with pytest.raises(MetadataError, match="name of a document"):
        array.save(tmp_path / "day-0.zarr" / "zarr.json")
    assert zarrdask.open_array(tmp_path / "day-0.zarr").shape == (2,)


def test_concatenations_are_members_of_others(tmp_path, days):
    array = zarrdask.concat(days[1])
    array.save(tmp_path / "inner.json")
    for inner in (array, tmp_path / "inner.json"):
        joined = zarrdask.concat([inner, inner])
        assert joined[...].tolist() == [0, 0, 1, 1, 2, 2] * 2
        joined.save(tmp_path / "saved.json")
        opened = zarrdask.open_array(tmp_path / "saved.json")
        assert opened[...].tolist() == [0, 0, 1, 1, 2, 2] * 2


def test_names_of_new_axes_are_checked():
    z = zarrdask.create_array({}, shape=2, dtype="i4")
    for names in (["a", "b"], 5):
        with pytest.raises(MetadataError, match="one name for each new axis"):
            zarrdask.stack([z, z], dimension_names=names)
    with pytest.raises(MetadataError, match="dimension_names gives it a name"):
        zarrdask.stack([z, z], "run")


def test_groups_are_joined_by_the_names_of_dimensions(tmp_path):
    for number in range(2):
        group = zarrdask.create_group(tmp_path / f"{number}.zarr", attributes={"title": "x"})
        for name, dims in (("t", ("time", "x")), ("x", ("x",))):
            z = group.create_array(name, shape=(2,) * len(dims), dtype="i4", dimension_names=dims)
            z[...] = number if name == "t" else 3
    joined = zarrdask.concat(f"{tmp_path}/*.zarr", "time")
    assert joined["t"].shape == (4, 2)
    assert joined["x"][...].tolist() == [3, 3]
    joined.save(tmp_path / "saved.json")
    opened = zarrdask.open(tmp_path / "saved.json")
    assert opened["t"][:, 0].tolist() == [0, 0, 1, 1]
    assert opened.attrs.asdict() == {"title": "x"}
    with pytest.raises(MetadataError, match="named dimensions"):
        zarrdask.concat(f"{tmp_path}/*.zarr")


def test_the_drawing_has_the_boundaries_of_members():
    z = zarrdask.create_array({}, shape=(40, 60), dtype="i4", chunks=(40, 30))
    joined, single = zarrdask.concat([z, z], 0), zarrdask.concat([z])
    assert "2 members" in repr(joined)
    lines = [array._repr_html_().count('stroke-opacity=".75"') for array in (joined, single)]
    assert lines[0] > lines[1]
