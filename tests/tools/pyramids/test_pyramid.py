"""``pyramid``: levels of arrays, as brute force computes them."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.counting import CountingStore
from tests.tools.pyramids.reference import reference
from zarrdask.errors import MetadataError, NodeExistsError, UnsupportedError
from zarrdask.storage.memory import MemoryStore


def stored(values, **options):
    array = zarrdask.create_array({}, shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return array


def numbers(shape, dtype="u1", seed=0):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def check(group, values, steps, method="mean", borders="trim"):
    for number, level in enumerate(reference(values, steps, method, borders)):
        np.testing.assert_array_equal(group[str(number)][...], level, str(number))


def test_levels_are_means_of_the_level_before():
    values = numbers((3, 37, 50))
    plan = zarrdask.pyramid(stored(values, chunks=(1, 8, 8)), {})
    group = plan.execute("threads", progress=False)
    assert [level.shape[1:] for level in plan.levels] == [(37, 50), (18, 25), (9, 12), (4, 6)]
    check(group, values, [(1, 2, 2)] * 3)
    assert group["2"].chunks == (1, 8, 8)


def test_coarse_levels_are_passed_on_in_small_memory():
    values = numbers((256, 256), "f8")
    array = stored(values, chunks=(32, 32))
    plan = zarrdask.pyramid(array, {}, max_mem="2.2 MiB", scheduler="threads")
    assert plan.tasks > 1
    check(plan.execute(progress=False), values, [(2, 2)] * 3)


def test_a_plan_prints_and_draws():
    plan = zarrdask.pyramid(stored(numbers((16, 16)), chunks=(4, 4)), {}, levels=3)
    assert "level 2  2: (4, 4), 16 B in 1 chunk or shard" in str(plan)
    assert plan.to_dict()["levels"][2]["shape"] == [4, 4]
    drawn = plan._repr_html_()
    assert "<svg" in drawn
    # The names that OME-Zarr gives the axes.
    assert ">y</text>" in drawn
    assert "axis 0" not in drawn
    plan = zarrdask.pyramid(stored(numbers((40, 40)), chunks=(8, 8)), {}, scheduler="threads")
    second = plan.blocks.spans[1].first
    assert f"pass 2 of 2: {plan.levels[second].shape}" in plan.svg(1)


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"levels": 0}, MetadataError, "levels"),
        ({"levels": 9}, MetadataError, "levels"),
        ({"factors": (2, 2, 2)}, MetadataError, "factors"),
        ({"factors": {"q": 2}}, Exception, "factors"),
        ({"factors": 0}, MetadataError, "factors"),
        ({"method": "best"}, MetadataError, "method"),
        ({"borders": "wrap"}, MetadataError, "borders"),
        ({"convention": "mine"}, MetadataError, "convention"),
        ({"max_mem": "1 kB"}, MetadataError, "max_mem"),
        ({"levels": True}, MetadataError, "levels"),
        ({"axes": 3}, MetadataError, "axes"),
        ({"axes": [{"type": "space"}, "x"]}, MetadataError, "name"),
        ({"scale": {"y": "a"}}, MetadataError, "scale"),
        ({"scale": (1, float("nan"))}, MetadataError, "scale"),
        ({"units": "m"}, MetadataError, "units"),
        ({"omero": 3}, MetadataError, "omero"),
        ({"name": 3}, MetadataError, "name"),
    ],
)
def test_bad_options_are_errors_before_anything_is_written(options, error, name):
    store = {}
    with pytest.raises(error, match=name):
        zarrdask.pyramid(stored(numbers((16, 16)), chunks=(4, 4)), store, **options)
    assert not store


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": {"y": "meter"}}, "pyramid.*'unit'; did you mean 'units'"),
        ({"compressor": "zstd"}, "pyramid.*did you mean 'compressors'"),
        ({"crs": "EPSG:4326"}, "'crs' with convention='geozarr', and has convention='ome'"),
        ({"scale": 2, "convention": None}, "'scale' with convention='ome', and has .*None"),
    ],
)
def test_arguments_are_those_of_arrays_and_of_the_convention(options, message):
    with pytest.raises(TypeError, match=message):
        zarrdask.pyramid(numbers((16, 16)), {}, **options)


def test_factors_and_levels_may_be_integers_of_numpy():
    values = numbers((3, 24, 24))
    options = {"factors": np.array([1, 2, 3]), "levels": np.int64(3), "borders": "partial"}
    plan = zarrdask.pyramid(stored(values, chunks=8), {}, **options)
    check(plan.execute(progress=False), values, [(1, 2, 3)] * 2, borders="partial")
    plan = zarrdask.pyramid(stored(values, chunks=8), {}, factors={"y": np.int64(2)}, levels=2)
    assert plan.levels[1].factors == (1, 2, 1)


@pytest.mark.parametrize("labelled", [False, True])
def test_chunks_of_an_array_in_memory_are_chosen(labelled):
    values = numbers((2000, 2000), "u2")
    source = (
        pytest.importorskip("xarray").DataArray(values, dims=["y", "x"]) if labelled else values
    )
    plan = zarrdask.pyramid(source, {})
    assert len(plan.levels) > 1
    assert max(plan.targets[0].metadata.grid.chunk_shape) < 2000
    group = plan.execute(progress=False)
    np.testing.assert_array_equal(group["0"][...], values)
    assert zarrdask.pyramid(source, {}, chunks=100).targets[0].metadata.grid.chunk_shape == (
        100,
        100,
    )


def test_an_array_without_axes_has_no_levels():
    with pytest.raises(MetadataError, match="axes"):
        zarrdask.pyramid(stored(np.array(1)), {}, levels=2, convention=None)


def test_methods_do_not_combine_values_of_all_types():
    with pytest.raises(UnsupportedError, match="bool"):
        zarrdask.pyramid(stored(np.ones((4, 4), bool), chunks=2), {}, method="mean")


def test_an_existing_group_is_replaced_with_overwrite_only():
    array, store = stored(numbers((8, 8)), chunks=4), {}
    zarrdask.pyramid(array, store).execute(progress=False)
    with pytest.raises(NodeExistsError):
        zarrdask.pyramid(array, store)
    group = zarrdask.pyramid(array, store, factors=4, overwrite=True).execute(progress=False)
    check(group, array[...], [(4, 4)])


def test_missing_values_are_left_out():
    values = np.array([[1, 9, 9, 9], [2, 4, 9, 9], [7, 7, 1, 2], [8, 9, 3, 3]], "i2")
    array = stored(values, chunks=2, attributes={"_FillValue": 9})
    assert zarrdask.pyramid(array, {}).execute(progress=False)["1"][...].tolist() == [
        [2, 9],
        [7, 2],
    ]
    kept = zarrdask.pyramid(array, {}, skipna=False).execute(progress=False)
    assert kept["1"][...].tolist() == [[4, 9], [8, 2]]
    of_fill = stored(np.array([[0, 4], [6, 0]], "f4"), chunks=1)
    group = zarrdask.pyramid(of_fill, {}, skipna="fill").execute(progress=False)
    assert group["1"][...] == 5


@pytest.mark.parametrize(
    ("dtype", "attribute", "value"),
    [
        ("f4", "AAAAAICHw8A=", -9999),  # as xarray writes it
        ("c8", ["AAAAAICHw8A=", "AAAAAAAAAAA="], -9999),
        ("f2", 0.1, 0.1),
        ("bfloat16", -9999, -9999),
    ],
)
def test_missing_values_are_those_of_the_data_type(dtype, attribute, value):
    array = zarrdask.create_array(
        {}, shape=(2, 2), dtype=dtype, chunks=2, attributes={"_FillValue": attribute}
    )
    array[...] = np.array([[value, 3], [3, 3]]).astype(array.dtype)
    group = zarrdask.pyramid(array, {}, levels=2).execute(progress=False)
    assert group["1"][...] == 3


def test_sums_end_at_the_limit_of_small_integers():
    array = zarrdask.create_array({}, shape=(2, 2), dtype="int4", chunks=2)
    array[...] = np.full((2, 2), 5).astype(array.dtype)
    group = zarrdask.pyramid(array, {}, levels=2, method="sum").execute(progress=False)
    assert group["1"][...].astype(int) == 7


def test_levels_are_computed_in_their_data_type():
    array = stored(np.array([[1, 2], [2, 2]], "u1"), chunks=1)
    group = zarrdask.pyramid(array, {}, dtype="f4").execute(progress=False)
    assert group["1"][...] == 1.75
    with pytest.raises(MetadataError, match="dtype"):
        zarrdask.pyramid(group["0"], group, dtype="f8", overwrite=True)


def test_memory_holds_the_chunks_that_are_read_in_part():
    array = zarrdask.create_array({}, shape=(4096, 4096), dtype="u1", chunks=4096)
    options = {"chunks": 64, "level_0": "omit"}
    with pytest.raises(MetadataError, match=r"max_mem.*at least"):
        zarrdask.pyramid(array, {}, max_mem="8 MiB", **options)
    plan = zarrdask.pyramid(array, {}, max_mem="40 MiB", scheduler="threads", **options)
    assert plan.peak > 32 * 2**20


def test_labels_become_the_most_frequent_value_by_default():
    root = zarrdask.create_group({})
    labels = root.create_array("labels/cells/0", shape=(2, 2), dtype="u4", chunks=1)
    labels[...] = [[7, 3], [3, 9]]
    group = zarrdask.pyramid(labels, root.store, "labels/cells").execute(progress=False)
    assert group["1"][...] == 3


def test_levels_are_added_to_the_group_of_the_source():
    values, root = numbers((20, 20)), zarrdask.create_group({}, attributes={"title": "t"})
    image = root.create_array("image", shape=values.shape, dtype="u1", chunks=5)
    image[...] = values
    other = root.create_array("other", shape=2, dtype="u1")
    other[...] = 1
    group = zarrdask.pyramid(image, root).execute(progress=False)
    assert sorted(group) == ["1", "2", "image", "other"]
    levels = reference(values, [(2, 2)] * 2, "mean", "trim")
    for name, level in zip(["image", "1", "2"], levels, strict=True):
        np.testing.assert_array_equal(group[name][...], level)
    datasets = group.attrs["ome"]["multiscales"][0]["datasets"]
    assert [each["path"] for each in datasets] == ["image", "1", "2"]
    assert group.attrs["title"] == "t"
    with pytest.raises(NodeExistsError):
        zarrdask.pyramid(image, root)
    image[:10] = 0
    zarrdask.pyramid(image, root, overwrite=True).execute(progress=False)
    assert not group["1"][:5].any()
    assert other[...].all()


@pytest.mark.parametrize("path", ["1", "1/image"])
def test_no_level_replaces_the_source(path):
    group = zarrdask.create_group({})
    source = group.create_array(path, shape=(8, 8), dtype="u1", chunks=4)
    with pytest.raises(NodeExistsError, match="replace the source"):
        zarrdask.pyramid(source, group, overwrite=True)


def test_level_0_may_be_left_out():
    values = numbers((16, 16))
    group = zarrdask.pyramid(stored(values, chunks=4), {}, level_0="omit").execute(progress=False)
    assert sorted(group) == ["1", "2"]
    np.testing.assert_array_equal(
        group["2"][...], reference(values, [(2, 2)] * 2, "mean", "trim")[2]
    )


@pytest.mark.parametrize("scheduler", ["sync", "processes"])
def test_dask_arrays_are_computed_by_the_same_tasks(scheduler, tmp_path):
    values = numbers((40, 50), "f4")
    x = da.from_array(values, chunks=(13, 50)) + 1
    plan = zarrdask.pyramid(x, tmp_path, chunks=8, levels=4, scheduler=scheduler)
    check(plan.execute(scheduler, progress=False), values + 1, [(2, 2)] * 3)


def test_masked_arrays_are_an_error_that_says_what_to_do():
    values = np.ma.masked_less(numbers((8, 8)).astype("f4"), 40)
    x = da.from_array(values, chunks=4)
    with pytest.raises(UnsupportedError, match="masked"):
        zarrdask.pyramid(x, {}, levels=2)
    plan = zarrdask.pyramid(da.ma.filled(x, 0), {}, levels=2, fill_value=0, skipna="fill")
    means = values.reshape(4, 2, 4, 2).mean(axis=(1, 3)).filled(0)
    np.testing.assert_allclose(plan.execute("sync", progress=False)["1"][...], means)


def test_arrays_of_xarray_keep_their_names_and_attributes():
    xarray = pytest.importorskip("xarray")
    values = numbers((16, 16))
    x = xarray.DataArray(values, dims=("y", "x"), attrs={"units": "m"}, name="height")
    group = zarrdask.pyramid(x, {}, chunks=8, factors={"x": 2}).execute(progress=False)
    assert group["1"].dimension_names == ("y", "x")
    assert group["1"].attrs["units"] == "m"
    check(group, values, [(1, 2)])


def test_each_chunk_is_read_once_and_no_level_is_read():
    values, source, target = (
        numbers((64, 64)),
        CountingStore(MemoryStore()),
        CountingStore(MemoryStore()),
    )
    array = zarrdask.create_array(source, shape=values.shape, dtype="u1", chunks=(8, 8))
    array[...] = values
    for options in ({}, {"compressors": None}, {"chunks": 16}):
        source.clear()
        plan = zarrdask.pyramid(
            array, target, levels=4, overwrite=True, max_mem="2.2 MiB", **options
        )
        target.clear()
        group = plan.execute("threads", progress=False)
        chunks = {key: n for key, n in source.reads.items() if key.startswith("c/")}
        assert len(chunks) == 64
        assert set(chunks.values()) == {1}
        # This store has no ETags: the checksums of level 0 are computed once.
        chunks = {key: n for key, n in target.reads.items() if "/c/" in key}
        assert {key[0] for key in chunks} == {"0"}
        assert set(chunks.values()) == {1}
        check(group, values, [(2, 2)] * 3)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_levels_have_the_names_and_keys_that_ome_zarr_requires(zarr_format):
    array, store = stored(numbers((8, 8)), chunks=4, zarr_format=zarr_format), {}
    group = zarrdask.pyramid(array, store, factors={"y": 2, "x": 2}).execute(progress=False)
    assert [group[name].dimension_names for name in "01"] == [("y", "x")] * 2
    assert {2: "0/1/1", 3: "0/c/1/1"}[zarr_format] in store
    check(group, array[...], [(2, 2)])


def test_chunks_of_several_lengths_have_one_writer_each():
    values = numbers((20, 12))
    array = stored(values, chunks=((1, 4, 8, 7), 4))
    for options in ({}, {"compressors": None}):
        plan = zarrdask.pyramid(array, {}, levels=3, **options)
        check(plan.execute("threads", progress=False), values, [(2, 2)] * 2)
