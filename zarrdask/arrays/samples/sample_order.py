"""The order of the samples in an epoch. Pure.

Samples are shuffled so that each chunk is needed during a short part of the epoch only. The *cell*
of a sample is the column that it begins in. Runs of successive cells are put in random order; then
each sample is delayed by a random time, at most as long as a number of cells lasts. So at any time,
samples are drawn from about so many cells.
"""

from typing import NamedTuple

import numpy as np

from zarrdask.formats.grids.grouping import stable_order


class Mixing(NamedTuple):
    """How samples are shuffled."""

    #: The number of successive cells that are in a run.
    run: int
    #: From how many cells samples are drawn at a time; None means from all.
    cells: float | None


def epoch_order(
    cells: np.ndarray, mixing: Mixing | None, seed: int, epoch: int, rank: int, world_size: int
) -> np.ndarray:
    """Return the numbers of the samples of an epoch in their order, for one of several ranks.

    Parameters
    ----------
    cells : ndarray of int
        The number of the cell of each sample, from 0.
    mixing : Mixing or None
        How the samples are shuffled, None for not at all.
    seed, epoch : int
        What decides the random order; it is the same for all ranks.
    rank, world_size : int
        Which part of the samples to return, of how many parts.
    """
    count = len(cells)
    part = slice(rank * count // world_size, (rank + 1) * count // world_size)
    if mixing is None or not count:
        return np.arange(count)[part]
    shared = np.random.default_rng([seed, epoch])
    if mixing.cells is None and mixing.run == 1 and world_size == 1:
        return shared.permutation(count)
    last = int(cells.max())
    runs = last // mixing.run + 1
    starts = np.argsort(shared.permutation(runs)) * mixing.run
    times = starts[cells // mixing.run] + cells % mixing.run
    order = shared.permutation(count)
    order = order[stable_order(times[order].astype(np.uint64), runs * mixing.run)][part]
    own = np.random.default_rng([seed, epoch, rank + 1])
    if mixing.cells is None:
        return own.permutation(order)
    delays = own.random(len(order)) * mixing.cells
    delayed: np.ndarray = order[np.argsort(times[order] + delays, kind="stable")]
    return delayed
