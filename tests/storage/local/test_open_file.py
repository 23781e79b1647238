"""Open files: parts, versions, and the errors of the system."""

import errno
import os
import time

import pytest

from tests.covering import for_each
from zarrdask.errors import StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.local import open_file
from zarrdask.storage.local.open_file import OpenFile

VALUE = bytes(range(256)) * 64


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "value"
    path.write_bytes(VALUE)
    fd = os.open(path, open_file.READ)
    yield OpenFile(fd, len(VALUE), Scratch())
    os.close(fd)


@for_each(
    "start, length, expected",
    [
        (0, 4, VALUE[:4]),
        (-4, 4, VALUE[-4:]),
        (-(10**6), 10**7, VALUE),
        (len(VALUE) - 2, 9, VALUE[-2:]),
        (10**6, 4, b""),
    ],
)
def test_a_part_ends_where_the_file_does(tmp_path, start, length, expected):
    (tmp_path / "value").write_bytes(VALUE)
    with open(tmp_path / "value", "rb") as opened:
        file = OpenFile(opened.fileno(), len(VALUE), Scratch())
        assert bytes(file.part(start, length)) == expected


def test_parts_are_read_in_their_order_and_near_ones_together(file):
    ranges = [(1, 3), (6, 2), (9000, 4), (len(VALUE) - 1, 5)]
    parts = [bytes(part) for part in file.parts(ranges)]
    assert parts == [VALUE[start : start + length] for start, length in ranges]
    assert len(OpenFile.joined(ranges)) < len(ranges)


def test_a_missing_file_has_no_parts_and_no_tag():
    missing = OpenFile(-1, 0, Scratch())
    assert missing.part(0, 4) is None
    assert [*missing.parts([(0, 1), (2, 1)])] == [None, None]
    assert missing.tag is None


def test_a_file_has_a_settled_version_when_its_times_are_old():
    now = time.time_ns()
    assert open_file.is_settled(f"{now - 10**10 + 1:x}-5")
    assert not open_file.is_settled(f"{now:x}-5")
    # Where times are whole steps of a coarse clock, the next step is far.
    coarse = now // 10**7 * 10**7 - 10**9
    assert not open_file.is_settled(f"{coarse:x}-5")


@for_each("path", ["a\0b", "a\udc80\ud800"])
def test_some_texts_are_no_names_of_files(path):
    with pytest.raises(StoreError, match="no file can have this name"):
        open_file.check_file_name(path)


@for_each(
    "number, text", [(errno.EISDIR, "found a directory"), (errno.ENXIO, "expected a regular file")]
)
def test_errors_of_the_system_say_what_to_do(number, text):
    with pytest.raises(StoreError, match=text) as caught, open_file.reported("path"):
        raise OSError(number, os.strerror(number))
    assert caught.value.key == "path"


def test_an_error_that_was_reported_already_stays():
    error = StoreError("reported", key="inner")
    with pytest.raises(StoreError) as caught, open_file.reported("outer"):
        raise error
    assert caught.value is error
