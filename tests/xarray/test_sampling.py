"""Cubes around points of datasets: what xarray itself selects from padded values in memory."""

from functools import cache

import dask.array as da
import numpy as np
import pytest

xr = pytest.importorskip("xarray")

import zarrdask.xarray  # noqa: E402
from tests.covering import for_each  # noqa: E402
from tests.storage.latency import FarStore  # noqa: E402
from zarrdask.errors import NodeTypeError, SelectionError  # noqa: E402

LENGTHS = {"lat": 3, "lon": 2}
POINTS = {"lat": [0, 5, -1, 5], "lon": [3, 0, 8, 7]}
#: The points whose cubes are within the dataset.
INSIDE = [3]


def dataset():
    """Variables of several dimensions and encodings, with coordinates along them."""
    rng = np.random.default_rng(0)
    return xr.Dataset(
        {
            "t": (("time", "lat", "lon"), rng.integers(0, 999, (4, 8, 9)) / 10, {"units": "K"}),
            "mask": (("lat", "lon"), rng.integers(0, 9, (8, 9))),
            "when": (("lat",), np.datetime64("2020-01-01", "ns") + np.arange(8) * 3600 * 10**9),
            "row": (("lon",), [f"r{n}" for n in range(9)]),
            "level": (("time",), np.arange(4)),
        },
        {"lat": np.linspace(7, 0, 8), "lon": np.arange(9), "area": (("lat",), np.arange(8.0))},
        {"title": "cubes"},
    )


@cache
def stored(seconds=0):
    """A store with the dataset, in which the first variable is packed."""
    store = FarStore(seconds=seconds)
    packed = {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1, "chunks": (2, 3, 4)}
    encoding = {"t": packed, "mask": {"chunks": (3, 4)}}
    zarrdask.xarray.to_zarr(dataset(), store, encoding=encoding)
    return store


def expected(ds, mode):
    """Return the cubes of the dataset with margins."""
    margins = {dim: (length, length) for dim, length in LENGTHS.items()}
    padded = ds.drop_vars(["lat", "lon", "level"]).pad(margins, mode=mode)
    cubes = []
    for point in zip(*POINTS.values(), strict=True):
        starts = {
            dim: position % ds.sizes[dim] - LENGTHS[dim] // 2 + LENGTHS[dim]
            for dim, position in zip(POINTS, point, strict=True)
        }
        cubes.append(padded.isel({d: slice(n, n + LENGTHS[d]) for d, n in starts.items()}))
    return xr.concat(cubes, "point", data_vars="all", coords="all")


@pytest.mark.slow
@for_each("options", [{}, {"chunks": {}}, {"chunks": {}, "chunked_array_type": "zarrdask"}])
@for_each("ends", ["clip", "pad", "drop"])
def test_cubes_of_a_dataset(ends, options):
    ds = dataset()
    found = zarrdask.sample(
        xr.open_dataset(stored(), engine="zarrdask", **options), POINTS, LENGTHS, ends=ends
    )
    assert isinstance(found.t.data, da.Array) == bool(options)
    assert (found.attrs, found.t.attrs) == (ds.attrs, ds.t.attrs)
    np.testing.assert_array_equal(found.level, ds.level)
    assert found.lat.dims == ("point", "lat")
    cubes = expected(ds, "constant" if ends == "pad" else "edge")
    if ends == "drop":
        cubes = cubes.isel(point=INSIDE)
    if ends == "pad":  # Types without a missing value have the fill value of the array.
        cubes = cubes.assign(mask=cubes.mask.fillna(0).astype(int)).drop_vars("row")
    for name, values in cubes.variables.items():
        assert found[name].dims == ("point", *ds[name].dims)
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found[name], values)
        else:
            np.testing.assert_array_equal(found[name], values)


def test_all_variables_are_requested_together():
    store = stored(seconds=0.02)
    ds = xr.open_dataset(store, engine="zarrdask")
    store.clear()
    zarrdask.sample(ds, POINTS, LENGTHS)
    chunks = {key for key in store.keys if "/c/" in key}
    assert len(chunks) == len(store.keys)
    assert {key.split("/")[0] for key in chunks} >= {"t", "mask"}
    # Small variables, which xarray indexes as they are, may be read before.
    assert store.rounds <= 2


def test_cubes_of_a_data_array():
    ds = xr.open_dataset(stored(), engine="zarrdask")
    table = [[0, 2, 3], [3, 4, 8]]
    cubes = zarrdask.sample(ds.t, table)
    assert (cubes.name, cubes.shape) == ("t", (2, 1, 1, 1))
    np.testing.assert_allclose(cubes.values.ravel(), [dataset().t.values[tuple(p)] for p in table])
    assert cubes.lat.values.ravel().tolist() == [5, 3]


def test_points_name_their_dimension_and_keep_their_coordinates():
    ds = xr.open_dataset(stored(), engine="zarrdask", chunks={})
    labels = {"station": ["a", "b", "c", "d"]}
    points = {name: xr.DataArray(p, labels, dims="station") for name, p in POINTS.items()}
    assert zarrdask.sample(ds, points, LENGTHS, ends="drop").station.values.tolist() == ["d"]
    with pytest.raises(SelectionError, match="different dimensions"):
        zarrdask.sample(ds, points | {"lon": xr.DataArray(POINTS["lon"], dims="p")})
    with pytest.raises(SelectionError, match="name of one"):
        zarrdask.sample(ds.rename(time="station"), points)


def test_variables_that_are_not_as_they_were_stored():
    ds = xr.open_dataset(stored(), engine="zarrdask", chunks={})
    found = zarrdask.sample(ds[["t"]] + 1, POINTS, LENGTHS, ends="clip")
    np.testing.assert_allclose(found.t, expected(dataset()[["t", "level"]] + 1, "edge").t)
    in_memory = zarrdask.sample(dataset(), POINTS, LENGTHS, ends="drop")
    np.testing.assert_array_equal(in_memory.row, [["r6", "r7"]])


def test_errors_name_the_argument():
    ds = dataset()
    for points, message in [([[1, 2]], "no order"), ({"y": [1]}, "no such"), ({"lat": [8]}, "lat")]:
        with pytest.raises(SelectionError, match=message):
            zarrdask.sample(ds, points)
    with pytest.raises(NodeTypeError, match="one of its nodes"):
        zarrdask.sample(xr.DataTree(ds), POINTS)
