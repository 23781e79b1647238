"""What tasks carry of a stored array, between processes that may run different releases."""

import pickle
import zlib

import dask
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.chunks import stored as module
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec
from zarrdask.formats.codecs.registry import CODECS


@pytest.fixture
def chunks(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=6, dtype="f4", chunks=2, attributes={"a": "long"})
    module.open_packed.cache_clear()
    return chunks_of(z)


def content(chunks):
    """Return the bytes that hold all that a task carries of an array."""
    _, (_, _, packed) = chunks.__reduce__()
    return packed


def test_a_pickled_array_needs_nothing_but_its_bytes(chunks):
    store, prefix, documents, options, order = pickle.loads(zlib.decompress(content(chunks)))
    assert (store, prefix, options, order) == (chunks.store, "", (None, "fill", False, True), None)
    assert documents.keys() == {"zarr.json"}


@for_each("lengths", [6, [4, 2]])
def test_a_pickled_array_keeps_the_order_of_shards_that_its_process_has(tmp_path, lengths):
    z = zarrdask.create_array(
        tmp_path, shape=(6, 6), dtype="u1", chunks=1, shards=[lengths, [6]], overwrite=True
    )
    chunks = chunks_of(z)
    pickle.dumps(chunks)  # with the setting of that time
    with dask.config.set({"zarrdask.shard-order": "f"}):
        data = pickle.dumps(chunks)
    module.open_packed.cache_clear()
    metadata = pickle.loads(data).metadata
    assert metadata.shard.codec.order == "f"
    assert metadata.pipeline_of((2, 2)).serializer.codec.order == "f"


def test_another_release_with_the_same_layout_is_read(chunks):
    again = module.unpack(module.LAYOUT, "9.8.7", content(chunks))
    assert again.metadata.codecs == chunks.metadata.codecs
    assert again.store == chunks.store


def test_the_error_for_another_layout_names_both_releases(chunks):
    with pytest.raises(
        zarrdask.errors.UnsupportedError, match=r"9\.8\.7.*the same release"
    ) as error:
        _ = module.unpack(module.LAYOUT + 1, "9.8.7", content(chunks)).metadata
    assert f"zarrdask {zarrdask.__version__}" in str(error.value)


@pytest.mark.parametrize("damage", [b"", b"rubbish", zlib.compress(b"cgone\nGone\n.")], ids=str)
def test_so_does_the_error_for_contents_that_this_release_can_not_read(damage):
    with pytest.raises(zarrdask.errors.UnsupportedError, match=r"zarrdask 9\.8\.7"):
        _ = module.unpack(module.LAYOUT, "9.8.7", damage).metadata
    with pytest.raises((zlib.error, ModuleNotFoundError)):
        _ = module.unpack(module.LAYOUT, zarrdask.__version__, damage).metadata


class Gzip(GzipCodec):
    name = "example.gzip"


def test_chunks_that_a_process_can_not_open_raise_the_error_where_they_are_used(
    tmp_path, own_registries
):
    zarrdask.register.codec(Gzip)
    z = zarrdask.create_array(tmp_path, shape=2, dtype="f4", compressors="example.gzip")
    data = pickle.dumps(chunks_of(z))
    registered = CODECS.registered.pop("example.gzip")
    module.open_packed.cache_clear()
    unreadable = pickle.loads(data)
    for _ in range(2):
        with pytest.raises(zarrdask.errors.UnsupportedError, match=r"unknown codec.*example\.gzip"):
            _ = unreadable.metadata
    CODECS.registered["example.gzip"] = registered
    assert pickle.loads(pickle.dumps(unreadable)).metadata == chunks_of(z).metadata


def test_other_releases_find_the_function_that_compares_them(chunks):
    function, (layout, release, _) = chunks.__reduce__()
    assert (
        f"{function.__module__}.{function.__qualname__}" == "zarrdask.arrays.chunks.stored.unpack"
    )
    assert (layout, release) == (module.LAYOUT, zarrdask.__version__)


@pytest.mark.parametrize("zarr_format", [2, 3, "v3-draft"])
def test_a_pickled_array_is_small(tmp_path, zarr_format):
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
    assert len(pickle.dumps(chunks_of(z))) < 600


def test_an_array_as_users_hold_it_is_pickled_with_its_attributes(tmp_path):
    names = {"attributes": {"a": 1}, "dimension_names": ["x"]}
    z = zarrdask.create_array(tmp_path, "b", shape=6, dtype="f4", chunks=2, **names)
    again = pickle.loads(pickle.dumps(z))
    assert (again.metadata, again.mode, again.path) == (z.metadata, z.mode, "b")
    assert again.attrs.asdict() == {"a": 1}
