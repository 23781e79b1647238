"""xarray's own tests of writing Zarr, written by zarrdask and read by xarray's own engine."""

import pytest
import xarray
import xarray.tests.test_backends as backends
import xarray.tests.test_backends_datatree as trees
import zarr
from packaging.version import Version

from tests.interop.test_xarray_suite import FIXTURES, DataArrayTests, own, skip  # noqa: F401
from zarrdask.xarray import to_zarr

for module, names in FIXTURES.items():
    globals().update({name: getattr(module, name) for name in names if hasattr(module, name)})

# xarray's tests come with warnings of their own.
pytestmark = pytest.mark.filterwarnings(
    "default", "ignore:.*does not have a Zarr V3 specification", "ignore:.*Zarr format 3 spec"
)

#: Tests that must fail here, by name, and why. The list is strict: a pass is an error.
SAFE = "it expects an error for blocks that share a chunk; zarrdask writes them safely"
BUFFERS = "a dict of zarr-python holds its own buffers, ours holds bytes"
EXPECTED_FAILURES = {
    "test_chunk_encoding_with_dask": SAFE,
    "test_shard_encoding_with_dask[3]": SAFE,
    "test_zarr_region_chunk_partial": SAFE,
    "test_zarr_append_chunk_partial": SAFE,
    "test_zarr_region_chunk_partial_offset": SAFE,
    "test_zarr_safe_chunk_append_dim": SAFE,
    "test_zarr_safe_chunk_region": SAFE,
    "test_open_dataarray_options[Dict]": BUFFERS,
    "test_dataarray_to_zarr_no_name[Dict]": BUFFERS,
    "test_dataarray_to_zarr_with_name[Dict]": BUFFERS,
    "test_dataarray_to_zarr_coord_name_clash[Dict]": BUFFERS,
    "test_dataarray_to_zarr_compute_false[Dict]": BUFFERS,
    "test_dataarray_to_zarr_align_chunks_true[Dict]": BUFFERS,
    "test_to_zarr_compute_false[zarr_format=2]": (
        "a value in memory equals the fill value; where that is null, zarrdask stores all chunks"
    ),
    "test_avoid_excess_metadata_calls": "it counts calls of zarr-python while it writes",
}
if Version(xarray.__version__) < Version("2025.10"):
    MOCKED = "it replaces a method of zarr-python, and fails with xarray's own writer, too"
    ZEROS = "new arrays of floats have the fill value NaN, as xarray gives them by now; it was 0"
    EXPECTED_FAILURES |= {
        "TestDictionary.test_indexing": MOCKED,
        "TestDictionary.test_concurrent_load_multiple_objects": MOCKED,
        "TestDictionary.test_async_load_multiple_variables": MOCKED,
        "test_zarr_encoding[zarr_format=3]": "it compares with codec objects of zarr-python",
    } | {
        f"test_write_empty[3-{empty}-{dask}]": ZEROS
        for empty in (False, None)
        for dask in (True, False, None)
    }


@pytest.fixture(autouse=True)
def writer(monkeypatch):
    def method(obj, store=None, mode=None, group=None, encoding=None, **options):
        # xarray's tests choose the format of new groups by the setting of zarr-python.
        if options.get("zarr_format") is None and mode != "r+":
            options["zarr_format"] = _default_format(options, mode)
        return to_zarr(obj, store, mode, group, encoding, **options)

    for kind in (xarray.Dataset, xarray.DataArray, xarray.DataTree):
        monkeypatch.setattr(kind, "to_zarr", method)


def _default_format(options, mode):
    writes_new = mode in (None, "w", "w-") and not {"append_dim", "region"} & {*options}
    return zarr.config.get("default_zarr_format") if writes_new else None


class TestDirectory(backends.TestZarrDirectoryStore):
    pass


class TestDictionary(own(backends.TestZarrDictStore)):
    pass


class TestWriteEmpty(own(backends.TestZarrWriteEmpty)):
    pass


class TestRegionAuto(backends.TestZarrRegionAuto):
    pass


class TestDataArray(DataArrayTests):
    pass


class TestTree(trees.TestZarrDatatreeIO):
    pass
