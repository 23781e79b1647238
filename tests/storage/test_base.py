"""What all stores have in common: the buffer that values are read into."""

from zarrdask.storage.base import Scratch


def test_scratch_grows_and_stays():
    scratch = Scratch()
    big = scratch.reserve(10**6)
    assert len(big) >= 10**6
    assert scratch.reserve(10) is big
    assert len(scratch.reserve(2**26)) == 2**26
    assert scratch.reserve(10) is big  # what is huge is not kept
