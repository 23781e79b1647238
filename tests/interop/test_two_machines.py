"""Writers that share an object store, but no directory of locks, as on two machines."""

from collections.abc import Iterator

import numpy as np
import pytest

import zarrdask
from benchmarks.object_server import serving
from tests.processes import Program
from zarrdask.storage.resolve import resolve

WRITER = """
import sys
import dask, zarrdask
url, endpoint, remote, locks, first = sys.argv[1:]
options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
with dask.config.set({"zarrdask.remote": remote, "zarrdask.lock-directory": locks}):
    for name in ("chunk", "shard"):
        z = zarrdask.open_array(url, name, mode="r+", storage_options=options)
        for at in range(int(first), 40, 2):
            z[at] = at + 1
"""
APPENDING = """
import sys
import dask, dask.array as da, numpy as np, zarrdask
url, endpoint, remote, locks, first = sys.argv[1:]
options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
with dask.config.set({"zarrdask.remote": remote, "zarrdask.lock-directory": locks}):
    group = zarrdask.open_group(url, mode="r+", storage_options=options)
    z = group["x"]
    for number in range(5):
        rows = np.full((2, 3), 2 * number + int(first))
        z.append(rows) if number % 2 else zarrdask.append(da.from_array(rows), z)
        z.attrs[f"{first}-{number}"] = group.attrs[f"{first}-{number}"] = number
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving(0.002) as url:
        yield url


@pytest.mark.parametrize("remote", ["fsspec", "auto"])
def test_parts_of_a_unit_are_written_by_two_machines(endpoint, remote, setting, tmp_path):
    setting({"zarrdask.remote": remote})
    url, options = f"s3://{remote}", {"key": "k", "secret": "s", "endpoint_url": endpoint}
    root = zarrdask.create_group(url, storage_options=options)
    root.create_array("chunk", shape=40, dtype="i4", chunks=40)
    root.create_array("shard", shape=40, dtype="i4", chunks=4, shards=40)
    writers = [Program(WRITER, url, endpoint, remote, tmp_path / first, first) for first in "01"]
    assert [writer.finish() for writer in writers] == [(0, "", "")] * 2
    for name in ("chunk", "shard"):
        np.testing.assert_array_equal(root[name][...], np.arange(1, 41))


@pytest.mark.parametrize(("remote", "zarr_format"), [("fsspec", 3), ("auto", 2), ("auto", 3)])
def test_two_machines_append_and_change_attributes(
    endpoint, remote, zarr_format, setting, tmp_path
):
    setting({"zarrdask.remote": remote})
    url = f"s3://{remote}-{zarr_format}"
    options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    root = zarrdask.create_group(url, zarr_format=zarr_format, storage_options=options)
    root.create_array("x", shape=(0, 3), dtype="i4", chunks=(4, 3))
    zarrdask.consolidate_metadata(url, storage_options=options)
    writers = [Program(APPENDING, url, endpoint, remote, tmp_path / first, first) for first in "01"]
    assert [writer.finish() for writer in writers] == [(0, "", "")] * 2
    root = zarrdask.open_group(url, storage_options=options)
    attributes = {f"{first}-{number}": number for first in "01" for number in range(5)}
    assert dict(root["x"].attrs) == dict(root.attrs) == attributes
    rows = root["x"][...]
    assert rows.shape == (20, 3)
    assert sorted(rows[:, 0]) == sorted([*range(10)] * 2)
    assert not [key for key in root.store.list() if "lease" in key]


@pytest.mark.parametrize("remote", ["fsspec", "auto"])
def test_a_value_is_replaced_if_it_is_the_one_that_was_read(endpoint, remote, setting):
    setting({"zarrdask.remote": remote})
    options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    store = resolve(f"s3://{remote}-values", options)
    assert store.capabilities.compare_and_swap
    assert store.get_tagged("a/b") == (None, None)
    assert [store.swap("a/b", b"1", None), store.swap("a/b", b"2", None)] == [True, False]
    value, tag = store.get_tagged("a/b")
    assert [store.swap("a/b", b"3", tag), store.swap("a/b", b"4", tag)] == [True, False]
    assert (bytes(value), store.get("a/b")) == (b"1", b"3")
    store.erase("a/b")
    assert (store.swap("a/b", b"5", tag), store.get("a/b")) == (False, None)
