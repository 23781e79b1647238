"""Datasets at several resolutions, written as trees."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import zarrdask
import zarrdask.xarray
from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.tools.conventions import crs, multiscales, spatial

WKT = 'GEOGCRS["WGS 84"]'
VALUES = np.random.default_rng(0).normal(size=(2, 8, 12))


@pytest.fixture
def dataset():
    values = VALUES.copy()
    values[0, 0, :2] = values[1, :4, :4] = np.nan
    classes = xr.Variable(("y", "x"), np.arange(96, dtype="u1").reshape(8, 12) % 3)
    return xr.Dataset(
        {
            "t": (("time", "y", "x"), values, {"units": "K"}),
            "kind": classes,
            "level": ("band", [1, 2, 3]),
        },
        {
            "time": np.array(["2020-01-01", "2020-02-01"], "M8[ns]"),
            "y": ("y", 45 - 10.0 * np.arange(8), {"axis": "Y"}),
            "x": 5 + np.arange(12) * 10,
        },
        {"title": "map"},
    )


def written(dataset, **options):
    store = {}
    dataset.zarrdask.to_pyramid(store, **options)
    return xr.open_datatree(store, engine="zarrdask"), zarrdask.open_group(store)


def test_unknown_arguments_are_errors_that_name_the_function(dataset):
    for options, hint in [
        ({"colour": 3}, "it has align_chunks"),
        ({"level": 2}, "did you mean 'levels'"),
        ({"chunks": 2}, "pass encoding="),
    ]:
        with pytest.raises(TypeError, match=rf"^to_pyramid\(\) got an unexpected .*; {hint}"):
            dataset.zarrdask.to_pyramid({}, **options)


def test_levels_are_those_of_xarray(dataset):
    tree, group = written(dataset, levels=3, crs="EPSG:4326")
    expected = dataset[["t"]]
    for name in "012":
        xr.testing.assert_allclose(tree[name].to_dataset()[["t"]], expected)
        xr.testing.assert_identical(tree[name]["level"].variable, dataset["level"].variable)
        assert tree[name]["t"].attrs == {"units": "K"}
        assert tree[name].attrs["title"] == "map"
        expected = expected.coarsen(y=2, x=2, boundary="trim").mean()
    [pyramid] = multiscales(group)
    assert [level.scale for level in pyramid.levels] == [(1, 1), (2, 2), (4, 4)]
    assert crs(group["1/t"]).code == crs(group).code == "EPSG:4326"
    assert pyramid.levels[1].spatial.transform == spatial(group["1"]).transform
    assert spatial(group["1"]).transform == (20.0, 0.0, 0.0, 0.0, -20.0, 50.0)
    assert list(group.attrs["spatial:bbox"]) == [0.0, -30.0, 120.0, 50.0]


@for_each(
    ("borders", "length", "centres"),
    [
        ("trim", 2, [1.0, 4.0]),
        ("partial", 3, [1.0, 4.0, 7.0]),
        ("pad", 3, [1.0, 4.0, 7.0]),
    ],
)
def test_windows_at_the_end(borders, length, centres):
    ds = xr.Dataset({"a": ("x", np.arange(8.0))}, {"x": np.arange(8)})
    tree, _ = written(ds, dims="x", factors=3, levels=2, borders=borders)
    assert tree["1/x"].values.tolist() == centres
    last = {"trim": [], "partial": [6.5], "pad": [20 / 3]}[borders]
    np.testing.assert_allclose(tree["1/a"].values, [1.0, 4.0, *last])


def test_coordinates_of_other_kinds():
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-06"], "M8[ns]")
    ds = xr.Dataset(
        {"a": (("time", "x"), np.zeros((4, 5)))},
        {
            "time": times,
            "x": ("x", [0.0, 1.0, 3.0, 4.0, 9.0], {"bounds": "edges"}),
            "edges": (("x", "side"), [[0.0, 1], [1, 2], [2, 4], [4, 6], [6, 12]]),
            "name": ("x", list("abcde")),
            "far": (("time", "x"), np.arange(20.0).reshape(4, 5)),
        },
    )
    tree, _ = written(ds, dims=("time", "x"), levels=2)
    half = tree["1"].to_dataset()
    assert (
        half.time.values.tolist() == np.array(["2020-01-01T12", "2020-01-04T12"], "M8[ns]").tolist()
    )
    assert half.x.values.tolist() == [0.5, 3.5, 9.0]
    assert half.edges.values.tolist() == [[0, 2], [2, 6], [6, 12]]
    assert half.name.values.tolist() == ["a", "c", "e"]
    assert half.far.values.tolist() == [[3.0, 5.0, 6.5], [13.0, 15.0, 16.5]]


def test_methods_by_variable(dataset):
    flags = dataset["kind"].copy()
    flags.attrs["flag_values"] = [0, 1, 2]
    dataset = dataset.assign(flags=flags, sure=flags > 0)
    tree, _ = written(dataset, levels=2, method={"kind": "max"})
    blocks = dataset["kind"].values.reshape(4, 2, 6, 2).transpose(0, 2, 1, 3).reshape(4, 6, 4)
    assert np.array_equal(tree["1/kind"], blocks.max(-1))
    modes = [[np.bincount(cell).argmax() for cell in row] for row in blocks]
    assert np.array_equal(tree["1/flags"], modes)
    assert tree["1/sure"].dtype == bool
    assert "resampling_method" not in tree.attrs["multiscales"]


def test_encodings_and_the_grid_mapping_stay(dataset):
    dataset["crs"] = ((), 0, {"crs_wkt": WKT})
    dataset["t"].encoding = {
        "dtype": "i2",
        "scale_factor": 0.01,
        "_FillValue": -9999,
        "chunks": (1, 4, 4),
        "grid_mapping": "crs",
    }
    tree, group = written(dataset)
    assert list(tree.children) == ["0", "1", "2"]
    for name in tree.children:
        stored = group[name]["t"]
        assert (stored.dtype, stored.chunks) == ("i2", (1, 4, 4))
        assert stored.attrs["scale_factor"] == 0.01
        assert stored.attrs["grid_mapping"] == "crs"
        assert crs(stored).wkt == WKT
    assert group.attrs["proj:wkt2"] == WKT
    assert np.isnan(tree["1/t"][1, 0, 0])
    assert dataset["t"].encoding["grid_mapping"] == "crs"


def test_an_encoding_holds_for_all_levels(dataset):
    dataset["crs"] = ((), 0, {"crs_wkt": WKT})
    dataset["t"].encoding = {"chunks": (1, 4, 4), "shards": (1, 8, 8), "grid_mapping": "crs"}
    tree, group = written(dataset, encoding={"t": {"dtype": "f4"}})
    assert {(group[n]["t"].dtype, group[n]["t"].shards) for n in tree.children} == {
        (np.dtype("f4"), (1, 8, 8))
    }
    assert group["1/t"].attrs["grid_mapping"] == "crs"
    tree, group = written(dataset, encoding={"t": {"chunks": (2, 2, 2)}})
    assert [(group[n]["t"].chunks, group[n]["t"].shards) for n in tree.children] == [
        ((2, 2, 2), None)
    ] * 4


def test_a_reference_system_as_wkt_is_stored_by_cf_too(dataset):
    tree, group = written(dataset, levels=2, crs=WKT)
    assert group["1/t"].attrs["grid_mapping"] == "spatial_ref"
    assert tree["1/spatial_ref"].attrs["crs_wkt"] == WKT


def test_each_block_is_computed_once_for_all_levels():
    calls = []

    def block(values):
        calls.append(values.shape)
        return values

    x = da.ones((8, 12), chunks=(3, 4)).map_blocks(block, dtype="f8", meta=np.empty((0, 0)))
    tree, _ = written(xr.Dataset({"a": (("y", "x"), x)}), levels=3)
    assert len(calls) == 9
    assert tree["2/a"].values.tolist() == np.ones((2, 3)).tolist()


@for_each(
    ("options", "error", "match"),
    [
        ({"dims": ("y", "z")}, MetadataError, "dims: .*'z'"),
        ({"factors": {"time": 2}}, MetadataError, "factors: .*'time'"),
        ({"factors": 0}, MetadataError, "factors"),
        ({"factors": 1}, MetadataError, "factors"),
        ({"levels": 0}, MetadataError, "levels"),
        ({"method": "most"}, MetadataError, "method"),
        ({"method": {"level": "max"}}, MetadataError, "method: .*'level'"),
        ({"borders": "cut"}, MetadataError, "borders"),
        ({"levels": 9, "borders": "trim"}, MetadataError, "levels"),
    ],
)
def test_options_that_do_not_fit_are_an_error_and_nothing_is_written(
    dataset, options, error, match
):
    store = {}
    with pytest.raises(error, match=match):
        dataset.zarrdask.to_pyramid(store, **options)
    assert not store


def test_a_method_that_can_not_combine_the_values_is_an_error(dataset):
    names = dataset.assign(name=(("y", "x"), np.full((8, 12), "a")))
    with pytest.raises(UnsupportedError, match="'mean' can't combine"):
        names.zarrdask.to_pyramid({}, levels=2, method={"name": "mean"})


def test_a_data_array_has_a_pyramid_and_a_tree_has_none(dataset):
    tree, group = written(dataset["t"], levels=2)
    assert sorted(group["1"]) == ["t", "time", "x", "y"]
    with pytest.raises(UnsupportedError, match="tree"):
        tree.zarrdask.to_pyramid({})
