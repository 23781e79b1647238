"""The buffer that values are read into."""

import numpy as np

from zarrdask.runtime.scratch import Scratch


def test_scratch_grows_and_stays():
    scratch = Scratch()
    big = scratch.reserve(10**6)
    assert len(big) >= 10**6
    assert scratch.reserve(10) is big
    assert len(scratch.reserve(2**26)) == 2**26
    assert scratch.reserve(10) is big  # what is huge is not kept


def test_scratch_begins_at_a_page():
    scratch = Scratch()
    for size in (10, 10**6, 2**26):
        assert np.frombuffer(scratch.reserve(size), np.uint8).ctypes.data % 4096 == 0
