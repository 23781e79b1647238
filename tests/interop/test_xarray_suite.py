"""xarray's own tests of Zarr, read by zarrdask: the engine ``zarr`` is ours while they run."""

from inspect import signature

import pytest
import xarray.tests.conftest as fixtures
import xarray.tests.test_backends as backends
import xarray.tests.test_backends_datatree as trees
import zarr
from xarray.backends.common import BACKEND_ENTRYPOINTS
from xarray.backends.plugins import list_engines

from zarrdask.xarray.engine import ZarrdaskBackendEntrypoint

# The fixtures of xarray's tests; older releases have fewer.
FIXTURES = {
    fixtures: ("create_test_datatree", "simple_datatree", "time_unit", "use_dask"),
    backends: ("default_zarr_format", "tmp_store"),
    trees: ("unaligned_datatree_zarr_factory",),
}
for module, names in FIXTURES.items():
    globals().update({name: getattr(module, name) for name in names if hasattr(module, name)})

# xarray's tests come with warnings of their own; zarr-python warns of what they write.
pytestmark = pytest.mark.filterwarnings(
    "default", "ignore:.*does not have a Zarr V3 specification", "ignore:.*Zarr format 3 spec"
)

#: Tests that must fail here, by name, and why. The list is strict: a pass is an error.
EXPECTED_FAILURES = {
    "test_compressor_encoding[3]": "it compares with codec objects of zarr-python; ours are dicts",
    "test_zarr_encoding[zarr_format=3]": "it looks into codec objects of zarr-python",
    "test_read_non_consolidated_warning": "opening costs the same without consolidated metadata, "
    "so nothing is warned of",
    "test_to_zarr_not_consolidated": "it expects the same warning",
    # These two count calls of zarr-python's asynchronous arrays.
    "test_async_load_multiple_variables": "ours is read by threads; tests/xarray/test_lazy.py has "
    "load_async",
    "test_concurrent_load_multiple_objects": "as before",
    "test_zarr_fill_value_setting[2-int]": "use_zarr_fill_value_as_mask=False is obeyed; xarray's "
    "own engine forgets it",
    "test_zarr_fill_value_setting[2-float]": "as with integers",
}

#: Tests that fail with xarray's own engine, by its own marks, and must pass with ours.
PASSES = ("test_to_zarr_zip_store",)


class Engine(ZarrdaskBackendEntrypoint):
    """The engine, for `xarray.open_zarr` of older releases, which passes on more options."""

    open_dataset_parameters = tuple(signature(ZarrdaskBackendEntrypoint.open_dataset).parameters)[
        1:
    ]

    def open_dataset(self, filename_or_obj, **options):
        for name in ("chunk_store", "synchronizer", "zarr_version"):
            options.pop(name, None)
        return super().open_dataset(filename_or_obj, **options)

    def open_groups_as_dict(self, filename_or_obj, **options):
        options.pop("zarr_version", None)
        return super().open_groups_as_dict(filename_or_obj, **options)


@pytest.fixture(autouse=True)
def skip(request):
    """Apply a mark of xarray's, which xarray's own conftest applies there."""
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    for mark in request.node.iter_markers("skip_if_param"):
        expected = {k: v for k, v in mark.kwargs.items() if k not in ("reason", "condition")}
        if mark.kwargs.get("condition", True) and expected.items() <= params.items():
            pytest.skip(mark.kwargs["reason"])


@pytest.fixture(autouse=True)
def engine(monkeypatch, setting):
    setting({"zarrdask.block-size": 1})  # xarray's tests expect a block for each stored chunk
    monkeypatch.setitem(BACKEND_ENTRYPOINTS, "zarr", ("zarr", Engine))
    list_engines.cache_clear()
    yield
    list_engines.cache_clear()  # the tests that follow have xarray's own engine


def own(kind):
    """Return a class of xarray's tests without those that it inherits: `TestDirectory` has them."""
    inherited = [name for name in dir(kind) if name.startswith("test") and name not in vars(kind)]
    return type("Own", (kind,), dict.fromkeys(inherited))


class DataArrayTests(backends.TestDataArrayToZarr):
    """xarray's tests, without those of archives, which newer releases of xarray leave out."""

    @pytest.fixture(autouse=True)
    def version_2(self, tmp_store):
        if isinstance(tmp_store, zarr.storage.ZipStore):
            pytest.skip("zarr-python 3 can't open an archive again for another purpose")
        # A fixture of xarray's sets the format for a module: it would be that of the test before.
        with zarr.config.set(default_zarr_format=2):
            yield


class TestDirectory(backends.TestZarrDirectoryStore):
    pass


class TestDictionary(own(backends.TestZarrDictStore)):
    test_indexing = None  # counts calls of zarr-python's asynchronous arrays, in 60 cases


class TestWriteEmpty(own(backends.TestZarrWriteEmpty)):
    pass


class TestRegionAuto(backends.TestZarrRegionAuto):
    pass


class TestNCZarr(backends.TestNCZarr):
    pass


class TestDataArray(DataArrayTests):
    pass


class TestTree(trees.TestZarrDatatreeIO):
    pass
