"""The directory of a cache: what is damaged is never returned, and the size is limited."""

import errno
import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random

import pytest

from zarrdask.errors import StoreError
from zarrdask.storage.cache import cache_directory
from zarrdask.storage.cache.cache_directory import CacheDirectory, Entry

CONTEXT = multiprocessing.get_context("forkserver")
VALUE = Entry(bytes(range(256)) * 40, 10_240, '"tag"')


def name_of(number):
    return number.to_bytes(16, "little")


@pytest.fixture
def cache(tmp_path):
    return CacheDirectory.below(str(tmp_path), 2**20)


def files(cache):
    """Return the paths of the files of entries."""
    return [os.path.join(at, each) for at, _, names in os.walk(cache.path) for each in names
            if at != cache.path]  # fmt: skip


def size_of(cache):
    size = 0
    for path in files(cache):
        with suppress(FileNotFoundError):  # another process has just removed it
            size += -(-os.stat(path).st_size // 4096) * 4096
    return size


def test_what_was_put_is_got(cache):
    assert cache.get(name_of(1)) is None
    for number, entry in enumerate([VALUE, Entry(b"", 0, ""), Entry(None, 0, ""), VALUE]):
        cache.put(name_of(number), entry)
        assert cache.get(name_of(number)) == entry
    cache.put(name_of(0), Entry(b"new", 3, '"ü"'))
    assert cache.get(name_of(0)) == Entry(b"new", 3, '"ü"')


def test_other_users_can_not_read_it(cache, tmp_path):
    if sys.platform == "win32":
        return
    cache.put(name_of(1), VALUE)
    assert os.stat(cache.path).st_mode & 0o777 == 0o700
    os.chmod(cache.path, 0o755)
    with pytest.raises(StoreError, match="mode 0700"):
        CacheDirectory.below(str(tmp_path), 2**20)


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_directory_in_which_other_users_can_replace_it_is_refused(tmp_path, mode):
    (tmp_path / "open" / "below").mkdir(parents=True)
    os.chmod(tmp_path / "open", mode)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    for directory in ("open", "open/below", "open/new/er", "link"):
        with pytest.raises(StoreError, match=r"only you may write to.*sticky bit") as caught:
            CacheDirectory.below(str(tmp_path / directory), 2**20)
        assert caught.value.key == "zarrdask.cache-directory"
    assert os.listdir(tmp_path / "open") == ["below"]
    os.chmod(tmp_path / "open", mode | 0o1000)
    CacheDirectory.below(str(tmp_path / "open"), 2**20)


def test_a_directory_that_can_not_be_created_is_an_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="can't be created") as caught:
        CacheDirectory.below(str(tmp_path / "file"), 2**20)
    assert caught.value.key == "zarrdask.cache-directory"


def test_a_name_that_no_directory_can_have_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="can't be created"):
        CacheDirectory.below(f"{tmp_path}/a\0b", 2**20)


@pytest.mark.parametrize("size", [2**21, 2**42])
def test_a_damaged_file_of_any_size_is_no_entry(cache, size):
    cache.put(name_of(1), VALUE)
    (path,) = files(cache)
    try:
        os.truncate(path, size)  # a sparse file: hardly any of it is on the disk
    except OSError:
        assert size > 2**40  # more than a file of this file system can have
    else:
        assert cache.get(name_of(1)) is None
        assert files(cache) == []
    cache.put(name_of(1), VALUE)
    assert cache.get(name_of(1)) == VALUE


def test_a_damaged_file_is_no_entry(cache):
    cache.put(name_of(1), VALUE)
    (path,) = files(cache)
    with open(path, "rb") as file:
        whole = file.read()
    random = Random(0)
    damaged = [b"", whole[:1], whole[:20], whole[:-1], whole + b"x", bytes(len(whole))]
    for _ in range(200):
        at = random.randrange(len(whole))
        damaged.append(whole[:at] + bytes([whole[at] ^ 1 << random.randrange(8)]) + whole[at + 1 :])
    for content in damaged:
        with open(path, "wb") as file:
            file.write(content)
        assert cache.get(name_of(1)) is None
        assert files(cache) == []
        cache.put(name_of(1), VALUE)
    # A file of another name is damaged, too.
    cache.put(name_of(257), Entry(b"", 0, ""))
    other = next(each for each in files(cache) if each != path)
    os.replace(path, other)
    assert cache.get(name_of(257)) is None
    # A directory in the place of a file is no error, nor is a file in the place of a directory.
    os.makedirs(path)
    assert cache.get(name_of(1)) is None
    cache.put(name_of(1), VALUE)
    os.rmdir(path)
    os.rmdir(os.path.dirname(path))
    with open(os.path.dirname(path), "wb"):
        pass
    cache.put(name_of(1), VALUE)
    assert cache.get(name_of(1)) is None


@pytest.mark.parametrize("content", [b"", b"x" * 16, bytes(16), b"\xff" * 40])
def test_a_damaged_size_is_counted_anew(cache, content):
    value = Entry(bytes(40_000), 40_000, "t")
    for number in range(50):
        cache.put(name_of(number), value)
        if number % 7 == 0:
            with open(os.path.join(cache.path, "size"), "wb") as file:
                file.write(content)
        assert size_of(cache) <= cache.limit


def test_the_size_stays_close_below_the_limit(cache):
    random = Random(0)
    for number in range(400):
        value = random.randbytes(random.randrange(20_000))
        cache.put(name_of(number), Entry(value, len(value), "t"))
        if number % 5 == 0:
            assert (0.93 if number > 200 else 0) * cache.limit <= size_of(cache) <= cache.limit
    cache.put(name_of(0), Entry(bytes(2**21), 2**21, "t"))
    assert cache.get(name_of(0)) is None


def test_entries_that_were_used_last_stay(cache, monkeypatch):
    for number in range(4):
        cache.put(name_of(number), Entry(bytes(200_000), 200_000, "t"))
    for path in files(cache):
        os.utime(path, (1, 1))
    assert cache.get(name_of(2)) is not None
    for number in range(4, 8):
        cache.put(name_of(number), Entry(bytes(200_000), 200_000, "t"))
    assert [number for number in range(8) if cache.get(name_of(number))] == [2, 4, 5, 6, 7]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("call", ["pwrite", "write_whole", "replace"])
def test_a_full_disk_is_no_error(cache, monkeypatch, call, number):
    cache.put(name_of(0), VALUE)

    def fail(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(cache_directory, call, fail)
        cache.put(name_of(1), VALUE)
        cache.put(name_of(0), Entry(b"new", 3, "t"))
    assert cache.get(name_of(1)) is None
    assert cache.get(name_of(0)) == VALUE
    assert len(files(cache)) == 1
    cache.put(name_of(1), VALUE)
    assert cache.get(name_of(1)) == VALUE


def test_a_writer_that_was_stopped_holds_up_nobody(cache, monkeypatch):
    monkeypatch.setattr(cache_directory, "PATIENCE", 0.01)
    with cache.locked_total():
        cache.put(name_of(1), VALUE)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(cache.put, name_of(1), VALUE).result()
    assert cache.get(name_of(1)) is None


def _write(cache, seed, count):
    random = Random(seed)
    for _ in range(count):
        number = random.randrange(300)
        value = bytes([number % 256]) * random.randrange(30_000)
        cache.put(name_of(number), Entry(value, len(value), str(number)))
        entry = cache.get(name_of(number := random.randrange(300)))
        if entry is not None and (entry.tag != str(number) or set(entry.value) - {number % 256}):
            os._exit(1)


def _use(cache, count, kills):
    """Write in four processes, which are killed and replaced by others some times."""
    cache.put(name_of(300), VALUE)  # which no writer reads
    seeds = iter(range(100_000))
    begin = lambda: CONTEXT.Process(target=_write, args=(cache, next(seeds), count))  # noqa: E731
    writers = [begin() for _ in range(4)]
    for writer in writers:
        writer.start()
    random = Random(0)
    for _ in range(kills):
        time.sleep(random.uniform(0, 0.2))
        assert size_of(cache) <= 1.05 * cache.limit
        victim = writers.pop(random.randrange(4))
        victim.kill()
        victim.join()
        assert victim.exitcode in (0, -signal.SIGKILL)
        writers.append(begin())
        writers[-1].start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert size_of(cache) <= 1.05 * cache.limit


def test_processes_that_share_it_and_are_killed_leave_no_damage(cache):
    if sys.platform != "win32":
        _use(cache, 40, 2)


@pytest.mark.stress
@pytest.mark.timeout(600)
def test_processes_that_share_it_and_are_often_killed_leave_no_damage(cache):
    _use(cache, 200, 80)
