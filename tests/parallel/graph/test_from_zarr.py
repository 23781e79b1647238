"""from_zarr: what comes out, what is read for it, and what the graph looks like."""

import threading
from collections import UserDict
from itertools import product

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from tests.memory import at_most_in_a_call
from tests.parallel.graph.counting import CountingStore
from tests.storage.latency import LatencyStore
from zarrdask.parallel.graph.stored_array import StoredArray

pytestmark = pytest.mark.usefixtures("threaded")
VALUES = np.arange(100 * 60, dtype="i4").reshape(100, 60)
LAYOUTS = {
    "chunks": {"chunks": (10, 5)},
    "shards": {"chunks": (10, 5), "shards": (50, 20)},
    "F": {"chunks": (10, 5), "order": "F"},
    "F shards": {"chunks": (10, 5), "shards": (50, 20), "order": "F"},
    "v2": {"chunks": (10, 5), "zarr_format": 2},
    "uneven": {"chunks": ((30, 1, 9, 60), (5, 20, 40))},
    "uneven shards": {"chunks": (10, 5), "shards": ((30, 70), (10, 50)), "order": "F"},
}


@pytest.fixture
def threaded():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def stored(**options):
    store = CountingStore()
    options.setdefault("chunks", (10, 5))
    options.setdefault("compressors", ())
    z = zarrdask.create_array(store, shape=VALUES.shape, dtype="i4", **options)
    z[...] = VALUES
    store.reads.clear()
    return store


def meets(selection, size, unit):
    """Return the units of an axis that a selection meets."""
    return sorted({int(i) // unit for i in np.atleast_1d(np.arange(size)[selection])})


# ---- values


BLOCKS = [None, -1, 7, (10, 5), (33, 60), ((60, 40), (1, 59)), "1kiB"]


@for_each(
    ("layout", "chunks"),
    [*product(LAYOUTS, ["auto", "stored"]), *zip(LAYOUTS, BLOCKS, strict=True)],
)
def test_the_values_are_the_stored_ones_whatever_the_blocks(layout, chunks):
    x = zarrdask.from_zarr(stored(**LAYOUTS[layout]), chunks=chunks)
    np.testing.assert_array_equal(x.compute(), VALUES)
    np.testing.assert_array_equal((x + 1)[3:, ::7].compute(), (VALUES + 1)[3:, ::7])


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_all_schedulers_give_the_values(tmp_path, scheduler):
    zarrdask.create_array(tmp_path, shape=VALUES.shape, dtype="i4", chunks=20)[...] = VALUES
    x = zarrdask.from_zarr(tmp_path, chunks="stored")
    assert x.sum().compute(scheduler=scheduler, num_workers=1) == VALUES.sum()


@for_each("shape", [(), (0,), (3, 0), (1,)])
def test_odd_shapes(shape):
    store = {}
    z = zarrdask.create_array(store, shape=shape, dtype="f8", chunks=-1)
    values = np.full(shape, 2.5)
    z[...] = values
    x = zarrdask.from_zarr(store)
    assert x.shape == shape
    assert x.dtype == "f8"
    np.testing.assert_array_equal(x.compute(), values)
    np.testing.assert_array_equal(zarrdask.from_zarr(store, chunks="stored").compute(), values)


@pytest.mark.parametrize("kind", ["path", "Path", "url", "store", "array", "mapping", "component"])
def test_an_array_is_found_however_it_is_named(tmp_path, kind):
    mapping = {}
    z = zarrdask.create_array(tmp_path, "a/b", shape=4, dtype="i4")
    zarrdask.create_array(mapping, shape=4, dtype="i4")
    arguments = {
        "path": (str(tmp_path / "a" / "b"),),
        "Path": (tmp_path / "a" / "b",),
        "url": (f"file://{tmp_path}/a/b",),
        "store": (z.store, "a/b"),
        "array": (z,),
        "mapping": (mapping,),
        "component": (tmp_path, "a/b"),
    }[kind]
    assert zarrdask.from_zarr(*arguments).compute().tolist() == [0, 0, 0, 0]


@for_each(
    "region",
    [np.s_[20:70], np.s_[..., 7], np.s_[5:95:10, ::-1], np.s_[3, 4], np.s_[:0], np.s_[None, 13:17]],
)
@for_each("chunks", ["auto", "stored", 6])
def test_a_region_is_cut_from_the_array(region, chunks):
    x = zarrdask.from_zarr(stored(), region=region, chunks=chunks)
    assert x.shape == VALUES[region].shape
    np.testing.assert_array_equal(x.compute(), VALUES[region])


@pytest.mark.parametrize("region", [np.s_[30:1000], np.s_[..., -1000:5], np.s_[1000:1001]])
def test_a_region_that_goes_beyond_the_array_is_cut_with_a_warning(region):
    with pytest.warns(UserWarning, match=r"beyond the array along axis \d.* clipped") as caught:
        x = zarrdask.from_zarr(stored(), region=region)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(x.compute(), VALUES[region])


def test_what_is_no_region_is_an_error():
    with pytest.raises(zarrdask.errors.SelectionError):
        zarrdask.from_zarr(stored(), region=[1, 2])
    with pytest.raises(IndexError):
        zarrdask.from_zarr(stored(), region=100)


def test_axes_by_the_names_of_dimensions():
    z = zarrdask.create_array({}, shape=(6, 4), dtype="i4", dimension_names=("time", None))
    x = zarrdask.from_zarr(z, region={"time": slice(4)}, chunks={"time": 2, -1: 3})
    assert x.chunks == ((2, 2), (3, 1))
    for options in ({"region": {"tme": 1}}, {"chunks": {"tme": 1}}):
        with pytest.raises(zarrdask.errors.SelectionError, match="expected one of") as caught:
            zarrdask.from_zarr(z, **options)
        assert caught.value.key in options
    with pytest.raises(zarrdask.errors.MetadataError, match="0 and 'time' are the same axis"):
        zarrdask.from_zarr(z, chunks={0: 2, "time": 3})


@for_each(
    "chunks",
    [0, (0, 0), {0: 0}, -2, (-3, 5), ((-5, 105), (60,)), "many", ((50, 49), (60,)), 1.5],
)
def test_what_are_no_chunks_of_the_array_is_an_error(chunks):
    with pytest.raises(zarrdask.errors.MetadataError, match=r"chunks: .*'stored'"):
        zarrdask.from_zarr(stored(), chunks=chunks)


def test_what_is_no_array_is_an_error(tmp_path):
    zarrdask.create_group(tmp_path)
    with pytest.raises(zarrdask.errors.NodeTypeError, match="group"):
        zarrdask.from_zarr(tmp_path)
    with pytest.raises(FileNotFoundError, match="nothing"):
        zarrdask.from_zarr(tmp_path / "nothing")
    with pytest.raises(TypeError, match="unheard"):
        zarrdask.from_zarr(tmp_path, unheard=1)


# ---- blocks


def test_auto_joins_units_up_to_the_block_size(setting):
    store = stored()
    setting({"zarrdask.block-size": 10 * 5 * 4 * 6})
    x = zarrdask.from_zarr(store)
    assert x.chunks[0][0] % 10 == 0
    assert x.chunks[1][0] % 5 == 0
    assert 3 <= np.prod(x.chunksize) // 50 <= 6
    setting({"zarrdask.block-size": 1})
    assert zarrdask.from_zarr(store).chunksize == (10, 5)


def test_a_shard_far_above_the_block_size_is_split_along_its_chunks(setting):
    store = stored(chunks=(10, 5), shards=(50, 20))
    setting({"zarrdask.block-size": 50 * 20 * 4 // 2})
    assert zarrdask.from_zarr(store).chunksize == (50, 20)
    setting({"zarrdask.block-size": 50 * 20 * 4 // 10})
    x = zarrdask.from_zarr(store)
    assert np.prod(x.chunksize) <= 100
    assert x.chunksize[0] % 10 == 0
    assert x.chunksize[1] % 5 == 0


def test_stored_takes_one_unit_a_block():
    assert zarrdask.from_zarr(stored(), chunks="stored").chunksize == (10, 5)
    sharded = stored(shards=(50, 20))
    assert zarrdask.from_zarr(sharded, chunks="stored").chunksize == (50, 20)


def test_blocks_of_a_region_end_where_units_end():
    x = zarrdask.from_zarr(stored(), chunks="stored", region=np.s_[7:33, 2:])
    assert x.chunks == ((3, 10, 10, 3), (3, *[5] * 11))


def test_automatic_blocks_of_a_region_end_where_units_end(setting):
    store = stored()
    for region in (np.s_[7:13, 2:3], np.s_[12:48, 31:], np.s_[9:10, :11]):
        for limit in (1, 10**3, 10**6):
            setting({"zarrdask.block-size": limit})
            blocks = zarrdask.from_zarr(store, region=region).chunks
            for lengths, pick, unit in zip(blocks, region, (10, 5), strict=True):
                ends = np.cumsum([pick.start or 0, *lengths])[1:-1]
                assert not (ends % unit).any()


def test_blocks_of_uneven_chunks_are_whole_chunks(setting):
    store = stored(chunks=((30, 1, 9, 60), (5, 20, 35)))
    assert zarrdask.from_zarr(store, chunks="stored").chunks == ((30, 1, 9, 60), (5, 20, 35))
    region = np.s_[29:50:3, 30:]
    assert zarrdask.from_zarr(store, chunks="stored", region=region).chunks == ((1, 3, 3), (30,))
    setting({"zarrdask.block-size": 1})
    # A chunk of the longest lengths is a block; shorter ones are joined to no more than that.
    assert zarrdask.from_zarr(store).chunks == ((40, 60), (25, 35))
    setting({"zarrdask.block-size": 2**20})
    assert zarrdask.from_zarr(store).chunks == ((100,), (60,))


def test_an_uneven_shard_far_above_the_block_size_is_split_along_its_chunks(setting):
    store = stored(shards=((10, 90), (60,)))
    setting({"zarrdask.block-size": 90 * 60 * 4 // 8})
    x = zarrdask.from_zarr(store)
    assert x.chunksize[0] % 10 == 0
    assert x.chunksize[1] % 5 == 0
    assert np.prod(x.chunksize) * 4 <= 90 * 60 * 4 // 8
    np.testing.assert_array_equal(x.compute(), VALUES)


def test_tasks_do_not_carry_the_lengths_of_thousands_of_chunks():
    lengths = tuple(np.random.default_rng(0).integers(1, 1000, 10_000).tolist())
    z = zarrdask.create_array({}, shape=sum(lengths), dtype="u1", chunks=(lengths,))
    z[5_000:6_000] = 1
    x = zarrdask.from_zarr(z, chunks="stored")
    assert len(cloudpickle.dumps(x.dask)) < 10 * len(lengths)
    assert int(x[5_500:6_500].sum().compute()) == 500
    assert int(zarrdask.from_zarr(z, chunks=2**20).sum().compute()) == 1000


# ---- what is read

SLICES = [
    np.s_[3:8, 5:7],
    np.s_[:, 5:7],
    np.s_[::5],
    np.s_[::30],
    np.s_[0],
    np.s_[-1, -1],
    np.s_[20:40, ::20],
    np.s_[95:2:-31],
    np.s_[None, 3],
    np.s_[..., 59],
    np.s_[2:2],
]


@for_each("index", SLICES)
@for_each("chunks", ["auto", "stored", (100, 60), (37, 23)])
def test_a_slice_reads_the_chunks_that_it_meets(index, chunks):
    store = stored()
    y = zarrdask.from_zarr(store, chunks=chunks)[index]
    assert store.keys_read() == []
    np.testing.assert_array_equal(y.compute(), VALUES[index])
    met = {(i // 10, j // 5) for i, j in zip(*np.divmod(VALUES[index].ravel(), 60), strict=True)}
    found = store.keys_read()
    assert set(found) == {f"c/{i}/{j}" for i, j in met}
    if chunks != (37, 23):
        assert len(found) == len(set(found))


@for_each("index", SLICES)
@for_each("chunks", ["auto", "stored"])
def test_a_slice_of_uneven_chunks_reads_those_that_it_meets(index, chunks):
    ends = np.array([30, 31, 40, 100]), np.array([5, 25, 60])
    store = stored(chunks=((30, 1, 9, 60), (5, 20, 35)))
    y = zarrdask.from_zarr(store, chunks=chunks)[index]
    assert store.keys_read() == []
    np.testing.assert_array_equal(y.compute(), VALUES[index])
    places = np.divmod(VALUES[index].ravel(), 60)
    met = zip(*(e.searchsorted(p, "right") for e, p in zip(ends, places, strict=True)), strict=True)
    assert store.keys_read() == sorted({f"c/{i}/{j}" for i, j in met})


@for_each("index", SLICES)
def test_a_slice_of_shards_reads_an_index_and_the_chunks_that_it_meets(index):
    store = stored(shards=(50, 20), codecs=None)
    size = 10 * 5 * 4
    zarrdask.from_zarr(store)[index].compute()
    rows, columns = np.divmod(VALUES[index].ravel(), 60)
    met = {(int(i), int(j)) for i, j in zip(rows // 10, columns // 5, strict=True)}
    shards = {(i // 5, j // 4) for i, j in met}
    whole = {s for s in shards if sum((i // 5, j // 4) == s for i, j in met) == 20}
    index_size = 5 * 4 * 16 + 4
    assert store.bytes_read() == len(met) * size + len(shards | whole) * index_size


def test_neighbouring_chunks_of_a_shard_are_one_request():
    store = stored(shards=(50, 20))
    zarrdask.from_zarr(store)[:10, :20].compute()
    assert store.keys_read() == ["c/0/0", "c/0/0"]  # the index, and four chunks at once


def test_two_slices_in_one_compute_read_what_they_meet():
    store = stored()
    x = zarrdask.from_zarr(store)
    assert x.npartitions == 1
    a, b = dask.compute(x[3:8, 5:7], x[20:25, :10])
    np.testing.assert_array_equal(a, VALUES[3:8, 5:7])
    np.testing.assert_array_equal(b, VALUES[20:25, :10])
    assert store.keys_read() == ["c/0/1", "c/2/0", "c/2/1"]


def test_slices_that_need_most_of_a_block_share_it():
    store = stored()
    x = zarrdask.from_zarr(store)
    difference = x[1:] - x[:-1]
    np.testing.assert_array_equal(difference.compute(), np.diff(VALUES, axis=0))
    found = store.keys_read()
    assert len(found) == len(set(found)) == 120


def test_a_wide_slice_alone_reads_only_what_it_meets():
    store = stored()
    zarrdask.from_zarr(store)[10:].compute()
    assert len(store.keys_read()) == 108


def test_a_block_that_several_things_need_is_read_once():
    store = stored()
    x = zarrdask.from_zarr(store, chunks=(50, 30))
    dask.compute(x.min(), x.max(), (x + 1).sum())
    found = store.keys_read()
    assert len(found) == len(set(found)) == 120


def test_a_slice_of_a_slice_reads_less():
    store = stored()
    y = zarrdask.from_zarr(store)[:30:3, :20][2:4]
    np.testing.assert_array_equal(y.compute(), VALUES[:30:3, :20][2:4])
    assert store.keys_read() == [f"c/0/{j}" for j in range(4)]


def test_a_region_reads_what_it_meets():
    store = stored()
    zarrdask.from_zarr(store, region=np.s_[10:20]).sum().compute()
    assert store.keys_read() == sorted(f"c/1/{j}" for j in range(12))


def test_building_reads_no_data():
    store = stored()
    x = zarrdask.from_zarr(store)
    tokenize(x)
    repr(x), x[0], x + 1
    assert store.reads == []


axes = st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.slices(n), st.integers(1, n)))


@given(st.lists(axes, min_size=1, max_size=3), st.integers(1, 7), st.booleans())
def test_any_slice_is_what_numpy_and_dask_give(found, chunk, whole):
    shape = tuple(n for n, _, _ in found)
    index = tuple(s for _, s, _ in found)
    values = np.arange(np.prod(shape)).reshape(shape)
    z = zarrdask.create_array({}, shape=shape, dtype=values.dtype, chunks=chunk)
    z[...] = values
    x = zarrdask.from_zarr(z, chunks=-1 if whole else tuple(n for _, _, n in found))
    plain = da.from_array(values, chunks=x.chunks)
    # Dask keeps some blocks of no elements where a step jumps over them.
    kept = tuple(tuple(n for n in axis if n) or (0,) for axis in plain[index].chunks)
    assert tuple(tuple(n for n in axis if n) or (0,) for axis in x[index].chunks) == kept
    np.testing.assert_array_equal(x[index].compute(scheduler="sync"), values[index])


@pytest.mark.parametrize(
    "index", [np.s_[1:], np.s_[:30:2], np.s_[2:, 1], np.s_[5:, None], np.s_[::-1], np.s_[:, 0:0]]
)
def test_a_slice_of_very_many_blocks_is_one_that_dask_makes(index, monkeypatch):
    monkeypatch.setattr("zarrdask.parallel.graph.stored_array.MAX_SHARED_BLOCKS", 10)
    values = np.arange(80).reshape(40, 2)
    z = zarrdask.create_array({}, shape=values.shape, dtype="i8", chunks=(5, 1))
    z[...] = values
    x = zarrdask.from_zarr(z, chunks=(2, 1))
    y = x[index]
    assert y.chunks == da.from_array(values, chunks=x.chunks)[index].chunks
    np.testing.assert_array_equal(y, values[index])
    np.testing.assert_array_equal((y + 1)[3:].sum(), (values[index] + 1)[3:].sum())


def test_slices_of_very_many_blocks_are_symbolic():
    store = {}
    zarrdask.create_array(store, shape=(10**7, 10**6), dtype="f4", chunks=1000, fill_value=3)
    x = zarrdask.from_zarr(store, chunks="stored")
    for y in (x[: 5 * 10**6], x[1::2], x[:, 4], x[::3][7:, 1:]):
        assert isinstance(y, StoredArray)
        assert [type(layer).__name__ for layer in y.dask.layers.values()] == ["Blockwise"]
        assert not y.dask.layers[y.name].is_materialized()
        again = cloudpickle.loads(cloudpickle.dumps(y))
        assert again.name == y.name
        (kept,) = dask.persist(again[:5][..., :5])
        assert kept.compute().tolist() == np.full(kept.shape, 3.0).tolist()


# ---- names and tasks


def test_names_are_deterministic(tmp_path):
    zarrdask.create_array(tmp_path, shape=(40, 40), dtype="i4", chunks=10)
    x, y = zarrdask.from_zarr(tmp_path), zarrdask.from_zarr(tmp_path)
    assert x.name == y.name
    assert x[3].name == y[3].name
    assert x[3].name != x[4].name
    assert x.name != zarrdask.from_zarr(tmp_path, chunks="stored").name
    assert x.name != zarrdask.from_zarr(tmp_path, region=np.s_[:20]).name
    assert zarrdask.from_zarr(tmp_path, name="mine").name == "mine"


def test_a_rewritten_array_has_another_name(tmp_path):
    options = {"shape": 4, "dtype": "i4", "overwrite": True}
    names = set()
    for _ in range(3):
        zarrdask.create_array(tmp_path, **options)
        names.add(zarrdask.from_zarr(tmp_path).name)
    assert len(names) == 3


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_resized_array_has_another_name_by_any_handle(zarr_format):
    store = {}
    zarrdask.create_array(store, shape=4, dtype="i4", chunks=2, zarr_format=zarr_format)
    z = zarrdask.open_array(store, mode="r+")
    before = zarrdask.from_zarr(z).name
    assert zarrdask.from_zarr(store).name == before
    z.resize(6)
    after = zarrdask.from_zarr(z).name
    assert zarrdask.from_zarr(store).name == after != before


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_in_consolidated_metadata_has_the_same_name(zarr_format):
    store = {}
    group = zarrdask.create_group(store, zarr_format=zarr_format)
    group.create_array("a", shape=4, dtype="i4", chunks=2, attributes={"units": "°C \ud800"})
    seen = zarrdask.consolidate_metadata(group)
    assert zarrdask.from_zarr(seen["a"]).name == zarrdask.from_zarr(store, "a").name


def test_arrays_at_other_places_have_other_names(tmp_path):
    for place in ("a", "b"):
        zarrdask.create_array(tmp_path, place, shape=4, dtype="i4")
    assert zarrdask.from_zarr(tmp_path, "a").name != zarrdask.from_zarr(tmp_path, "b").name


def test_a_task_is_small_whatever_the_attributes(tmp_path):
    long = tmp_path / ("directory-" * 10)
    z = zarrdask.create_array(
        long,
        shape=(2000, 3000, 1000),
        dtype="f4",
        chunks=(10, 20, 50),
        shards=(100, 100, 100),
        compressors="blosc",
        attributes={"text": "long " * 5000},
        dimension_names=["time", "latitude", "longitude"],
        fill_value=np.nan,
    )
    x = zarrdask.from_zarr(z)
    for y in (x, x[5:90, ::3], x.sum()):
        (optimized,) = dask.optimize(y)
        reads = [task for task in dict(optimized.dask).values() if not task.dependencies]
        assert reads
        assert max(len(cloudpickle.dumps(task)) for task in reads[:50]) < 1536


def test_the_graph_does_not_grow_with_the_number_of_blocks():
    store = {}
    zarrdask.create_array(store, shape=(10**7, 10**5), dtype="f4", chunks=1000)
    x = zarrdask.from_zarr(store, chunks="stored")
    assert x.npartitions == 10**6
    y = x[5:8, :10]
    assert len(cloudpickle.dumps(x.dask)) < 2**20
    y.compute()  # imports what it needs
    assert at_most_in_a_call(10**6, y.compute).tolist() == [[0] * 10] * 3


def test_a_pickled_array_still_reads_little():
    store = stored()
    x = cloudpickle.loads(cloudpickle.dumps(zarrdask.from_zarr(store)))
    assert isinstance(x, StoredArray)
    x[3:8, 5:7].compute()
    assert store.keys_read() == ["c/0/1"]


def test_results_are_ordinary_dask_arrays():
    x = zarrdask.from_zarr(stored())
    assert type(x + 1) is da.Array
    assert type(x.rechunk(7)) is da.Array
    assert type(x.T) is da.Array
    np.testing.assert_array_equal(x[[1, 50, 3]].compute(), VALUES[[1, 50, 3]])
    np.testing.assert_array_equal(x[x > 5990].compute(), VALUES[VALUES > 5990])
    np.testing.assert_array_equal(x.vindex[[1, 2], [3, 4]].compute(), VALUES[[1, 2], [3, 4]])
    np.testing.assert_array_equal(x.blocks[0].compute(), VALUES)
    with pytest.raises(IndexError):
        x[100]


def test_fields_of_a_structured_array():
    dtype = [("a", "i4"), ("b", "f8")]
    z = zarrdask.create_array({}, shape=6, chunks=2, dtype=dtype, zarr_format=2)
    z[...] = np.array([(i, i / 2) for i in range(6)], dtype)
    assert zarrdask.from_zarr(z)["b"].compute().tolist() == [0, 0.5, 1, 1.5, 2, 2.5]


# ---- errors in tasks


@pytest.mark.slow  # the first test that uses processes pays for their server
def test_processes_cannot_see_what_is_in_memory_and_say_so():
    z = zarrdask.create_array({}, shape=4, dtype="i4", chunks=2)
    z[...] = 1
    with pytest.raises(zarrdask.errors.StoreError, match="in-memory store"):
        zarrdask.from_zarr(z).sum().compute(scheduler="processes")


def test_a_damaged_chunk_fails_the_task_and_names_its_key():
    store = stored(compressors="zstd")
    store.values["c/3/4"] = store.values["c/3/4"][:-3]
    x = zarrdask.from_zarr(store)
    with pytest.raises(zarrdask.errors.CodecError, match="c/3/4"):
        x.sum().compute()
    assert x[:30].sum().compute() == VALUES[:30].sum()


# ---- what goes wrong quietly elsewhere


def test_an_array_that_was_assigned_to_shows_it_in_slices():
    x = zarrdask.from_zarr(stored())
    x[0:4] = -1
    assert x[0, 0].compute() == -1
    assert x[3:5, 0].compute().tolist() == [-1, 240]
    again = cloudpickle.loads(cloudpickle.dumps(x))
    assert again[0, 0].compute() == -1
    y = zarrdask.from_zarr(stored())
    y[y < 60] = -1
    assert y[0, 0].compute() == -1


def test_other_blocks_have_other_names(setting):
    store = stored()
    x = zarrdask.from_zarr(store)
    setting({"zarrdask.block-size": 1000})
    y = zarrdask.from_zarr(store)
    assert x.name != y.name
    assert dask.compute(x.sum(), y.sum()) == (VALUES.sum(), VALUES.sum())


def test_fsspecs_memory_is_not_seen_by_other_processes_and_says_so():
    url = "memory://for-other-processes"
    z = zarrdask.create_array(url, shape=4, dtype="i4", chunks=2, overwrite=True)
    z[...] = 1
    with pytest.raises(zarrdask.errors.StoreError, match="in-memory store"):
        zarrdask.from_zarr(url).sum().compute(scheduler="processes")


@pytest.mark.parametrize("context", ["forkserver", "fork"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_is_in_memory_is_not_written_by_other_processes(context):
    values, x = {}, da.ones(4, chunks=2)
    write = zarrdask.to_zarr(x, zarrdask.create_array({}, shape=4, dtype="f8"), compute=False)
    with dask.config.set({"scheduler": "processes", "multiprocessing.context": context}):
        with pytest.raises(zarrdask.errors.StoreError, match="in-memory store"):
            write.compute()
        with pytest.raises(zarrdask.errors.StoreError, match="memory of one process"):
            zarrdask.to_zarr(x, values)
    assert values == {}


def test_a_cluster_without_workers_counts_as_other_processes():
    from distributed import Client, LocalCluster

    values = {}
    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster, Client(cluster):
        with pytest.raises(zarrdask.errors.StoreError, match="memory of one process") as raised:
            zarrdask.to_zarr(da.ones(4, chunks=2), values)
        # Its advice is of use while the client is open.
        assert 'dask.config.set(scheduler="threads")' in str(raised.value)
        with dask.config.set(scheduler="threads"):
            zarrdask.to_zarr(da.ones(4, chunks=2), values)
            assert zarrdask.from_zarr(values).sum().compute() == 4


def test_a_mapping_that_does_not_pickle_is_read_by_threads():
    class Locked(UserDict):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

    values = Locked()
    zarrdask.create_array(values, shape=4, dtype="i4", chunks=2)[...] = 3
    assert zarrdask.from_zarr(values).sum().compute() == 12
    zarrdask.to_zarr(da.ones(4, chunks=2), values, overwrite=True)
    assert zarrdask.from_zarr(values).sum().compute() == 4


def test_blocks_are_larger_in_a_store_with_latency(setting):
    setting({"zarrdask.block-size": 8 * 4})
    store = LatencyStore(seconds=0)
    zarrdask.create_array(store, shape=64, dtype="u4", chunks=4)[...] = 1
    assert zarrdask.from_zarr(store.inner).numblocks == (8,)
    assert zarrdask.from_zarr(store).numblocks == (2,)
