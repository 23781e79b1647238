"""Each verb, in stores whose capabilities are mixed in ways that no store of the package has."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.storage.mixed import MixedStore
from zarrdask.storage import LOCAL_COSTS, REMOTE_COSTS, Capabilities

#: One chunk of these is large enough for parts of it to be read.
SHAPE, CHUNKS = (600, 1024), (300, 1024)
VALUES = (np.arange(600 * 1024) % 251).astype("u1").reshape(SHAPE)
MIXES = {
    "a disk whose files are not kept open": Capabilities(costs=LOCAL_COSTS, stamps=True),
    "a fast network disk": Capabilities(
        costs=REMOTE_COSTS._replace(request=2**17, checks=True), keeps_open=True, stamps=True
    ),
    "a slow disk that is searched slowly": Capabilities(
        costs=LOCAL_COSTS._replace(checks=False, copies=2), keeps_open=True
    ),
    "a far store with conditional writes only": Capabilities(
        compare_and_swap=True, create_exclusive=True
    ),
    "a far store with ETags, one request at a time": Capabilities(etags=True, versions=True),
    "a near server": Capabilities(
        costs=LOCAL_COSTS, etags=True, versions=True, concurrent=True, compare_and_swap=True
    ),
    "a far store with everything": Capabilities(
        concurrent=True,
        etags=True,
        versions=True,
        stamps=True,
        keeps_open=True,
        compare_and_swap=True,
        create_exclusive=True,
    ),
    "a far store that keeps what was read": Capabilities(
        concurrent=True, etags=True, keeps_values=True, keeps_open=True
    ),
    "overlapping requests whose listings are slow": Capabilities(
        costs=LOCAL_COSTS._replace(in_flight=2, listed=0), shared=False
    ),
}


def use_arrays(store):
    """Create, write, read, change and append to arrays with large chunks, and with shards."""
    z = zarrdask.create_array(
        store, "plain", shape=SHAPE, chunks=CHUNKS, dtype="u1", compressors=()
    )
    z[...] = VALUES
    expected = VALUES.copy()
    z[290:310, 5:9] = expected[290:310, 5:9] = 7
    for region in (np.s_[10:12], np.s_[::150, 17], np.s_[...], np.s_[295:305, 3:11]):
        store.calls.clear()
        assert np.array_equal(z[region], expected[region])
    has = store.capabilities
    call = "get_part" if has.requests_parts else "reading"
    assert store.calls & {"reading", "get_part"} == ({call} if has.reads_parts else set())
    small = expected[:40, :40]
    s = zarrdask.create_array(
        store, "sharded", shape=(40, 40), chunks=(5, 5), shards=(20, 20), dtype="u1"
    )
    s[...] = small
    s[3:30, 2] = small[3:30, 2]
    s.append(small[:7])
    joined = np.concatenate([small, small[:7]])
    assert np.array_equal(s[...], joined)
    assert np.array_equal(s[18:22, 33], joined[18:22, 33])
    s.resize((33, 40))
    assert np.array_equal(zarrdask.open_array(store, "sharded")[...], joined[:33])
    return expected, joined[:33]


def use_dask(store, expected, small):
    """Read with Dask, and write, append, rewrite and copy."""
    x = zarrdask.from_zarr(store, "plain")
    assert np.array_equal(x[280:320, ::7].compute(), expected[280:320, ::7])
    assert np.array_equal(zarrdask.from_zarr(store, "sharded").compute(), small)
    blocks = da.from_array(small, chunks=(11, 40))
    zarrdask.to_zarr(blocks, store, "written", chunks=(11, 10))
    zarrdask.to_zarr(blocks + 1, store, "written", mode="w", chunks=(7, 8), fill_value=1)
    zarrdask.append(blocks[:3], store, "written")
    whole = np.concatenate([small + 1, small[:3]])
    assert np.array_equal(zarrdask.from_zarr(store, "written").compute(), whole)
    target = MixedStore(store.capabilities)
    written = zarrdask.open_array(store, "written")
    zarrdask.rechunk(written, target, chunks=(9, 40), max_mem=7000).execute(progress=False)
    assert np.array_equal(zarrdask.open_array(target)[...], whole)


def use_hierarchies(store, small):
    """List, consolidate, copy, compare and check groups, and join arrays."""
    group = zarrdask.open_group(store)
    assert sorted(group) == ["plain", "sharded", "written"]
    zarrdask.consolidate_metadata(store)
    assert zarrdask.verify(store).ok
    target = MixedStore(store.capabilities)
    zarrdask.copy(store, target)
    assert zarrdask.compare(store, target).ok
    joined = zarrdask.concat([store, target], component="sharded")
    assert np.array_equal(joined[...], np.concatenate([small, small]))
    assert np.array_equal(zarrdask.from_zarr(joined)[30:40, 2].compute(), joined[30:40, 2])
    del zarrdask.open_group(target, mode="r+")["sharded"]
    assert "sharded" not in zarrdask.open_group(target)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*changes part of a chunk")
@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
def test_each_verb_runs_in_any_mix_of_capabilities(mix):
    store = MixedStore(mix)
    zarrdask.create_group(store)
    expected, small = use_arrays(store)
    use_dask(store, expected, small)
    use_hierarchies(store, small)
