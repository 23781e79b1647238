"""What arrives damaged from a store with latency is requested once more."""

import numpy as np
import pytest

import zarrdask
from tests.storage.latency import FarStore
from zarrdask.errors import CodecError

VALUES = np.arange(64, dtype="i4").reshape(8, 8)


class Damaging(FarStore):
    """A store whose answers for one unit have no bytes but zeros, a number of times."""

    def __init__(self, inner, key, times):
        super().__init__(inner, seconds=0)
        self.key, self.times = key, times

    def _answer(self, key, value):
        if key != self.key or value is None or not self.times:
            return value
        self.times -= 1
        return bytes(len(value))

    def get(self, key):
        return self._answer(key, super().get(key))

    def get_range(self, key, start, length=None):
        return self._answer(key, super().get_range(key, start, length))


def stored(**options):
    values = {}
    options = {"codecs": ["bytes", "crc32c"], "chunks": (2, 2)} | options
    z = zarrdask.create_array(values, shape=VALUES.shape, dtype="i4", **options)
    z[...] = VALUES
    return z.store


KINDS = pytest.mark.parametrize(
    ("options", "key"),
    [
        ({}, "c/1/2"),
        ({"chunks": ((2, 2, 4), (3, 5))}, "c/1/1"),
        ({"shards": (4, 4)}, "c/1/1"),
    ],
    ids=["chunks", "rectilinear", "shards"],
)


@KINDS
@pytest.mark.parametrize("part", [(), (slice(1, 7), slice(1, 7))], ids=["all", "part"])
def test_it_is_read(options, key, part):
    far = Damaging(stored(**options), key, 1)
    np.testing.assert_array_equal(zarrdask.open_array(far)[part], VALUES[part])
    assert far.times == 0


@KINDS
def test_it_is_an_error_if_it_is_damaged_again(options, key):
    far = Damaging(stored(**options), key, -1)
    with pytest.raises(CodecError) as caught:
        zarrdask.open_array(far)[...]
    assert str(caught.value).count(key) == 1
    assert far.keys.count(key) <= 4  # each time one request, of a shard two
