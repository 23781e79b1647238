"""What works on Linux also works without the system calls that macOS and Windows lack."""

from contextlib import ExitStack, closing

import pytest

import zarrdask
from tests.storage.platforms import PLATFORMS, Process


@pytest.fixture(scope="module", params=PLATFORMS)
def pool(request):
    """Two processes that run on the platform: all tests share them."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Process(request.param))) for _ in range(2)]


@pytest.fixture
def platform(pool):
    return pool[0]


VERBS = """
import zarrdask
place = sys.argv[1]
values = np.arange(20 * 30).reshape(20, 30)
"""


def test_arrays_are_written_in_part_and_read(platform, tmp_path):
    platform.run(
        VERBS
        + """
z = zarrdask.create_array(f"{place}/a", shape=(20, 30), chunks=(7, 8), dtype="i8")
z[...] = values
z[3:9, 5:20] = -1
expected = values.copy()
expected[3:9, 5:20] = -1
assert np.array_equal(zarrdask.open_array(f"{place}/a")[...], expected)
assert np.array_equal(zarrdask.open_array(f"file://{place}/a")[4, :], expected[4])
s = zarrdask.create_array(f"{place}/s", shape=(20, 30), chunks=(2, 3), shards=(10, 15), dtype="i8")
s[...] = values
s[:, 7] = 0
assert s[:, 6:9].tolist() == [[row[6], 0, row[8]] for row in values.tolist()]
s.resize((25, 10))
assert s.shape == (25, 10) and s[19, 9] == values[19, 9]
""",
        tmp_path,
    )


def test_threads_that_change_parts_of_a_chunk_lose_nothing(platform, tmp_path):
    platform.run(
        VERBS
        + """
z = zarrdask.create_array(f"{place}/a", shape=64, chunks=64, dtype="i8")
def write(start):
    for i in range(start, 64, 8):
        zarrdask.open_array(f"{place}/a", mode="r+")[i] = i + 1
threads = [threading.Thread(target=write, args=(start,)) for start in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert z[...].tolist() == list(range(1, 65))
""",
        tmp_path,
    )


def test_processes_that_change_parts_of_a_chunk_lose_nothing(pool, tmp_path):
    z = zarrdask.create_array(tmp_path / "a", shape=40, chunks=40, dtype="i8")
    script = (
        VERBS
        + """
for i in range(int(sys.argv[2]), 40, 2):
    zarrdask.open_array(f"{place}/a", mode="r+")[i] = i + 1
"""
    )
    for start, process in enumerate(pool):
        process.start(script, tmp_path, start)
    for process in pool:
        process.finish()
    assert z[...].tolist() == list(range(1, 41))


def test_the_verbs(platform, tmp_path):
    platform.run(
        VERBS
        + """
import dask.array as da
x = da.from_array(values, chunks=(6, 30))
zarrdask.to_zarr(x, f"{place}/a")
zarrdask.to_zarr(x + 1, f"{place}/a", overwrite=True)
zarrdask.append(x, f"{place}/a", axis=0)
expected = np.concatenate([values + 1, values])
assert np.array_equal(zarrdask.from_zarr(f"{place}/a").compute(), expected)
zarrdask.copy(f"{place}/a", f"{place}/b")
zarrdask.copy(f"{place}/a", f"{place}/packed.zip")
zarrdask.rechunk(f"{place}/a", f"{place}/c", chunks=(40, 3), max_mem="1MiB").execute()
for name in ("b", "packed.zip", "c"):
    assert np.array_equal(zarrdask.open_array(f"{place}/{name}")[...], expected), name
assert not zarrdask.verify(f"{place}/a").problems
assert not [name for name in os.listdir(place) if name.startswith(".")]
""",
        tmp_path,
    )


def test_zip_archives_are_changed_while_they_are_open(platform, tmp_path):
    platform.run(
        VERBS
        + """
z = zarrdask.create_array(f"{place}/a.zip", shape=(20, 30), chunks=(7, 8), dtype="i8")
z[...] = values
reader = zarrdask.open_array(f"{place}/a.zip")
assert reader[0, 1] == 1
z[0, :] = 5
assert (zarrdask.open_array(f"{place}/a.zip")[0] == 5).all()
assert np.array_equal(zarrdask.open_array(f"{place}/a.zip")[1:], values[1:])
assert os.listdir(place) == ["a.zip"]
""",
        tmp_path,
    )


def test_an_archive_has_one_writer(platform, tmp_path):
    platform.run(
        VERBS
        + """
from zarrdask.storage.zip.store import ZipStore
from contextlib import ExitStack
from zarrdask.storage.zip.lock import lock_archive
store = ZipStore(f"{place}/a.zip")
store.set("a", b"1")
with ExitStack() as stack:
    lock_archive(f"{place}/a.zip", stack)
    try:
        store.set("a", b"2")
    except zarrdask.errors.StoreError as error:
        assert "another process is writing" in str(error), error
    else:
        raise AssertionError("the archive was written")
store.set("a", b"3")
assert store.get("a") == b"3"
""",
        tmp_path,
    )


def test_links_are_not_followed_where_that_is_forbidden(platform, tmp_path):
    platform.run(
        VERBS
        + """
from zarrdask.storage.local.local_store import LocalStore
os.makedirs(f"{place}/outside"), os.makedirs(f"{place}/root/d")
pathlib.Path(f"{place}/outside/key").write_bytes(b"secret")
os.symlink(f"{place}/outside", f"{place}/root/link")
os.symlink(f"{place}/outside/key", f"{place}/root/d/key")
strict, lenient = LocalStore(f"{place}/root", follow_links=False), LocalStore(f"{place}/root")
assert lenient.get("link/key") == lenient.get("d/key") == b"secret"
for key in ("link/key", "d/key"):
    try:
        strict.get(key)
    except zarrdask.errors.LinkError:
        pass
    else:
        raise AssertionError(key)
lenient.erase("d/key")
lenient.erase_prefix("link/")
lenient.erase_prefix("")
assert os.listdir(f"{place}/outside") == ["key"] and lenient.get("d/key") is None
assert lenient.get("d") is None
lenient.set("d/e", b"1")
assert lenient.get("d") is None and lenient.get("d/e") == b"1"
""",
        tmp_path,
    )


def test_what_a_killed_process_left_is_removed(platform, tmp_path):
    platform.run(
        VERBS
        + """
from zarrdask.storage.local import atomic
from zarrdask.storage.local.local_store import LocalStore
gone = atomic.beside("").replace(f"-{os.getpid():x}-", "-7ffffff0-")
pathlib.Path(f"{place}/{gone}").touch()
pathlib.Path(f"{place}/{atomic.beside('')}").touch()
LocalStore(place).tidy("")
[left] = os.listdir(place)
assert f"-{os.getpid():x}-" in left
""",
        tmp_path,
    )
