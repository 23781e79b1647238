"""What tasks carry of a stored array, between processes that may run different releases."""

import pickle
import zlib

import dask
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.execution import handle as module
from zarrdask.execution.handle import Handle


@pytest.fixture
def handle(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=6, dtype="f4", chunks=2, attributes={"a": "long"})
    module.unpack.cache_clear()
    return Handle(z.stored)


def pickled_by(release, layout, handle):
    """Return a handle as a process with another release pickles it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "__version__", release)
        patch.setattr(module, "LAYOUT", layout)
        return pickle.dumps(handle)


def test_a_handle_needs_nothing_but_its_bytes(handle):
    store, prefix, documents, guard, order = pickle.loads(zlib.decompress(handle.packed))
    assert (store, prefix, guard, order) == (handle.chunks.store, "", None, None)
    assert documents.keys() == {"zarr.json"}


@for_each("lengths", [6, [4, 2]])
def test_a_handle_keeps_the_order_of_shards_of_the_process_that_made_it(tmp_path, lengths):
    z = zarrdask.create_array(
        tmp_path, shape=(6, 6), dtype="u1", chunks=1, shards=[lengths, [6]], overwrite=True
    )
    with dask.config.set({"zarrdask.shard-order": "f"}):
        data = pickle.dumps(Handle(z.stored))
    module.unpack.cache_clear()
    metadata = pickle.loads(data).chunks.metadata
    assert metadata.shard.codec.order == "f"
    assert metadata.pipeline_of((2, 2)).serializer.codec.order == "f"


def test_another_release_with_the_same_layout_is_read(handle):
    found = pickle.loads(pickled_by("9.8.7", module.LAYOUT, handle))
    assert found.chunks.metadata.codecs == handle.chunks.metadata.codecs
    assert found.chunks.store == handle.chunks.store


def test_the_error_for_another_layout_names_both_releases(handle):
    data = pickled_by("9.8.7", module.LAYOUT + 1, handle)
    with pytest.raises(
        zarrdask.errors.UnsupportedError, match=r"9\.8\.7.*the same release"
    ) as error:
        pickle.loads(data)
    assert f"zarrdask {zarrdask.__version__}" in str(error.value)


@pytest.mark.parametrize("damage", [b"", b"rubbish", zlib.compress(b"cgone\nGone\n.")], ids=str)
def test_so_does_the_error_for_contents_that_this_release_can_not_read(handle, damage):
    handle.packed = damage
    with pytest.raises(zarrdask.errors.UnsupportedError, match=r"zarrdask 9\.8\.7"):
        pickle.loads(pickled_by("9.8.7", module.LAYOUT, handle))
    with pytest.raises((zlib.error, ModuleNotFoundError)):
        pickle.loads(pickle.dumps(handle))


@pytest.mark.parametrize("zarr_format", [2, 3, "v3-draft"])
def test_a_pickled_handle_is_small(tmp_path, zarr_format):
    z = zarrdask.create_array(
        tmp_path,
        "group/array",
        shape=(1000, 1000),
        dtype="f4",
        chunks=(10, 10),
        zarr_format=zarr_format,
        compressors="blosc",
        attributes={"text": "long " * 5000},
    )
    assert len(pickle.dumps(Handle(z.stored))) < 600
