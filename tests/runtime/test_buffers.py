"""Memory of blocks that is used again."""

import gc
import pickle

import numpy as np
import pytest

from zarrdask.runtime import buffers
from zarrdask.runtime.decoded_chunks import CHUNKS, DecodedChunk

SHAPE = (2**20,)
F8 = np.dtype("f8")


@pytest.fixture(autouse=True)
def nothing_kept():
    buffers.KEPT.clear()
    CHUNKS.clear()  # those of other tests count towards what is kept
    yield
    buffers.KEPT.clear()


def address(array):
    return array.__array_interface__["data"][0]


def test_an_array_is_as_numpy_makes_it():
    for shape, dtype in [((3, 4), "f4"), ((), "i8"), ((0, 5), "f8"), ((512, 4096), ">f4")]:
        found = buffers.empty(shape, np.dtype(dtype))
        assert (found.shape, found.dtype) == (shape, np.dtype(dtype))
        assert found.flags.c_contiguous
        assert found.flags.writeable
    assert buffers.empty((2**20,), np.dtype(object))[0] is None


def test_memory_is_used_again_when_nothing_uses_it():
    first = buffers.empty(SHAPE, F8)
    place = address(first)
    del first
    again = buffers.empty((2**21,), np.dtype("i4"))
    assert address(again) == place
    assert address(buffers.empty(SHAPE, F8)) != place


def test_memory_of_two_mebibytes_is_used_again_too():
    first = buffers.empty((2**18,), F8)
    place = address(first)
    del first
    assert [piece.__array_interface__["data"][0] for piece in buffers.KEPT] == [place]


def test_a_view_keeps_the_memory():
    whole = buffers.empty(SHAPE, F8)
    whole[:] = 7
    view = whole[10:20].reshape(2, 5).T
    place = address(whole)
    del whole
    gc.collect()
    other = buffers.empty(SHAPE, F8)
    other[:] = 1
    assert address(other) != place
    assert (view == 7).all()


def test_what_is_kept_is_bounded(setting):
    setting({"zarrdask.keep-memory": 2**24})
    arrays = [buffers.empty(SHAPE, F8) for _ in range(5)]
    assert type(buffers.KEPT)() == buffers.KEPT
    del arrays
    assert sum(piece.nbytes for piece in buffers.KEPT) == 2**24
    big = buffers.empty((2**22,), F8)
    del big
    assert sum(piece.nbytes for piece in buffers.KEPT) == 2**24


def test_the_cache_of_decoded_chunks_counts(setting):
    setting({"zarrdask.keep-memory": 2**24, "zarrdask.cache-size": 2**24})
    CHUNKS.put(("array", (0,)), DecodedChunk(np.zeros(SHAPE, "u1"), "tag", "key"))
    try:
        arrays = [buffers.empty(SHAPE, F8) for _ in range(2)]
        del arrays
        assert sum(piece.nbytes for piece in buffers.KEPT) == 2**23
    finally:
        CHUNKS.clear()


def test_nothing_is_kept_if_nothing_is_to_be(setting):
    setting({"zarrdask.keep-memory": 0})
    array = buffers.empty(SHAPE, F8)
    assert array.base is None
    del array
    assert not buffers.KEPT


def test_arrays_pickle():
    array = buffers.empty(SHAPE, F8)
    array[:] = 3
    for protocol in (2, 5):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(array, protocol)), array)
