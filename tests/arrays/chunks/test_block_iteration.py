"""Arrays block by block: every element once, in storage order, the next blocks meanwhile."""

import numpy as np
import pytest

import zarrdask
from tests.arrays.samples.random_cases import random_array
from tests.counting import CountingStore
from tests.covering import seeds
from zarrdask.storage.memory import MemoryStore


def check_random_case(seed):
    rng = np.random.default_rng(seed)
    z, values = random_array(rng)
    found, times = np.zeros_like(values), np.zeros(values.shape, int)
    for region, block in z.iter_blocks(int(rng.integers(1, 3000))):
        found[(*region, ...)] = block
        times[(*region, ...)] += 1
    np.testing.assert_array_equal(found, values)
    assert (times == 1).all()


@pytest.mark.parametrize("seed", seeds(50))
def test_blocks_make_up_random_arrays(seed):
    check_random_case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(50, 1050, 100))
def test_blocks_make_up_many_random_arrays(first):
    for seed in range(first, first + 100):
        check_random_case(seed)


def test_blocks_are_whole_chunks_in_order_and_decoded_once():
    store = CountingStore(MemoryStore())
    z = zarrdask.create_array(store, shape=(8, 9), dtype="i4", chunks=(2, 3))
    z[...] = 1
    store.reads.clear()
    starts = [tuple(pick.start for pick in region) for region, _ in z.iter_blocks("48 B")]
    assert starts == [(i, j) for i in range(0, 8, 2) for j in (0, 6)]
    assert {*store.reads.values()} == {1}
    assert len(store.reads) == 12
    assert [len(block) for _, block in z.iter_blocks()] == [8]


def test_an_iteration_can_be_given_up():
    z = zarrdask.create_array({}, shape=(100,), dtype="i4", chunks=(1,))
    blocks = z.iter_blocks(1)
    assert next(blocks)[0] == (slice(0, 1, 1),)
    blocks.close()
