"""Reads of several arrays at the same time."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.storage.latency import FarStore
from zarrdask.arrays.chunks.together import ArrayRead, read_together
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import ChunkNotFoundError, CodecError
from zarrdask.formats.indexing.projection import Points
from zarrdask.storage.memory import MemoryStore


def arrays(store, count=6, **options):
    """Write arrays of different values and lengths, and return them with the values."""
    group = zarrdask.create_group(store)
    written = []
    for number in range(count):
        values = np.arange(100 * number, 100 * number + 8 + 4 * number, dtype="i4")
        z = group.create_array(
            f"a{number}", shape=values.shape, dtype="i4", **({"chunks": 2} | options)
        )
        z[...] = values
        written.append((z, values))
    return written


def reads(written, request=None):
    return [
        ArrayRead(
            chunks_of(z),
            request or (slice(0, len(v), 1),),
            np.empty_like(v[: 4 if request else None]),
        )
        for z, v in written
    ]


@for_each("options", [{}, {"shards": 4}, {"chunks": 64}, {"compressors": ["crc32c"]}])
@for_each("stores", [[MemoryStore], [FarStore], [MemoryStore, FarStore, FarStore]])
def test_each_read_is_complete_when_its_number_comes(options, stores):
    written = [each for store in stores for each in arrays(store(), 4, **options)]
    wanted = reads(written)
    numbers = []
    for number in read_together(wanted):
        np.testing.assert_array_equal(wanted[number].out, written[number][1])
        numbers.append(number)
    assert sorted(numbers) == [*range(len(written))]


def test_points_and_nothing():
    written = arrays(FarStore(seconds=0))
    wanted = reads(written, Points((np.array([0, 3, 3, 7]),)))
    wanted.append(ArrayRead(chunks_of(written[0][0]), (slice(3, 3, 1),), np.empty(0, "i4")))
    assert sorted(read_together(wanted)) == [*range(len(wanted))]
    for (_, values), read in zip(written, wanted, strict=False):
        np.testing.assert_array_equal(read.out, values[[0, 3, 3, 7]])
    assert [*read_together([])] == []


def test_the_requests_of_all_arrays_are_in_flight_together():
    store = FarStore(seconds=0.02)
    written = arrays(store, 8)
    store.clear()
    wanted = reads(written)
    for _ in read_together(wanted):
        pass
    count = sum(z.nchunks for z, _ in written)
    assert len(store.calls) == count > 64
    assert store.rounds <= 3
    assert store.most > 32


def test_indexes_of_shards_are_requested_together():
    store = FarStore(seconds=0.02)
    written = arrays(store, 6, chunks=1, shards=8)
    store.clear()
    for _ in read_together(reads(written, (slice(1, 5, 1),))):
        pass
    assert store.rounds <= 2


@for_each("store", [MemoryStore, FarStore])
def test_an_error_names_the_chunk(store):
    store = store()
    written = arrays(store, compressors=["crc32c"])
    store.set("a3/c/1", b"?")
    with pytest.raises(CodecError, match="a3/c/1"):
        [*read_together(reads(written))]
    store.erase("a3/c/1")
    strict = [(zarrdask.open_array(z, missing="error"), values) for z, values in written]
    with pytest.raises(ChunkNotFoundError, match="a3/c/1"):
        [*read_together(reads(strict))]
