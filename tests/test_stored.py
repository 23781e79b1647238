"""What is stored of an array of chunks of several shapes: counted, trimmed."""

import numpy as np
import pytest

import zarrdask
from zarrdask.stored import stored_units


def filled(**options):
    store = {}
    z = zarrdask.create_array(store, shape=12, dtype="u1", compressors=[], **options)
    z[...] = range(1, 13)
    return z, store


def test_units_are_known_by_their_keys():
    z, store = filled(chunks=((3, 1, 8),))
    store |= {"c/3": b"", "c/x": b"", "c/0/0": b"", "other": b""}
    assert sorted(stored_units(z.stored)) == [(0,), (1,), (2,)]
    assert z.nchunks_stored == z.nchunks == 3
    z[3:4] = 0
    assert sorted(stored_units(z.stored)) == [(0,), (2,)]


def test_a_unit_that_hangs_over_keeps_its_length_and_shows_nothing_of_what_was_there():
    z, store = filled(chunks=((3, 1, 8),))
    z.resize(6)
    assert z.chunks == ((3, 1, 2),)
    assert store["c/2"] == bytes([5, 6, 0, 0, 0, 0, 0, 0])
    z.resize(12)
    assert z.chunks == ((3, 1, 8),)
    assert z[...].tolist() == [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0]


def test_units_outside_are_erased_and_do_not_come_back():
    z, store = filled(chunks=((3, 1, 8),))
    z.resize(4)
    assert sorted(store) == ["c/0", "c/1", "zarr.json"]
    z.resize(6)
    assert z.chunks == ((3, 1, 2),)
    assert z[...].tolist() == [1, 2, 3, 4, 0, 0]
    z[...] = 9
    assert store["c/2"] == bytes([9, 9, 0, 0, 0, 0, 0, 0])


def test_what_is_appended_lies_in_chunks_of_the_last_length():
    z, store = filled(chunks=((4, 6, 4),))
    assert z.append(np.arange(101, 108)) == (19,)
    assert z.chunks == ((4, 6, 4, 4, 1),)
    assert z[...].tolist() == [*range(1, 13), *range(101, 108)]
    assert store["c/2"] == bytes([11, 12, 101, 102])
    assert store["c/4"] == bytes([107, 0, 0, 0])
    assert zarrdask.open_array(store)[...].tolist() == z[...].tolist()


def test_chunks_in_shards_of_several_shapes_are_counted():
    z, _ = filled(chunks=2, shards=((2, 6, 4),))
    assert (z.nchunks, z.nchunks_stored) == (6, 6)
    z[4:8] = 0
    assert z.nchunks_stored == 4
    z.resize(5)
    assert z.nchunks_stored == 2
    assert z[...].tolist() == [1, 2, 3, 4, 0]


@pytest.mark.parametrize("size", [0, 1, 5, 12, 30])
def test_all_sizes_after_another(size):
    z, _ = filled(chunks=((3, 1, 8),))
    z.resize(size)
    expected = [*range(1, 13), *[0] * 30][:size]
    assert z[...].tolist() == expected


def test_units_that_are_kept_outside_come_back_in_their_own_shapes():
    z, store = filled(chunks=((3, 1, 8),))
    before = dict(store)
    z.resize(2, outside="keep")
    assert z[...].tolist() == [1, 2]
    z.resize(14, outside="keep")
    assert z[...].tolist() == [*range(1, 13), 0, 0]
    assert {key for key in store if store[key] != before.get(key)} == {"zarr.json"}
