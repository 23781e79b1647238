"""Times of files identify what was written."""

import os

import pytest

from zarrdask.storage.local import file_times
from zarrdask.storage.local.file_times import TimedFile
from zarrdask.storage.local.open_file import stamp_in

pytestmark = pytest.mark.skipif(
    os.utime not in os.supports_fd, reason="the time of an open file can't be set here"
)


@pytest.fixture
def files(tmp_path):
    """Return the descriptors of two open files."""
    flags = os.O_RDWR | os.O_CREAT
    opened = [os.open(tmp_path / name, flags) for name in "ab"]
    yield opened
    for file in opened:
        os.close(file)


def test_a_value_is_written_with_the_stamp_of_its_version(files):
    file, _ = files
    stamp = TimedFile(file).write(memoryview(b"value"))
    assert stamp == stamp_in(os.fstat(file))
    assert os.pread(file, 9, 0) == b"value"


def test_a_marked_file_has_a_time_before_it_was_written(files):
    file, _ = files
    before = os.fstat(file).st_mtime_ns
    TimedFile(file).mark()
    assert os.fstat(file).st_mtime_ns < before


def test_a_copy_keeps_the_time_of_an_old_file(files):
    old, copy = files
    os.utime(old, ns=(10**18, 10**18 + 12345))
    settled = pytest.MonkeyPatch()
    with settled.context() as patch:
        patch.setattr(file_times, "settled_version", lambda file: (1,))
        TimedFile(copy).keep_time(TimedFile(old))
    assert os.fstat(copy).st_mtime_ns == os.fstat(old).st_mtime_ns


def test_a_copy_of_a_file_that_was_just_written_has_another_time(files):
    new, copy = files
    os.write(new, b"value")
    TimedFile(copy).keep_time(TimedFile(new))
    assert os.fstat(copy).st_mtime_ns != os.fstat(new).st_mtime_ns


def test_files_are_compared_by_their_bytes(files):
    one, other = map(TimedFile, files)
    os.write(one.fd, b"value")
    assert not one.has_bytes_of(other, 5)
    os.write(other.fd, b"value")
    assert one.has_bytes_of(other, 5)
