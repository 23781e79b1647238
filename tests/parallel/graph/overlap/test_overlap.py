"""Blocks that overlap their neighbours: the values, what is read for them, and the graph."""

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from dask.array.overlap import overlap
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from tests.parallel.graph.cases import same
from tests.parallel.graph.counting import stored
from tests.selections import basic, stored_arrays
from tests.storage.latency import LatencyStore
from zarrdask.errors import MetadataError, SelectionError, UnsupportedError, ZarrdaskError
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.storage.local import open_file

pytestmark = pytest.mark.usefixtures("threaded")


BOUNDARIES = ["reflect", "nearest", "periodic", "none", 100, None]


@pytest.fixture(scope="module")
def threaded():
    with dask.config.set(scheduler="sync"):
        yield


def task_count(x):
    """Return how many tasks a scheduler is given."""
    (y,) = dask.optimize(x)
    return len(dict(y.__dask_graph__()))


@st.composite
def cases(draw):
    """A stored array, blocks of it, depths and boundaries that Dask permits, and an index."""
    z, values = draw(stored_arrays(min_dims=1))
    blocks = draw(st.sampled_from(["auto", "stored", 2, 3]))
    depth, boundary = {}, {}
    for axis, size in enumerate(z.shape):
        boundary[axis] = draw(st.sampled_from(BOUNDARIES[:-1]))
        depth[axis] = draw(st.integers(0, size))
        if boundary[axis] == "none" and draw(st.booleans()):
            depth[axis] = (depth[axis], draw(st.integers(0, size)))
    return z, values, blocks, depth, boundary


@settings(max_examples=8)
@given(cases(), st.data())
def test_blocks_and_their_slices_are_those_of_dask(case, data):
    z, values, blocks, depth, boundary = case
    x = zarrdask.from_zarr(z, chunks=blocks, depth=depth, boundary=boundary)
    plain = da.from_array(values, chunks=zarrdask.from_zarr(z, chunks=blocks).chunks)
    y = overlap(plain, depth, boundary)
    assert x.chunks == y.chunks
    # Dask joins blocks by NumPy, which returns the byte order of the machine.
    same(x.compute(), y.compute().astype(values.dtype))
    index = data.draw(basic(x.shape))
    np.testing.assert_array_equal(x[index].compute(), y.compute()[index])


@for_each("depth", [0, 3, (8, 2), {"x": 4}, {0: (2, 0), "x": (0, 3)}, {-1: 12}])
def test_depths_are_for_all_axes_each_or_some(depth):
    z = stored(dimension_names=["y", "x"])
    x = zarrdask.from_zarr(z, chunks="stored")
    y = overlap(x, {0: 3, 1: 3}, "none")
    pairs = {0: (0, 0), 1: (0, 0)}
    if isinstance(depth, dict):
        pairs |= {("yx".index(k) if isinstance(k, str) else k % 2): d for k, d in depth.items()}
    else:
        pairs = dict(enumerate(depth if isinstance(depth, tuple) else (depth, depth)))
    y = overlap(x, pairs, "none")
    found = zarrdask.from_zarr(z, chunks="stored", depth=depth)
    assert found.chunks == y.chunks
    same(found.compute(), y.compute())


def test_the_parts_of_an_array_that_is_sliced_beforehand():
    z = stored()
    x = zarrdask.from_zarr(z, region=np.s_[3:29:2, 5], depth=4, boundary="periodic", chunks=5)
    y = zarrdask.from_zarr(z, region=np.s_[3:29:2, 5], chunks=5)
    same(x.compute(), overlap(y, 4, "periodic").compute())
    # Dask makes those that are reversed, or whose missing chunks are constants.
    x = zarrdask.from_zarr(z, region=np.s_[::-1], depth={0: 4}, boundary="reflect", chunks=8)
    y = zarrdask.from_zarr(z, region=np.s_[::-1], chunks=8)
    same(x.compute(), overlap(y, {0: 4}, "reflect").compute())
    z.erase("c/0/0")
    x = zarrdask.from_zarr(z, skip_missing=True, depth=4, boundary="reflect", chunks="stored")
    y = zarrdask.from_zarr(z, chunks="stored")
    same(x.compute(), overlap(y, 4, "reflect").compute())


@for_each(
    ("options", "error", "message"),
    [
        ({"depth": 41}, MetadataError, "larger than the array"),
        ({"depth": -1}, MetadataError, "depth of an axis"),
        ({"depth": 1.5}, MetadataError, "depth of an axis"),
        ({"depth": (1, 2, 3)}, MetadataError, "one value for each axis"),
        ({"depth": {"z": 1}}, SelectionError, "axis"),
        ({"depth": {0: (1, 2)}, "boundary": "reflect"}, UnsupportedError, "may differ"),
        ({"depth": 1, "boundary": "wrap"}, MetadataError, "invalid boundary"),
        ({"depth": 1, "boundary": 1.5}, MetadataError, "its value would become 1"),
        ({"depth": 1, "boundary": float("nan")}, MetadataError, "its value would become"),
        ({"boundary": "reflect"}, MetadataError, "pass their depth"),
    ],
)
def test_what_dask_does_not_permit_is_an_error(options, error, message):
    with pytest.raises(error, match=message):
        zarrdask.from_zarr(stored(), chunks="stored", **options)


def test_a_block_is_one_task_and_so_is_what_is_computed_from_it():
    z = stored()
    x = zarrdask.from_zarr(z, chunks="stored", depth=3, boundary="reflect")
    assert task_count(x) == 12
    options = {"depth": 3, "boundary": "reflect", "dtype": "i4"}
    assert task_count(zarrdask.map_overlap(abs, z, blocks="stored", **options) + 1) == 12
    assert len(cloudpickle.dumps(dict(dask.optimize(x)[0].__dask_graph__())[x.name, 1, 1])) < 2000


def test_an_array_with_large_metadata_is_a_task_of_its_own():
    lengths = np.random.default_rng(0).integers(1, 10**9, 20_000).tolist()
    z = zarrdask.create_array({}, shape=sum(lengths), chunks=(lengths,), dtype="i4")
    x = zarrdask.from_zarr(z, chunks=(sum(lengths) + 1) // 2, depth=1, boundary="reflect")
    assert task_count(x) == 2 + 1
    same(x[:3].compute(), np.zeros(3, "i4"))


def test_a_block_reads_the_chunks_that_it_overlaps_and_no_others():
    z = stored()
    x = zarrdask.from_zarr(z, chunks="stored", depth=2, boundary={0: "periodic", 1: "reflect"})
    z.reads.clear()
    x.blocks[1, 2].compute()
    assert z.keys_read() == [f"c/{i}/{j}" for i in (0, 1, 2) for j in (1, 2)]
    x.blocks[0, 0].compute()
    assert z.keys_read() == ["c/0/0", "c/0/1", "c/1/0", "c/1/1", "c/3/0", "c/3/1"]
    x[14 + 6, 14 + 6].compute()  # within the chunk of the block
    assert z.keys_read() == ["c/1/1"]
    plan = zarrdask.plan_read(x.blocks[0, 0])
    assert (plan.arrays[0].chunks, plan.repeated) == (6, 0)


def test_chunks_that_blocks_share_are_decoded_once(setting, monkeypatch):
    decoded, decode = [], Pipeline.decode

    def counted(pipeline, data, memory=None):
        decoded.append(data)
        return decode(pipeline, data, memory)

    monkeypatch.setattr(Pipeline, "decode", counted)
    # Chunks that have just been written are cached, too.
    monkeypatch.setattr(open_file, "CLOCK_NS", -(10**15))
    z = zarrdask.create_array({}, shape=(40, 30), chunks=(10, 10), dtype="i4")
    z[...] = 1
    x = zarrdask.from_zarr(z, chunks="stored", depth=2, boundary="reflect")
    cloudpickle.loads(cloudpickle.dumps(x)).compute()
    assert len(decoded) == 12
    z[...] = 7
    assert (x.compute() == 7).all()
    decoded.clear()
    setting({"zarrdask.keep-memory": 0})
    x.compute()
    assert len(decoded) == (2 + 3 + 3 + 2) * (2 + 3 + 2)


def test_default_blocks_are_joined_where_they_overlap(setting):
    z = zarrdask.create_array({}, shape=(8, 8, 9), chunks=(1, 2, 3), dtype="i1")
    z[...] = np.arange(z.size, dtype="i1").reshape(z.shape)
    setting({"zarrdask.block-size": 36})
    x = zarrdask.from_zarr(z, depth={1: 1, 2: 1})
    assert zarrdask.from_zarr(z).chunksize == (6, 2, 3)
    y = zarrdask.map_overlap(abs, z, depth={1: 1, 2: 1})
    assert y.chunks == ((1,) * 8, (4, 4), (9,))
    assert x.chunks == ((1,) * 8, (5, 5), (9,))


def test_the_requests_of_fused_blocks_are_in_flight_together():
    z = LatencyStore()
    zarrdask.create_array(z, shape=(32, 32), chunks=(4, 4), dtype="i4")[...] = 1
    x = zarrdask.from_zarr(z, chunks="stored", depth=1, boundary="periodic")
    z.clear()
    assert x.sum().compute() == 8 * 8 * 6 * 6
    assert z.rounds <= 16  # of 64 blocks


def test_what_is_read_is_not_overwritten(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=40, chunks=10, dtype="i4")
    y = zarrdask.map_overlap(abs, z, depth=2, boundary="periodic", blocks="stored")
    with pytest.raises(ZarrdaskError, match="read"):
        zarrdask.to_zarr(y[:20], tmp_path, region=slice(0, 20))
