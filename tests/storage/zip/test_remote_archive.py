"""Archives at URLs."""

import pickle

import fsspec
import pytest

import zarrdask
from tests.storage.zips import zipped
from zarrdask.errors import ReadOnlyError, StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.resolve import resolve
from zarrdask.storage.zip import remote_archive as zip_remote
from zarrdask.storage.zip.remote_archive import RemoteZipStore
from zarrdask.testing import VALUES, ReadOnlyStoreContract


class TestRemoteZipStore(ReadOnlyStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        path = zipped(tmp_path / "values.zip", VALUES)
        name = f"/{tmp_path.name}.zip"
        fsspec.filesystem("memory").pipe_file(name, path.read_bytes())
        return resolve(f"zip://::memory:/{name}")


class TestRemotePrefix(ReadOnlyStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        path = zipped(tmp_path / "values.zip", {f"x/{key}": VALUES[key] for key in VALUES})
        return RemoteZipStore(fsspec.filesystem("file"), str(path), "x/")


class Counting(fsspec.get_filesystem_class("file")):
    """Files, whose requests are counted."""

    protocol = "counting"
    cachable = False

    def __init__(self, **options):
        super().__init__(**options)
        self.requests = []

    def cat_file(self, path, start=None, end=None, **options):
        self.requests.append((start, end))
        return super().cat_file(path, start, end, **options)

    def cat_ranges(self, paths, starts, ends, **options):
        self.requests += zip(starts, ends, strict=True)
        values = zip(paths, starts, ends, strict=True)
        return [super(Counting, self).cat_file(*each) for each in values]


class TestRemote:
    @pytest.fixture
    def remote(self, tmp_path):
        values = {f"{n}": bytes([n % 256]) * 1000 for n in range(100)}
        path = zipped(tmp_path / "a.zip", values | {"big": bytes(1_000_000)})
        return RemoteZipStore(Counting(), str(path))

    def test_few_ranges_are_read(self, remote):
        remote.get("0")
        assert len(remote.fs.requests) == 2  # the end with the directory, the value
        remote.fs.requests.clear()
        found = [bytes(value) for value in remote.get_many(map(str, range(50)), Scratch())]
        assert found == [bytes([n]) * 1000 for n in range(50)]
        assert len(remote.fs.requests) == 1
        remote.fs.requests.clear()
        list(remote.get_ranges("big", [(500_000, 10), (900_000, 10)], Scratch()))
        assert sum(end - start for start, end in remote.fs.requests) < 1000

    def test_it_is_read_only(self, remote):
        for action in (lambda: remote.set("k", b"1"), lambda: remote.erase("0")):
            with pytest.raises(ReadOnlyError, match="local disk"):
                action()

    def test_it_pickles_and_sees_that_the_archive_is_another_one(self, remote, tmp_path):
        remote.get("0")
        packed = pickle.dumps(remote)
        assert pickle.loads(packed).get("5") == b"\5" * 1000
        zipped(tmp_path / "a.zip", {"5": b"other"})
        zip_remote._REMOTE.clear()  # as in another process
        with pytest.raises(StoreError, match="was changed after this task"):
            pickle.loads(packed).get("5")

    def test_none_is_there(self, tmp_path):
        store = resolve(f"zip://::memory://{tmp_path.name}-absent.zip")
        assert (store.get("k"), list(store.list())) == (None, [])
        with pytest.raises(zarrdask.errors.NodeNotFoundError):
            zarrdask.open(f"memory://{tmp_path.name}-absent.zip/x.zip")

    def test_a_path_within_and_options_of_the_file_system(self, tmp_path):
        name = f"/{tmp_path.name}.zip"
        data = zipped(tmp_path / "a.zip", {"x/y/k": b"1"}).read_bytes()
        fsspec.filesystem("memory").pipe_file(name, data)
        assert resolve(f"zip://x/y::memory:/{name}", {"memory": {}}).get("k") == b"1"
        assert resolve(f"memory:/{name}").get("x/y/k") == b"1"
