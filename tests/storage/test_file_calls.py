"""The substitutes for system calls that some platforms lack."""

import errno
import os

import pytest

from zarrdask.storage import file_calls


@pytest.fixture
def file(tmp_path):
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"0123456789")
    yield fd
    os.close(fd)


def test_bytes_are_read_at_a_position(file):
    assert file_calls.seek_and_read(file, 4, 3) == b"3456"
    assert file_calls.seek_and_read(file, 4, 8) == b"89"
    parts = [memoryview(bytearray(3)), memoryview(bytearray(3))]
    assert file_calls.seek_and_read_into(file, parts, 2) == 6
    assert [bytes(part) for part in parts] == [b"234", b"567"]
    assert file_calls.seek_and_read_into(file, parts, 6) == 4
    assert bytes(parts[0]) == b"678"


def test_bytes_are_written_at_a_position(file):
    assert file_calls.seek_and_write(file, b"ab", 4) == 2
    assert os.pread(file, 20, 0) == b"0123ab6789"


def test_a_file_that_is_open_elsewhere_is_replaced_later(tmp_path, monkeypatch):
    failures, replace = [1, 2], os.replace

    def refuse(source, target):
        if failures:
            failures.pop()
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
        replace(source, target)

    monkeypatch.setattr(file_calls, "IS_WINDOWS", True)
    monkeypatch.setattr(os, "replace", refuse)
    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    file_calls.replace(f"{tmp_path}/new", f"{tmp_path}/old")
    assert (tmp_path / "old").read_text() == "new"
    failures.extend(range(10_000))
    monkeypatch.setattr(file_calls, "PATIENCE", 0.0)
    with pytest.raises(PermissionError):
        file_calls.replace(f"{tmp_path}/old", f"{tmp_path}/new")


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/C:/data", "C:/data"), ("///d:/x", "d:/x"), ("/data", "/data"), ("C:/x", "C:/x")],
)
def test_a_url_has_a_slash_before_the_drive_of_windows(path, expected, monkeypatch):
    monkeypatch.setattr(file_calls, "IS_WINDOWS", True)
    assert file_calls.path_of_url(path) == expected
