"""Limits of rates that processes share by a file."""

import subprocess
import sys
import time

import pytest

from zarrdask.storage.remote import shared_limit
from zarrdask.storage.remote.rate_limit import Limit
from zarrdask.storage.remote.shared_limit import SharedLimit, refused_requests


@pytest.fixture(autouse=True)
def directory(setting, tmp_path):
    """The directory of lock files."""
    directory = tmp_path / "locks"
    setting({"zarrdask.lock-directory": str(directory)})
    return directory


def limit_now(rate=20.0):
    now = time.monotonic()
    return Limit.first(rate, now, now)


def store(shared, limit):
    with shared.held(time.monotonic()) as held:
        held.limit = limit


def read(name, **options):
    return SharedLimit(name, among_processes=True, **options).read(time.monotonic())


def test_another_process_has_the_same_limit(directory):
    limit = limit_now()
    store(SharedLimit("read s3://a", among_processes=True), limit)
    assert read("read s3://a") == limit
    code = (
        "import time, dask; from zarrdask.storage.remote.shared_limit import SharedLimit; "
        f"dask.config.set({{'zarrdask.lock-directory': {str(directory)!r}}}); "
        "print(SharedLimit('read s3://a', among_processes=True).read(time.monotonic()))"
    )
    process = subprocess.run([sys.executable, "-c", code], stdout=-1, text=True, check=True)
    assert process.stdout.strip() == str(limit)


def test_limits_of_other_names_are_others(monkeypatch):
    store(SharedLimit("read s3://a", among_processes=True), limit_now())
    assert read("write s3://a") is read("read s3://b") is None
    # They may be at the same position in the file: the later one is there.
    monkeypatch.setattr(shared_limit, "LIMIT_COUNT", 1)
    limit = limit_now(30.0)
    store(SharedLimit("read s3://c", among_processes=True), limit)
    assert read("read s3://d") is None
    assert read("read s3://c") == limit


def test_a_limit_ends_for_all_processes():
    shared = SharedLimit("read s3://a", among_processes=True)
    store(shared, limit_now())
    store(shared, None)
    assert read("read s3://a") is None


def test_nothing_is_created_before_a_request_is_refused(directory):
    assert read("read s3://a") is None
    assert not directory.exists()


def test_a_limit_of_before_the_machine_was_started_again_is_not_valid():
    shared = SharedLimit("read s3://a", among_processes=True)
    store(shared, limit_now())
    assert shared.read(time.monotonic() - 100) is None


def test_a_limit_of_one_object_alone_needs_no_file(directory):
    shared, limit = SharedLimit("read s3://a"), limit_now()
    store(shared, limit)
    assert shared.read(time.monotonic()) == limit
    assert not directory.exists()


def test_where_the_file_cannot_be_used_the_process_has_a_limit_of_its_own(directory):
    directory.mkdir(mode=0o700)
    (directory / "rates").mkdir()
    shared, limit = SharedLimit("read s3://a", among_processes=True), limit_now()
    store(shared, limit)
    assert shared.read(time.monotonic()) == limit


@pytest.mark.parametrize("among_processes", [True, False])
def test_refused_requests_are_counted(among_processes):
    before = refused_requests()
    for name in "ab":
        with SharedLimit(name, among_processes=among_processes).held(time.monotonic()) as held:
            held.refusals += 2
    assert refused_requests() == before + 4


def test_a_full_disk_fails_no_request(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shared_limit, "pwrite", full)
    store(SharedLimit("read s3://a", among_processes=True), limit_now())
    assert read("read s3://a") is None
