"""The codec pipeline for zarr-python: its arrays are read and written by zarrdask."""

import pickle
from asyncio import to_thread
from dataclasses import dataclass
from pathlib import Path

import dask.array as da
import dask.array.tests.test_array_core as dask_tests
import fsspec
import numcodecs
import numpy as np
import obstore
import pytest
import xarray as xr
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, GzipCodec
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.storage import FsspecStore, LocalStore, MemoryStore, WrapperStore
from zarr.testing import strategies as zarr_strategies

import zarrdask
from zarrdask.compat.zarr_pipeline import Pipeline
from zarrdask.errors import ZarrdaskError

OURS = {"codec_pipeline.path": "zarrdask.compat.zarr_pipeline.Pipeline"}
VALUES = np.random.default_rng(0).integers(0, 100, (23, 17, 5))


@pytest.fixture(autouse=True)
def pipeline():
    with zarr.config.set(OURS):
        yield


@pytest.fixture
def no_fallback(monkeypatch):
    """Nothing is read or written by zarr-python's own pipeline."""

    async def fail(*args, **kwargs):
        raise AssertionError("zarr-python's own pipeline")

    monkeypatch.setattr(BatchedCodecPipeline, "read", fail)
    monkeypatch.setattr(BatchedCodecPipeline, "write", fail)


@pytest.fixture
def fallback(monkeypatch):
    """The calls of zarr-python's own pipeline."""
    calls = []
    for verb in ("read", "write"):
        original = getattr(BatchedCodecPipeline, verb)

        async def counted(self, *args, original=original, verb=verb, **kwargs):
            calls.append(verb)
            return await original(self, *args, **kwargs)

        monkeypatch.setattr(BatchedCodecPipeline, verb, counted)
    return calls


def create(store, values=VALUES, **options):
    options = {"chunks": (5, 4, 5), "dtype": values.dtype, **options}
    array = zarr.create_array(store, name="a/b", shape=values.shape, **options)
    array[...] = values
    return array


#: v2 in another order, shards, and chunks at the root of the store.
LAYOUTS = {
    "chunks": {},
    "shards": {"shards": (10, 8, 5)},
    "v2": {"zarr_format": 2, "order": "F", "filters": numcodecs.Delta("<i8"), "dtype": "<i8"},
    "v2 big-endian": {"zarr_format": 2, "dtype": ">i8"},
    "dots": {"chunk_key_encoding": {"name": "default", "separator": "."}},
}
KINDS = ("local", "fsspec", "obstore")


def store_of(kind, tmp_path):
    if kind == "local":
        return LocalStore(tmp_path / "s")
    if kind == "fsspec":
        # Of a local directory, zarrdask reads the files without fsspec.
        local = fsspec.filesystem("local", auto_mkdir=True)
        files = fsspec.filesystem("dir", path=str(tmp_path), fs=local)
        return FsspecStore(AsyncFileSystemWrapper(files, asynchronous=True), path="s")
    (tmp_path / "s").mkdir()
    return zarr.storage.ObjectStore(obstore.store.LocalStore(tmp_path / "s"))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("no_fallback")
def test_each_kind_of_selection_is_read_and_written(kind, layout, tmp_path):
    array, expected = create(store_of(kind, tmp_path), **LAYOUTS[layout]), VALUES.copy()
    assert isinstance(array.async_array.codec_pipeline, Pipeline)
    array[3:20, 2] = expected[3:20, 2] = 7
    array[1, 2, 3] = expected[1, 2, 3] = 8
    array[4:6] = expected[4:6] = VALUES[:2]
    array.oindex[[1, 9], [2, 3], :] = expected[np.ix_([1, 9], [2, 3])] = 9
    points = [1, 20, 1], [5, 3, 0], [0, 1, 4]
    array.vindex[points] = expected[points] = [11, 12, 13]
    np.testing.assert_array_equal(array[...], expected)
    for index in (3, (3, 4, 2), (slice(3, 22, 7), slice(None, None, 3), 1), (..., slice(1, 2))):
        np.testing.assert_array_equal(array[index], expected[index])
    mask = np.arange(23) % 3 == 0
    np.testing.assert_array_equal(array.oindex[mask, [5, 2]], expected[mask][:, [5, 2]])
    np.testing.assert_array_equal(array.vindex[points], expected[points])
    np.testing.assert_array_equal(zarrdask.open_array(array)[...], expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_stored_bytes_are_those_of_zarr_python(layout, tmp_path):
    create(tmp_path / "ours", compressors=None, **LAYOUTS[layout])
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        create(tmp_path / "theirs", compressors=None, **LAYOUTS[layout])
    files = [
        {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        for root in (tmp_path / "ours", tmp_path / "theirs")
    ]
    assert files[0] == files[1]


@pytest.mark.parametrize("write_empty_chunks", [False, True])
@pytest.mark.usefixtures("no_fallback")
def test_chunks_of_the_fill_value_are_stored_as_configured(write_empty_chunks, tmp_path):
    array = create(
        tmp_path, np.zeros((10, 4, 5)), config={"write_empty_chunks": write_empty_chunks}
    )
    assert array.nchunks_initialized == (2 if write_empty_chunks else 0)
    assert not array[...].any()


@pytest.mark.usefixtures("no_fallback")
def test_a_scalar_array(tmp_path):
    array = zarr.create_array(tmp_path, shape=(), dtype="f8", fill_value=2)
    assert array[()] == 2
    array[()] = 3
    assert array[()] == array[...] == 3


def test_an_array_whose_grid_is_no_longer_allowed_is_left_to_zarr_python(tmp_path, fallback):
    with zarr.config.set({"array.rectilinear_chunks": True}):
        array = zarr.create_array(tmp_path, shape=7, chunks=((3, 4),), dtype="i4")
    array[...] = np.arange(7)
    np.testing.assert_array_equal(array[2:5], [2, 3, 4])
    assert fallback == ["write", "read"]


@pytest.mark.parametrize("shards", [None, (8,)])
def test_a_resized_array_keeps_the_elements_that_are_not_written(shards, tmp_path):
    array = zarr.create_array(tmp_path, shape=6, chunks=4, shards=shards, dtype="i4")
    array[:] = 1
    array.resize(12)
    array[6:12] = 2
    array[4:6] = 3
    array[7:8] = 4
    assert array[:].tolist() == [1] * 4 + [3] * 2 + [2, 4] + [2] * 4
    assert zarr.open_array(tmp_path)[:].tolist() == array[:].tolist()


@dataclass(frozen=True)
class OwnGzip(GzipCodec):
    """A codec that takes the name of one of zarr-python's."""


class OwnStore(LocalStore):
    """A store that may do something else."""


@pytest.mark.parametrize(
    ("store", "options"),
    [
        (MemoryStore, {}),
        (lambda path: WrapperStore(LocalStore(path)), {}),
        (OwnStore, {}),
        (LocalStore, {"compressors": OwnGzip()}),
        (LocalStore, {"shards": (10, 8, 5), "compressors": OwnGzip()}),
        (LocalStore, {"config": {"read_missing_chunks": False}}),
    ],
)
def test_what_zarrdask_does_not_know_is_left_to_zarr_python(store, options, tmp_path, fallback):
    array = create(store() if store is MemoryStore else store(tmp_path), **options)
    np.testing.assert_array_equal(array[...], VALUES)
    assert "read" in fallback


def test_texts_are_left_to_zarr_python(tmp_path, fallback):
    texts = np.array(["a", "bcd", ""], object)
    array = zarr.create_array(tmp_path, shape=3, dtype=str)
    array[:] = texts
    assert array[:].tolist() == texts.tolist()
    assert fallback == ["write", "read"]


def test_integers_beside_lists_are_left_to_zarr_python(tmp_path, fallback):
    array = create(tmp_path)
    np.testing.assert_array_equal(array.oindex[[1, 5], 3], VALUES[[1, 5], 3])
    assert fallback == ["read"]


def test_values_that_do_not_fit_have_the_error_of_zarr_python(tmp_path, fallback):
    array = create(tmp_path)
    with pytest.raises(IndexError):
        array[4] = np.arange(5)
    assert fallback == ["write"]
    np.testing.assert_array_equal(array[...], VALUES)


def test_a_read_only_array_is_not_written(tmp_path):
    create(tmp_path)
    array = zarr.open_array(tmp_path, path="a/b", mode="r")
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0
    np.testing.assert_array_equal(array[...], VALUES)


def test_a_damaged_chunk_is_named(tmp_path):
    array = create(tmp_path, compressors=BloscCodec())
    (tmp_path / "a/b/c/1/0/0").write_bytes(b"damaged")
    with pytest.raises(ZarrdaskError, match="a/b/c/1/0/0"):
        array[5:7]
    np.testing.assert_array_equal(array[:5], VALUES[:5])


def test_slow_file_systems_are_read_by_threads(tmp_path, monkeypatch):
    array, chunks = create(tmp_path), "zarrdask.compat.zarr_chunks"
    monkeypatch.setattr(f"{chunks}._SLOW_SECONDS", -1)
    hops = []

    def counted(work):
        hops.append(work)
        return to_thread(work)

    monkeypatch.setattr("zarrdask.compat.zarr_pipeline.to_thread", counted)
    for _ in range(5):
        assert array[0, 0, 0] == VALUES[0, 0, 0]
    assert len(hops) == 2
    # As soon as reads are fast again, a thread takes longer to start.
    monkeypatch.setattr(f"{chunks}._SLOW_SECONDS", 60)
    for _ in range(20):
        assert array[0, 0, 0] == VALUES[0, 0, 0]
    assert len(hops) < 10


@pytest.mark.usefixtures("no_fallback")
def test_a_pickled_array_and_dask(tmp_path):
    values = VALUES[:20, :16]
    array = create(tmp_path, values)
    np.testing.assert_array_equal(array[...], values)
    again = pickle.loads(pickle.dumps(array))
    np.testing.assert_array_equal(again[...], values)
    assert pickle.dumps(again) == pickle.dumps(pickle.loads(pickle.dumps(again)))
    x = da.from_zarr(array)
    np.testing.assert_array_equal(x[3:, ::2].compute(), values[3:, ::2])
    da.to_zarr(x * 2, array)
    np.testing.assert_array_equal(array[...], values * 2)


@pytest.mark.usefixtures("no_fallback")
def test_xarrays_own_engine(tmp_path):
    values = np.arange(24.0).reshape(4, 6)
    ds = xr.Dataset({"t": (("y", "x"), values)}, {"x": np.arange(6)}).chunk(y=2)
    ds.to_zarr(tmp_path / "x.zarr", consolidated=False)
    xr.testing.assert_identical(
        xr.open_zarr(tmp_path / "x.zarr", consolidated=False).load(), ds.load()
    )


@pytest.mark.filterwarnings("ignore:.*V3 specification", "ignore:.*Zarr V3 data type")
@given(data=st.data())
@settings(max_examples=15)
def test_random_arrays_and_selections(data, tmp_path_factory):
    root = LocalStore(Path(tmp_path_factory.mktemp("arrays")))
    array = data.draw(zarr_strategies.arrays(stores=st.just(root)))
    expected = array[...]
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        theirs = zarr.open_array(array.store, path=array.path, mode="r")
        np.testing.assert_array_equal(expected, theirs[...])
    if expected.ndim:
        index = data.draw(zarr_strategies.basic_indices(shape=expected.shape))
        np.testing.assert_array_equal(array[index], expected[index])
        zarr_index, index = data.draw(zarr_strategies.orthogonal_indices(shape=expected.shape))
        np.testing.assert_array_equal(array.oindex[zarr_index], expected[index])


# Dask's own tests of Zarr.
names = [name for name in vars(dask_tests) if name.startswith("test") and "zarr" in name]
# One has `pytest.mark.slow`.
globals().update({name: getattr(dask_tests, name) for name in names})
unknown = dask_tests.unknown
