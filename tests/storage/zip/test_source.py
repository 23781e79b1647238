"""The file of an archive: it is read while it stays the same."""

import os
import sys

import pytest

from zarrdask.errors import StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.zip.source import LocalFile, file_of, stamp_of


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"0123456789")
    return path


def test_a_file_is_read_in_parts(path):
    file = LocalFile(os.fspath(path))
    assert file.size == 10
    assert bytes(file.value(Scratch()).part(2, 3)) == b"234"
    assert bytes(file.value(Scratch()).part(-3, 3)) == b"789"


def test_a_file_that_was_changed_is_an_error(path):
    file = LocalFile(os.fspath(path))
    path.write_bytes(b"01234567890")
    with pytest.raises(StoreError, match="changed while it was read"):
        file.value(Scratch())


def test_a_file_may_change_where_its_reader_expects_that(path):
    file = LocalFile(os.fspath(path), may_change=True)
    with open(path, "ab") as opened:
        opened.write(b"more")
    assert bytes(file.value(Scratch()).part(10, 4)) == b"more"


@pytest.mark.skipif(sys.platform == "win32", reason="an open file can't be replaced")
def test_a_file_that_is_replaced_is_read_as_it_was(path, tmp_path):
    file = LocalFile(os.fspath(path))
    (tmp_path / "new").write_bytes(b"another one")
    os.replace(tmp_path / "new", path)
    assert bytes(file.value(Scratch()).part(0, 3)) == b"012"


def test_a_directory_is_no_archive(tmp_path):
    with pytest.raises((StoreError, OSError)):
        LocalFile(os.fspath(tmp_path))


def test_a_modified_file_has_another_stamp_and_is_the_same_file(path):
    before = stamp_of(os.stat(path))
    with open(path, "ab") as opened:
        opened.write(b"more")
    after = stamp_of(os.stat(path))
    assert before != after
    assert file_of(before) == file_of(after)
