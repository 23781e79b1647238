"""Where to_zarr writes: a new array, one to replace, or a region of an existing one."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each


@for_each("region", [np.s_[0:9], np.s_[-9:8], (slice(9, 20),), {"x": slice(0, 9)}])
def test_a_region_beyond_the_array_is_refused(region):
    options = {"shape": 8, "dtype": "i4", "chunks": 4, "dimension_names": ["x"]}
    z = zarrdask.create_array({}, **options)
    z[...] = 7
    for shape in (8, 9, 0, 11):
        with pytest.raises(
            zarrdask.errors.SelectionError, match="beyond the array along axis 0"
        ) as caught:
            zarrdask.to_zarr(da.zeros(shape, chunks=4), z, region=region)
        assert "0 to 8" in str(caught.value)
    assert (z[...] == 7).all()
    with pytest.raises(zarrdask.errors.SelectionError, match="beyond the array"):
        zarrdask.rechunk(z, {}, chunks=2, source_region=region)


def test_a_region_that_does_not_fit_is_an_error_before_anything_is_written():
    store = {}
    zarrdask.create_array(store, shape=(10, 10), dtype="f4", chunks=5)
    before = dict(store)
    for region in (np.s_[:5], np.s_[::2], np.s_[::-1], 3, np.s_[2:12]):
        with pytest.raises(zarrdask.errors.SelectionError, match="region"):
            zarrdask.to_zarr(da.ones((10, 9)), store, region=region)
    assert store == before


def test_writing_to_an_array():
    z = zarrdask.create_array({}, "deep/array", shape=(6, 6), dtype="i2", chunks=4)
    zarrdask.to_zarr(da.full((6, 6), 3.0, chunks=2), z)
    assert z[...].tolist() == [[3] * 6] * 6
    zarrdask.to_zarr(da.zeros((2, 6), chunks=1), z, region=np.s_[2:4])
    assert z[:, 0].tolist() == [3, 3, 0, 0, 3, 3]


def test_an_array_opened_for_reading_is_not_written():
    z = zarrdask.create_array({}, shape=4, dtype="i4")
    with pytest.raises(PermissionError, match="opened for reading"):
        zarrdask.to_zarr(da.zeros(4), zarrdask.open_array(z.store))


def test_what_is_there_is_kept_unless_it_is_to_be_replaced():
    store = {}
    zarrdask.to_zarr(da.ones(4, chunks=2), store)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        zarrdask.to_zarr(da.zeros(4), store)
    assert zarrdask.open_array(store)[...].tolist() == [1, 1, 1, 1]
    zarrdask.to_zarr(da.zeros(3), store, overwrite=True)
    assert zarrdask.open_array(store)[...].tolist() == [0, 0, 0]
    assert sorted(store) == ["zarr.json"]


def test_options_of_the_new_array():
    store = {}
    zarrdask.to_zarr(
        da.ones((4, 4), chunks=2),
        store,
        "a/b",
        dtype="i2",
        attributes={"units": "K"},
        dimension_names=["y", "x"],
        zarr_format=2,
        compressors="gzip",
    )
    z = zarrdask.open_array(store, "a/b")
    assert (z.dtype, z.zarr_format, z.dimension_names) == (np.dtype("i2"), 2, ("y", "x"))
    assert z.attrs["units"] == "K"
    assert z[...].tolist() == [[1] * 4] * 4


def test_an_array_in_memory_that_the_graph_reads_is_not_replaced():
    store = {}
    zarrdask.to_zarr(da.ones((4, 4), chunks=2), store, "a")
    x = zarrdask.from_zarr(store, "a")
    for y in (x + 1, x[:2, :1] + 1, da.concatenate([x.sum(axis=0), x[0]])):
        with pytest.raises(zarrdask.errors.NodeExistsError, match="computed from"):
            zarrdask.to_zarr(y, store, "a", overwrite=True)
    assert zarrdask.open_array(store, "a")[...].sum() == 16
    zarrdask.to_zarr(x + 1, store, "b", overwrite=True)
    assert zarrdask.open_array(store, "b")[...].sum() == 32


def test_options_of_a_new_array_for_one_that_is_there_are_an_error():
    z = zarrdask.create_array({}, shape=4, dtype="i4")
    for arguments in ({"url": z}, {"url": z.store, "region": np.s_[:]}):
        with pytest.raises(zarrdask.errors.MetadataError, match="chunks"):
            zarrdask.to_zarr(da.zeros(4), **arguments, chunks=2)


def test_modes_are_those_of_dask():
    store = {}
    with pytest.raises(zarrdask.errors.NodeNotFoundError):
        zarrdask.to_zarr(da.ones(4), store, mode="r+")
    zarrdask.to_zarr(da.ones(4), store, mode="w-")
    zarrdask.to_zarr(da.full(4, 2.0), store, mode="r+")
    assert zarrdask.open_array(store)[...].tolist() == [2] * 4
    with pytest.raises(zarrdask.errors.NodeExistsError):
        zarrdask.to_zarr(da.ones(4), store, mode="w-")
    zarrdask.to_zarr(da.ones(3), store, mode="w")
    assert zarrdask.open_array(store).shape == (3,)
    with pytest.raises(zarrdask.errors.MetadataError, match="mode"):
        zarrdask.to_zarr(da.ones(3), store, mode="r")


@pytest.mark.parametrize(
    ("source", "target"),
    [(("", "g/a"), ("/g", "a")), (("/g", "a"), ("", "g/a")), (("", "g/a"), ("", "g"))],
)
def test_a_source_is_known_by_any_spelling_and_below_what_is_replaced(tmp_path, source, target):
    zarrdask.to_zarr(da.full(4, 5.0), tmp_path, "g/a")
    x = zarrdask.from_zarr(f"{tmp_path}{source[0]}", source[1]) + 1
    zarrdask.to_zarr(x, f"{tmp_path}{target[0]}", target[1], overwrite=True)
    place = f"{target[0]}/{target[1]}".strip("/")
    assert zarrdask.open_array(tmp_path, place)[...].tolist() == [6] * 4


def test_an_array_in_a_group_has_its_format():
    group = zarrdask.create_group({}, zarr_format=2)
    zarrdask.to_zarr(da.ones(3), group, "a")
    assert zarrdask.open_array(group, "a").zarr_format == 2


def test_nothing_is_written_below_an_array():
    z = zarrdask.create_array({}, shape=4, dtype="f8")
    with pytest.raises(zarrdask.errors.NodeExistsError, match="can't hold other nodes"):
        zarrdask.to_zarr(da.ones(4), z, "below")
    assert z[...].tolist() == [0] * 4


def test_a_region_may_be_a_list_of_slices():
    z = zarrdask.create_array({}, shape=(4, 4), dtype="i4", chunks=2)
    zarrdask.to_zarr(da.ones((2, 4)), z, region=[slice(1, 3), slice(None)])
    assert z[...].sum(axis=1).tolist() == [0, 4, 4, 0]
