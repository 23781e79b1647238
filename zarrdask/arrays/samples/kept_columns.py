"""Which columns of chunks are kept between the steps of an epoch, within a memory limit. Pure."""

from typing import NamedTuple

import numpy as np

#: A request and a decoder's start cost as much as this many bytes: columns that are smaller are
#: rather kept.
_COST_BYTES = 2**16


class Uses(NamedTuple):
    """In which step which column is used, sorted by column and step, each pair once."""

    columns: np.ndarray
    steps: np.ndarray
    #: The size in bytes of the column of each use.
    sizes: np.ndarray


class Kept(NamedTuple):
    """Which columns are kept after which use."""

    #: For each use, whether the column is kept until its next use.
    is_kept: np.ndarray
    #: For each use, whether the column is decoded for it; and how many bytes these are.
    is_decoded: np.ndarray
    nbytes: int
    #: The largest number of bytes that are kept at a time.
    peak: int


def uses_of(columns: np.ndarray, sizes: np.ndarray, steps: np.ndarray) -> Uses:
    """Return the uses of columns by samples.

    Parameters
    ----------
    columns : ndarray of int
        For each sample the columns that it overlaps, one row a sample; -1 stands for none.
    sizes : ndarray of int
        The size of each column in bytes.
    steps : ndarray of int
        The step in which each sample is read.
    """
    count = int(steps.max(initial=0)) + 1
    pairs = columns.astype(np.int64) * count + steps[:, None]
    pairs = np.unique(pairs[columns >= 0])
    used = pairs // count
    return Uses(used, pairs % count, sizes[used])


def keep(uses: Uses, limit: int) -> Kept:
    """Return the columns to keep within a limit in bytes: those that are used again soonest."""
    columns, steps, sizes = uses
    again = np.append(columns[1:] == columns[:-1], False)[: len(columns)]
    if (peak := _peak(uses, again)) <= limit:
        return _kept(uses, again, peak)
    gaps = np.append(steps[1:], 0)[: len(steps)] - steps
    scores = np.where(again, gaps * (sizes / (sizes + _COST_BYTES)), np.inf)
    levels = np.unique(scores[again])
    low, high = 0, len(levels)  # The number of levels that are kept.
    while low < high:
        middle = (low + high + 1) // 2
        if _peak(uses, again & (scores <= levels[middle - 1])) <= limit:
            low = middle
        else:
            high = middle - 1
    is_kept = again & (scores <= levels[low - 1]) if low else np.zeros(len(columns), bool)
    return _kept(uses, is_kept, _peak(uses, is_kept))


def _kept(uses: Uses, is_kept: np.ndarray, peak: int) -> Kept:
    decoded = np.append(True, ~is_kept[:-1])[: len(is_kept)]
    return Kept(is_kept, decoded, int(uses.sizes[decoded].sum()), peak)


def _peak(uses: Uses, is_kept: np.ndarray) -> int:
    """Return the most bytes that are kept from one step to the next."""
    if not is_kept.any():
        return 0
    at = np.flatnonzero(is_kept)
    length = int(uses.steps.max()) + 2
    sizes = uses.sizes[at].astype(float)
    begun = np.bincount(uses.steps[at], sizes, length)
    ended = np.bincount(uses.steps[at + 1], sizes, length)
    kept: np.ndarray = np.cumsum(begun - ended)
    return int(kept.max())
