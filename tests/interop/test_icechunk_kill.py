"""Workers that are killed while a session of icechunk is written."""

import os
import random
import signal

import dask.array as da
import icechunk
import numpy as np
import pytest
from distributed import Client, LocalCluster

import zarrdask

pytestmark = pytest.mark.stress


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=3, threads_per_worker=2, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def _killing(values, folder, block_id=None):
    """Return the values; the first call for some blocks kills the worker."""
    mark = f"{folder}/{'.'.join(map(str, block_id))}"
    if os.path.exists(mark):
        os.rename(mark, f"{mark}.done")
        os.kill(os.getpid(), signal.SIGKILL)
    return values


def _marked(tmp_path, x, count, rng):
    """Return an array of which the computation of some blocks kills a worker, once each."""
    for _ in range(count):
        block = ".".join(str(rng.randrange(n)) for n in x.numblocks)
        (tmp_path / block).touch()
    return x.map_blocks(_killing, str(tmp_path), dtype=x.dtype, meta=x._meta)


def _lengths(rng, size):
    lengths = []
    while sum(lengths) < size:
        lengths.append(min(rng.randint(1, 12), size - sum(lengths)))
    return tuple(lengths)


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_lost_with_a_worker(tmp_path, client, seed):
    rng = random.Random(seed)
    storage = icechunk.local_filesystem_storage(str(tmp_path / "repository"))
    repository = icechunk.Repository.create(storage)
    session = repository.writable_session("main")
    shape = rng.randint(20, 50), rng.randint(5, 30)
    values = np.arange(np.prod(shape)).reshape(shape)
    (kills := tmp_path / "kills").mkdir()

    def blocks(values):
        return da.from_array(values, chunks=tuple(_lengths(rng, n) for n in values.shape))

    chunks = tuple(rng.randint(2, 8) for _ in shape)
    inner = {"chunks": chunks}
    if rng.random() < 0.5:
        inner = {"chunks": chunks, "shards": tuple(2 * n for n in chunks)}
    expected = {"a": values.copy(), "b": values.copy()}
    x, y = blocks(values), blocks(values)
    killing = _marked(kills, x, rng.randint(0, 2), rng)
    zarrdask.to_zarr({"a": killing, "b": y}, session.store, **inner)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice("ab")
        stored = expected[name]
        if rng.random() < 0.4:
            zarrdask.append(
                _marked(kills, blocks(values), rng.randint(0, 1), rng), session.store, name
            )
            expected[name] = np.concatenate([stored, values])
            continue
        start, stop = sorted(rng.sample(range(stored.shape[0] + 1), 2))
        part = rng.randrange(10**6) + values[:1].repeat(stop - start, axis=0)
        new = _marked(kills, blocks(part), rng.randint(0, 1), rng)
        region = slice(start, stop), slice(None)
        zarrdask.to_zarr(new, session.store, name, region=region)
        stored[start:stop] = part
    session.commit("written")
    committed = repository.readonly_session("main").store
    for name, values in expected.items():
        np.testing.assert_array_equal(zarrdask.open_array(committed, name)[...], values)
