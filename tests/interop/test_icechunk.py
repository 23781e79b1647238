"""Stores of icechunk's sessions: read and written by every scheduler."""

from contextlib import ExitStack

import dask
import dask.array as da
import icechunk
import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.test_examples import check_example
from tests.xarray.writes import days
from zarrdask.errors import ReadOnlyError, SelectionError, StoreError
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


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_an_array_whose_metadata_come_last_is_written(session, repository, scheduler):
    x = da.from_array(_grid(12, 8), chunks=(5, 3))
    with dask.config.set(scheduler=scheduler, num_workers=2):
        zarrdask.to_zarr(x, session.store, "below/a", chunks=(4, 4), commit="last")
        later = zarrdask.to_zarr(
            {"b": x}, session.store, chunks=(4, 4), commit="last", compute=False
        )
        later.compute()
        zarrdask.to_zarr(x + 1, session.store, "b", commit="last", overwrite=True)
    assert "b" not in zarrdask.open_group(repository.readonly_session("main").store)
    session.commit("written")
    root = zarrdask.open_group(repository.readonly_session("main").store)
    np.testing.assert_array_equal(root["below/a"][...], _grid(12, 8))
    np.testing.assert_array_equal(root["b"][...], _grid(12, 8) + 1)


def test_a_read_only_session_is_not_written(stored):
    with pytest.raises(ReadOnlyError):
        to_zarr(days(4), stored, mode="a")


def _grid(*shape):
    return np.arange(np.prod(shape)).reshape(shape)


@pytest.fixture
def elsewhere(cluster_address):
    """Tasks run in other processes, which can't see the session."""
    from distributed import Client

    with Client(cluster_address):
        yield


def test_other_processes_write(session, repository, elsewhere):
    x = da.from_array(_grid(30, 20), chunks=(7, 9))
    # Blocks share chunks of 10, and write parts of stored ones.
    zarrdask.to_zarr(x, session.store, "a", chunks=(10, 10))
    zarrdask.to_zarr(
        x[:15] * 2, session.store, "a", region=(slice(12, 27), slice(None)), progress=False
    )
    zarrdask.append(x, session.store, "a")
    session.commit("written elsewhere")
    expected = np.concatenate([_grid(30, 20)] * 2)
    expected[12:27] = _grid(30, 20)[:15] * 2
    stored = repository.readonly_session("main").store
    np.testing.assert_array_equal(zarrdask.open_array(stored, "a")[...], expected)


def test_a_pool_of_processes_writes(session):
    x = da.from_array(_grid(30, 20), chunks=(7, 9))
    with dask.config.set(scheduler="processes", num_workers=2):
        zarrdask.to_zarr(x, session.store, "a", chunks=(10, 10))
    np.testing.assert_array_equal(zarrdask.open_array(session.store, "a")[...], _grid(30, 20))


def test_other_processes_write_datasets(session, repository, elsewhere):
    to_zarr(days(4, chunks=(2, 5, 3)), session.store, group="new")
    to_zarr(days(3, 4, chunks=1), session.store, group="new", append_dim="time")
    session.commit("written elsewhere")
    stored = repository.readonly_session("main").store
    xr.testing.assert_identical(open_zarr(stored, group="new").compute(), days(7))


def test_other_processes_write_later(session, repository, elsewhere):
    x = da.from_array(_grid(30, 20), chunks=(7, 9))
    delayed = zarrdask.to_zarr(x, session.store, "a", chunks=(10, 10), compute=False)
    ds = to_zarr(days(4, chunks=(2, 5, 3)), session.store, group="new", compute=False)
    assert dask.compute(delayed, ds) == (None, None)
    session.commit("written elsewhere")
    stored = repository.readonly_session("main").store
    np.testing.assert_array_equal(zarrdask.open_array(stored, "a")[...], _grid(30, 20))
    xr.testing.assert_identical(open_zarr(stored, group="new").compute(), days(4))


def test_a_future_brings_what_was_written(session, cluster_address):
    from distributed import Client

    x = da.from_array(_grid(30), chunks=7)
    delayed = zarrdask.to_zarr(x, session.store, "a", chunks=10, compute=False)
    with Client(cluster_address) as client:
        future = client.compute(delayed)
        assert future.result() is None
        array = zarrdask.open_array(session.store, "a", mode="r+")
        array[:10] = -1
        assert future.result() is None
    # What was merged once is not merged over newer values.
    np.testing.assert_array_equal(array[...], [-1] * 10 + list(range(10, 30)))


def test_threads_write_later_what_other_processes_could(session):
    x = da.from_array(_grid(30), chunks=7)
    zarrdask.to_zarr(x, session.store, "a", chunks=10, compute=False).compute(scheduler="threads")
    later = [
        zarrdask.to_zarr(x[:5], session.store, "a", region=region, compute=False)
        for region in (slice(1, 6), slice(6, 11))
    ]
    # They share a chunk, which each of them reads when it is computed.
    for each in later:
        each.compute(scheduler="threads")
    expected = [0, *range(5), *range(5), *range(11, 30)]
    np.testing.assert_array_equal(zarrdask.open_array(session.store, "a")[...], expected)


def test_a_failure_elsewhere_leaves_what_is_written_out(session, elsewhere):
    def fail(block, block_id):
        if block_id[0]:
            raise RuntimeError("no such values")
        return block

    x = da.ones(6, chunks=1).map_blocks(fail, dtype="f8", meta=np.empty(0))
    with pytest.raises(RuntimeError, match="no such values"):
        zarrdask.append(x, session.store, "n")
    assert zarrdask.open_array(session.store, "n").shape == (4,)


def test_what_needs_the_session_itself_fails_before_anything_is_changed(
    session, repository, elsewhere
):
    x = da.ones(4, chunks=2)
    calls = (
        lambda: zarrdask.from_zarr(session.store, "n"),
        lambda: zarrdask.append(x, session.store, "n", compute=False),
        lambda: zarrdask.to_zarr(x[:1], session.store, "n", region=slice(1, 2), compute=False),
        lambda: zarrdask.to_zarr(x, session.store, "new", return_stored=True),
        lambda: to_zarr(days(4, chunks=(2, 5, 3)), session.store, append_dim="time", compute=False),
    )
    for call in calls:
        with pytest.raises(StoreError, match="commit the changes first"):
            call()
    assert not session.has_uncommitted_changes


@pytest.fixture(params=["threads", "cluster"])
def anywhere(request, cluster_address):
    """Tasks run in threads of this process, or in other processes."""
    from distributed import Client

    with ExitStack() as stack:
        if request.param == "threads":
            stack.enter_context(dask.config.set(scheduler="threads"))
        else:
            stack.enter_context(Client(cluster_address))
        yield


@pytest.fixture
def source():
    """A group of one array in a local store, with its values."""
    store, values = {}, _grid(60, 50)
    zarrdask.to_zarr({"sub/a": values}, store, chunks=(7, 9), attributes={"units": "m"})
    return store, values


@pytest.fixture
def on_disk(source, tmp_path):
    zarrdask.copy(source[0], tmp_path / "source")
    return tmp_path / "source", source[1]


@pytest.mark.parametrize("memory", ["16 KiB", "64 MiB"])  # with temporary objects, and without
def test_a_rechunk(session, repository, on_disk, anywhere, memory):
    source, values = on_disk
    options = {"chunks": (60, 3), "max_mem": memory, "overwrite": True}
    zarrdask.rechunk(source / "sub" / "a", session.store, **options).execute(progress=False)
    session.commit("rechunked")
    array = zarrdask.open_array(repository.readonly_session("main").store)
    assert array.chunks == (60, 3)
    np.testing.assert_array_equal(array[...], values)


def test_a_rechunk_of_a_group_and_of_blocks(session, repository, on_disk, anywhere):
    source, values = on_disk
    plan = zarrdask.rechunk(source, session.store, chunks=(20, 10), overwrite=True)
    plan.execute(progress=False)
    session.commit("a group")
    group = zarrdask.open_group(repository.readonly_session("main").store)
    np.testing.assert_array_equal(group["sub/a"][...], values)
    assert group["sub/a"].attrs["units"] == "m"
    session = repository.writable_session("main")
    x = da.from_array(values, chunks=(20, 25))
    plan = zarrdask.rechunk(x, session.store, chunks=(20, 25), overwrite=True)
    plan.execute(progress=False)
    np.testing.assert_array_equal(zarrdask.open_array(session.store)[...], values)


def test_a_rechunk_that_appends(session, on_disk, anywhere):
    source, values = on_disk
    zarrdask.to_zarr(values[:33], session.store, "b", chunks=(8, 50))
    target = zarrdask.open_array(session.store, "b", mode="r+")
    zarrdask.rechunk(source / "sub" / "a", target, append=0).execute(progress=False)
    np.testing.assert_array_equal(zarrdask.open_array(session.store, "b")[...], values)


@pytest.mark.parametrize("changes", [{}, {"chunks": (5, 50)}, {"shards": (14, 18)}])
def test_a_copy(session, repository, on_disk, anywhere, changes):
    source, values = on_disk
    zarrdask.copy(source, session.store, "copied", **changes)
    session.commit("copied")
    array = zarrdask.open_array(repository.readonly_session("main").store, "copied/sub/a")
    np.testing.assert_array_equal(array[...], values)


def test_a_rewrite_that_fails_says_what_the_session_holds(session, on_disk):
    source, _ = on_disk
    [key] = [path for path in source.rglob("c/0/0") if path.is_file()]
    key.write_bytes(b"damaged")
    with pytest.raises(zarrdask.errors.ZarrdaskError) as error:
        zarrdask.copy(source, session.store, "copied", chunks=(60, 50), scheduler="threads")
    assert "write them again with overwrite=True" in " ".join(error.value.__notes__)


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


@pytest.mark.parametrize(
    ("layout", "n"), [({"chunks": (3, 4)}, 6), ({"chunks": (3, 2), "shards": (6, 4)}, 12)]
)
def test_leading_chunks_are_dropped(repository, layout, n):
    session = repository.writable_session("main")
    names = ("time", "x")
    z = zarrdask.create_array(
        session.store, "rolling", shape=(20, 9), dtype="i4", dimension_names=names, **layout
    )
    z[...] = values = _grid(20, 9)
    z.erase(np.s_[15:18, :4])
    values[15:18, :4] = 0
    session.commit("20 days")
    session = repository.writable_session("main")
    z = zarrdask.open_array(session.store, "rolling", mode="r+")
    assert z.drop_before("time", 0) == (20, 9)
    with pytest.raises(SelectionError, match=r"n: only whole .* a multiple of \d+ up to"):
        z.drop_before("time", n + 1)
    assert z.drop_before("time", n) == z.shape == (20 - n, 9)
    zarrdask.append(da.full((3, 9), 7, dtype="i4"), session.store, "rolling")
    session.commit("the first days are dropped")
    stored = zarrdask.open_array(repository.readonly_session("main").store, "rolling")
    np.testing.assert_array_equal(stored[...], np.vstack([values[n:], np.full((3, 9), 7)]))
    with pytest.raises(ReadOnlyError):
        stored.drop_before("time", n)


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


def test_the_example_prints_what_the_gallery_shows(tmp_path, capsys):
    check_example("versions", tmp_path, capsys)


def test_pyramids_are_recorded_and_updated():
    image = zarrdask.create_array({}, shape=(16, 16), dtype="u1", chunks=4)
    image[...] = np.arange(256).reshape(16, 16)
    session = icechunk.Repository.create(icechunk.in_memory_storage()).writable_session("main")
    group = zarrdask.pyramid(image, session, levels=3).execute("threads", progress=False)
    assert zarrdask.verify(session).ok
    group["0"][:2, :2] = 200
    assert [problem.kind for problem in zarrdask.verify(session).failures] == ["stale"]
    group["0"].append(image[:8])
    group = zarrdask.update_pyramid(session).execute(progress=False)
    assert zarrdask.verify(session).ok
    other = zarrdask.pyramid(group["0"], {}, levels=3).execute("threads", progress=False)
    for name in "12":
        np.testing.assert_array_equal(group[name][...], other[name][...])
