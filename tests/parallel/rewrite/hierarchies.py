"""Hierarchies to copy."""

import numpy as np

import zarrdask

FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")


VALUES = np.arange(1, 121, dtype="i4").reshape(10, 12)


def make(place, name=None, **options):
    options = {"shape": (10, 12), "chunks": (2, 3), "dtype": "i4", "compressors": "gzip"} | options
    z = zarrdask.create_array(place, name, **options)
    z[...] = VALUES
    return z


def hierarchy(place, zarr_format=3):
    root = zarrdask.create_group(place, zarr_format=zarr_format, attributes={"title": "t"})
    group = root.create_group("g", attributes={"n": 1})
    names = {"dimension_names": ("y", "x"), "attributes": {"units": "m"}}
    for where, name in ((root, "a"), (group, "b")):
        make(where, name, zarr_format=zarr_format, **names)
    group.create_group("empty")
    return root


def check(root, zarr_format):
    assert root.zarr_format == zarr_format
    assert dict(root.attrs) == {"title": "t"}
    assert dict(root["g"].attrs) == {"n": 1}
    assert sorted(path for path, _ in root.walk()) == ["a", "g", "g/b", "g/empty"]
    for path in ("a", "g/b"):
        z = root[path]
        assert z.zarr_format == zarr_format
        assert (dict(z.attrs), z.dimension_names) == ({"units": "m"}, ("y", "x"))
        np.testing.assert_array_equal(z[...], VALUES)
