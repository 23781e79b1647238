"""The order of samples: each one once, and those of a chunk near each other."""

import numpy as np

from tests.covering import for_each
from zarrdask.arrays.samples.sample_order import Mixing, epoch_order

CELLS = np.repeat(np.arange(20), 5)
MIXINGS = [None, Mixing(1, None), Mixing(1, 2.0), Mixing(4, 2.0), Mixing(4, None)]


def orders(mixing, epoch=0, world_size=1):
    return [epoch_order(CELLS, mixing, 7, epoch, rank, world_size) for rank in range(world_size)]


@for_each("mixing, world_size", [(mixing, size) for mixing in MIXINGS for size in (1, 3)])
def test_each_sample_is_in_the_order_of_one_rank(mixing, world_size):
    parts = orders(mixing, world_size=world_size)
    assert sorted(np.concatenate(parts).tolist()) == [*range(len(CELLS))]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_samples_that_are_not_shuffled_stay_in_their_order():
    assert orders(None)[0].tolist() == [*range(len(CELLS))]


@for_each("mixing", MIXINGS[1:])
def test_the_order_is_the_same_for_one_epoch_and_another_for_the_next(mixing):
    assert orders(mixing)[0].tolist() == orders(mixing)[0].tolist()
    assert orders(mixing)[0].tolist() != orders(mixing, epoch=1)[0].tolist()


def test_samples_of_few_cells_are_mixed_at_a_time():
    cells = CELLS[orders(Mixing(1, 2.0))[0]]
    spans = [np.ptp(np.flatnonzero(cells == cell)) for cell in range(20)]
    # A sample is delayed by at most two cells of five samples each.
    assert max(spans) < 20
    assert len({*cells[:5].tolist()}) > 1


def test_there_may_be_no_samples():
    assert epoch_order(CELLS[:0], Mixing(1, 2.0), 0, 0, 0, 1).tolist() == []
