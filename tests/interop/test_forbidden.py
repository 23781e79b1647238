"""Buckets that answer 403 for keys that do not exist, and for listings, by every package."""

import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest
import xarray as xr

import zarrdask
from benchmarks.object_server import serving
from zarrdask.errors import ChunkNotFoundError, StoreError

VALUES = np.zeros((4, 6), "i4")
VALUES[:2, :3] = 7


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.mark.parametrize("remote", ["fsspec", "auto"])
@pytest.mark.parametrize("scheme", ["s3", "http"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_a_bucket_refuses_to_send(endpoint, remote, scheme, zarr_format, setting):
    setting({"zarrdask.remote": remote, "zarrdask.retries": 1})
    options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    place = f"s3://{remote}-{scheme}-{zarr_format}"
    urllib.request.urlopen(f"{endpoint}/-/set").close()
    group = zarrdask.create_group(
        place, storage_options=options, zarr_format=zarr_format, attributes={"some": 1}
    )
    sharded = {"shards": (2, 6)} if zarr_format == 3 else {}
    for name, layout in {"plain": {}, "sharded": sharded}.items():
        z = group.create_array(
            name,
            shape=VALUES.shape,
            dtype="i4",
            chunks=(2, 3),
            dimension_names=("y", "x"),
            attributes={"some": 1},
            **layout,
        )
        z[...] = VALUES
    zarrdask.consolidate_metadata(place, storage_options=options)
    if scheme == "http":
        place, options = f"{endpoint}/{place.removeprefix('s3://')}", {}
    urllib.request.urlopen(f"{endpoint}/-/set?missing=403").close()
    url = {"url": place, "storage_options": options}

    for name in ("plain", "sharded"):
        z = zarrdask.open_array(**url, component=name)
        np.testing.assert_array_equal(z[:2, :3], 7)
        with pytest.raises(StoreError, match="403 Forbidden") as caught:
            z[...]
        assert 'zarrdask.forbidden = "missing"' in "".join(caught.value.__notes__)
    assert zarrdask.open_group(**url)["plain"].shape == VALUES.shape

    setting({"zarrdask.forbidden": "missing"})
    for name in ("plain", "sharded"):
        z = zarrdask.open_array(**url, component=name)
        np.testing.assert_array_equal(z[...], VALUES)
        np.testing.assert_array_equal(zarrdask.from_zarr(z).compute(), VALUES)
        with pytest.raises(ChunkNotFoundError):
            zarrdask.open_array(**url, component=name, missing="error")[...]
    with pytest.raises(FileNotFoundError):
        zarrdask.open(**url, component="none")
    options = {"storage_options": options, "mask_and_scale": False}
    with xr.open_dataset(place, engine="zarrdask", **options) as ds:
        np.testing.assert_array_equal(ds["sharded"], VALUES)
