"""Jobs in processes of their own write to a session of icechunk by a fork that is a file."""

import pickle

import icechunk
import numpy as np
import pytest

import zarrdask
from tests.processes import Program
from zarrdask.errors import MetadataError, StoreError, UnsupportedError
from zarrdask.storage import SavedFork

VALUES = np.arange(40 * 6).reshape(40, 6)

_JOB = """
import sys
import numpy as np
import zarrdask

def write():
    url, number = sys.argv[1], int(sys.argv[2])
    rows = slice(10 * number, 10 * number + 10)
    values = np.arange(40 * 6).reshape(40, 6)[rows]
    with zarrdask.storage.SavedFork(url).changing(f"part-{number}") as store:
        zarrdask.to_zarr(values, store, "a", region=(rows, slice(None)))
        if number == 3:
            raise SystemExit(1)

if __name__ == "__main__":
    write()
"""


@pytest.fixture
def repository(tmp_path):
    storage = icechunk.local_filesystem_storage(str(tmp_path / "repository"))
    repository = icechunk.Repository.create(storage)
    session = repository.writable_session("main")
    zarrdask.create_array(session.store, "a", shape=(40, 6), chunks=(5, 6), dtype="i8")
    session.commit("an empty array")
    return repository


@pytest.fixture
def run(repository, tmp_path):
    """The URL of a saved fork."""
    SavedFork(tmp_path / "run").save(repository.writable_session("main"))
    return tmp_path / "run"


def _write(run, job, region, value):
    with SavedFork(run).changing(job) as store:
        zarrdask.open_array(store, "a", mode="r+")[region] = value


def test_jobs_write_and_one_process_merges(repository, run):
    jobs = [Program(_JOB, run, number) for number in (2, 3)]
    ended = [job.finish() for job in jobs]
    assert [each.code for each in ended] == [0, 1], ended
    for number in range(2):
        rows = slice(10 * number, 10 * number + 10)
        _write(run, f"part-{number}", rows, VALUES[rows])
    session = repository.writable_session("main")
    fork, jobs = SavedFork(run), [f"part-{number}" for number in range(4)]
    with pytest.raises(StoreError, match="part-3"):
        fork.merge(session, jobs=jobs)
    assert not session.has_uncommitted_changes
    _write(run, "part-3", slice(30, 40), VALUES[30:])
    assert fork.merge(session, jobs=jobs) == tuple(jobs)
    session.commit("all parts")
    stored = zarrdask.open_array(repository.readonly_session("main"), "a")
    np.testing.assert_array_equal(stored[...], VALUES)


def test_a_job_that_runs_again_replaces_its_changes(repository, run):
    _write(run, "one", slice(0, 10), 1)
    _write(run, "one", slice(5, 10), 2)
    session = repository.writable_session("main")
    assert SavedFork(run).merge(session) == ("one",)
    assert zarrdask.open_array(session, "a")[::5, 0].tolist() == [0, 2, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("job", ["../part", "a/b", ".part", "..", 3])
def test_names_of_jobs_whose_changes_would_not_be_found_are_refused(run, job):
    before = sorted(run.rglob("*"))
    with pytest.raises(MetadataError, match="name of a job"):
        _write(run, job, slice(0, 5), 1)
    assert sorted(run.rglob("*")) == before


def test_jobs_that_change_the_same_are_not_merged(repository, run):
    _write(run, "one", slice(0, 7), 1)
    _write(run, "two", slice(7, 10), 2)
    session = repository.writable_session("main")
    with pytest.raises(StoreError, match=r"/a/c/1/0.*one and two"):
        SavedFork(run).merge(session)
    assert not session.has_uncommitted_changes


def test_the_session_has_to_be_of_the_snapshot_of_the_fork(repository, run, tmp_path):
    base = repository.writable_session("main").snapshot_id
    _write(run, "one", slice(0, 5), 1)
    session = repository.writable_session("main")
    zarrdask.open_array(session, "a", mode="r+")[35:] = 9
    with pytest.raises(StoreError, match="uncommitted changes"):
        SavedFork(tmp_path / "other").save(session)
    session.commit("by another writer")
    with pytest.raises(StoreError, match="another snapshot"):
        SavedFork(run).merge(repository.writable_session("main"))
    repository.create_branch("run", base)
    session = repository.writable_session("run")
    SavedFork(run).merge(session)
    session.commit("by the jobs")
    stored = zarrdask.open_array(repository.readonly_session("run"), "a")
    assert (stored[:5].min(), stored[5:].max()) == (1, 0)


def test_what_can_not_be_saved_or_loaded_is_an_error(repository, run, tmp_path):
    with pytest.raises(StoreError, match="saved here before"):
        SavedFork(run).save(repository.writable_session("main"))
    for value in (repository.readonly_session("main"), {}):
        with pytest.raises(UnsupportedError, match="can't be forked"):
            SavedFork(tmp_path / "new").save(value)
    with (
        pytest.raises(StoreError, match="no fork was saved here"),
        SavedFork(tmp_path / "new").changing(),
    ):
        pass


@pytest.mark.parametrize("value", [b"", b"damaged", pickle.dumps(7)])
def test_a_damaged_file_is_named(repository, run, value):
    _write(run, "one", np.s_[:10], 1)
    for name in ("changes/one", "fork"):
        (run / name).write_bytes(value)
        with pytest.raises(StoreError, match="damaged") as caught:
            SavedFork(run).merge(repository.writable_session("main"))
        assert caught.value.key.endswith(f"/run/{name}")
