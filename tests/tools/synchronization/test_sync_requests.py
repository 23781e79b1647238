"""How many requests `sync` sends to stores whose listings have ETags; kills at each operation."""

import os
import random
from collections import Counter
from hashlib import md5

import numpy as np
import pytest

import zarrdask
from zarrdask.formats.byte_ranges import Entry, StoredObject
from zarrdask.storage import MemoryStore
from zarrdask.storage.local.local_store import LocalStore


class Bucket(MemoryStore):
    """A store that counts requests, and whose listing has MD5 digests as ETags."""

    def __init__(self, values=None):
        super().__init__()
        self.values.update(values or {})
        self.requests = Counter()

    def get(self, key):
        self.requests["get"] += 1
        return super().get(key)

    def set(self, key, value):
        self.requests["set"] += 1
        super().set(key, bytes(value))

    def erase(self, key):
        self.requests["erase"] += 1
        super().erase(key)

    def entries(self, prefix, after="", until=None, *, objects=False):
        self.requests["list"] += 1
        for key, value in self.values.items():
            tag = f'"{md5(value).hexdigest()}"'
            stored = StoredObject(key, "s3://bucket/", len(value), 1.0, tag)
            yield Entry(key, len(value), object=stored)


def test_requests_are_a_listing_of_each_and_the_changes():
    source = Bucket()
    z = zarrdask.create_array(source, shape=400, chunks=2, dtype="i4", compressors=None)
    z[...] = np.arange(1, 401)
    target = Bucket(source.values)
    z[:8] = -1
    source.requests.clear()
    assert len(zarrdask.sync(source, target).changed) == 4
    assert (source.requests["list"], target.requests["list"]) == (1, 1)
    total = sum(source.requests.values()) + sum(target.requests.values())
    assert total <= 2 + 2 * 4 + 10


def _write(place, fill, chunks):
    zarrdask.create_group(place, overwrite=True)
    for name in ("a", "b"):
        z = zarrdask.create_array(
            place, name, shape=(8,), chunks=chunks, dtype="i4", fill_value=-9, compressors=None
        )
        z[...] = fill
    zarrdask.consolidate_metadata(place)


def _killed_at(number, source, target):
    """Run `sync` in a forked process that ends at an operation on files; return whether it did."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    try:
        left = [number]

        def counted(operation):
            def run(*arguments, **options):
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return operation(*arguments, **options)

            return run

        for name in ("_put", "erase", "erase_prefix"):
            setattr(LocalStore, name, counted(getattr(LocalStore, name)))
        for name in ("replace", "rename", "mkdir", "unlink", "rmdir"):
            setattr(os, name, counted(getattr(os, name)))
        zarrdask.sync(source, target, delete=True)
        os._exit(0)
    finally:
        os._exit(1)


def _check_kills(tmp_path, setting, numbers):
    setting({"zarrdask.threads": 1, "scheduler": "synchronous"})
    source, target = tmp_path / "s", tmp_path / "t"
    _write(source, 1, 2)
    zarrdask.sync(source, target)
    for fill, number in enumerate(numbers, 2):
        # Every second source has other chunks, so that arrays are replaced.
        _write(source, fill, 2 + fill % 2)
        _killed_at(number, source, target)
        for name in ("a", "b"):
            values = {*zarrdask.open_group(target)[name][...].tolist()}
            assert values <= {fill - 1, fill}, f"killed at operation {number}"
        zarrdask.sync(source, target, delete=True)
        assert zarrdask.compare(source, target, scheduler="sync").ok


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_sync_leaves_arrays_that_can_be_read(tmp_path, setting):
    _check_kills(tmp_path, setting, [0, 3, 7])


@pytest.mark.stress
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_sixty_killed_syncs_leave_arrays_that_can_be_read(tmp_path, setting):
    numbers = random.Random(0)
    _check_kills(tmp_path, setting, [numbers.randrange(40) for _ in range(60)])
