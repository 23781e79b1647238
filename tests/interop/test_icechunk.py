"""Stores of icechunk's sessions: read by every scheduler, written by threads of this process."""

import dask
import dask.array as da
import icechunk
import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.xarray.writes import days
from zarrdask.errors import ReadOnlyError, StoreError
from zarrdask.xarray import open_zarr, to_zarr


@pytest.fixture
def repository(tmp_path):
    """A repository that holds a dataset, written by xarray's own engine."""
    storage = icechunk.local_filesystem_storage(str(tmp_path / "repository"))
    repository = icechunk.Repository.create(storage)
    session = repository.writable_session("main")
    days(4).to_zarr(session.store, consolidated=False, encoding={"t": {"chunks": (2, 5, 3)}})
    session.commit("four days")
    return repository


@pytest.fixture
def stored(repository):
    return repository.readonly_session("main").store


@pytest.fixture
def session(repository):
    return repository.writable_session("main")


def test_xarray_reads(stored):
    xr.testing.assert_identical(open_zarr(stored).compute(), days(4))
    xr.testing.assert_identical(xr.open_dataset(stored, engine="zarrdask").load(), days(4))


def test_the_hierarchy_is_read(stored):
    group = zarrdask.open_group(stored)
    assert sorted(group) == ["n", "t", "time", "y"]
    assert zarrdask.verify(stored).problems == ()
    copied = {}
    zarrdask.copy(stored, copied)
    np.testing.assert_array_equal(zarrdask.open_array(copied, "t")[...], days(4).t)


def test_a_cluster_reads(stored, cluster_address):
    from distributed import Client

    with Client(cluster_address):
        np.testing.assert_array_equal(open_zarr(stored).t.compute(), days(4).t)


def test_what_is_written_is_committed(repository, session):
    ds = days(6, chunks=(2, 5, 4))
    to_zarr(ds, session.store, mode="w")
    to_zarr(ds.isel(time=[2]) * 2, session.store, region="auto")
    zarrdask.to_zarr(da.ones((4, 4), chunks=3), session.store, "more/ones", chunks=(2, 2))
    session.commit("six days")
    stored = repository.readonly_session("main").store
    expected = days(6).t.values
    expected[2] *= 2
    np.testing.assert_array_equal(open_zarr(stored).t, expected)
    np.testing.assert_array_equal(xr.open_zarr(stored, consolidated=False).t, expected)
    assert (zarrdask.open_array(stored, "more/ones")[...] == 1).all()


def test_a_read_only_session_is_not_written(stored):
    with pytest.raises(ReadOnlyError):
        to_zarr(days(4), stored, mode="a")


def test_other_processes_do_not_write(session, repository, cluster_address):
    from distributed import Client

    ds = days(4, chunks=(2, 5, 3))
    writes = (
        lambda: to_zarr(ds, session.store, group="new"),
        lambda: to_zarr(ds, session.store, append_dim="time"),
        lambda: zarrdask.to_zarr(da.ones(4, chunks=2), session.store, "new"),
        lambda: zarrdask.append(da.ones(4, chunks=2), session.store, "n"),
    )
    for write in writes:
        with dask.config.set(scheduler="processes"), pytest.raises(StoreError, match="one process"):
            write()
    # They fail before anything is changed.
    assert not session.has_uncommitted_changes
    with Client(cluster_address), pytest.raises(StoreError, match="one process"):
        to_zarr(ds, repository.writable_session("main").fork().store, group="new")


def test_the_error_on_a_cluster_says_what_to_do(session, cluster_address):
    from distributed import Client

    store = session.store
    with Client(cluster_address) as client:
        with pytest.raises(StoreError, match='scheduler "threads", or read from a read-only'):
            zarrdask.to_zarr(da.ones(4, chunks=2), store, "ones")
        with pytest.raises(StoreError, match='scheduler "threads", or read from a read-only'):
            zarrdask.copy(store, {}, scheduler=client)
        with dask.config.set(scheduler="threads"):
            zarrdask.to_zarr(da.ones(4, chunks=2), store, "ones")
    assert zarrdask.open_array(store, "ones")[...].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("chunks", [None, 1])
def test_an_append(session, repository, chunks):
    to_zarr(days(3, 4, chunks=chunks), session.store, append_dim="time")
    session.commit("seven days")
    stored = repository.readonly_session("main").store
    xr.testing.assert_identical(open_zarr(stored).compute(), days(7))
    session = repository.writable_session("main")
    zarrdask.append(da.ones(2, chunks=1), session.store, "n")
    array = zarrdask.open_array(session.store, "n", mode="r+")
    assert array.append(range(20)) == (29,)
    assert array[-22:].tolist() == [1, 1, *range(20)]
    with pytest.raises(ValueError, match="no number"):
        array.append(["no number"])
    assert zarrdask.open_array(session.store, "n").shape == (29,)


def test_an_append_that_fails_changes_nothing(session):
    def fail(block, block_id):
        if block_id[0]:
            raise RuntimeError("no such values")
        return block

    bad = days(6, 4, chunks=1)
    bad["t"] = bad.t.copy(data=bad.t.data.map_blocks(fail, dtype="f8", meta=np.empty((0, 0, 0))))
    with pytest.raises(RuntimeError, match="no such values"):
        to_zarr(bad, session.store, append_dim="time")
    xr.testing.assert_identical(open_zarr(session.store).compute(), days(4))
    x = da.ones(6, chunks=1).map_blocks(fail, dtype="f8", meta=np.empty(0))
    with pytest.raises(RuntimeError, match="no such values"):
        zarrdask.append(x, session.store, "n")
    assert zarrdask.open_array(session.store, "n").shape == (4,)


def test_two_sessions_of_one_snapshot_are_different_sources(repository):
    sessions = [repository.writable_session("main") for _ in range(2)]
    for value, session in enumerate(sessions):
        zarrdask.open_array(session.store, "n", mode="r+")[...] = value
    lazy = [zarrdask.from_zarr(session.store, "n") for session in sessions]
    for value, result in enumerate(dask.compute(*lazy, scheduler="threads")):
        assert (result == value).all()
