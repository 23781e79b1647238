"""The cells of many windows, sorted side by side; their medians and modes. Pure.

Cell n of each window is in the nth array. A sorting network compares two such arrays at a time, so
that each step is one operation on all windows.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

#: The most cells of a window for which a network is faster than NumPy's sort, by the bytes of a
#: cell. NumPy sorts cells of 4 and 8 bytes by vector instructions.
_MAX_NETWORK = {1: 128, 2: 128, 4: 32, 8: 16, 16: 16}


class _Step(NamedTuple):
    """A comparison: the lesser of two cells becomes the first, the greater the second."""

    first: int
    second: int
    #: Which of the two results are used.
    has_least: bool
    has_greatest: bool


@cache
def network(count: int, used: range) -> tuple[_Step, ...]:
    """Return the comparisons that sort a number of cells: Batcher's odd-even merge sort.

    Only the sorted cells at the positions `used` are right; comparisons that these do not depend on
    are left out.

    >>> [step[:2] for step in network(3, range(3))]
    [(0, 1), (0, 2), (1, 2)]
    """
    pairs, part = list[tuple[int, int]](), 1
    while part < count:
        step = part
        while step:
            for start in range(step % part, count - step, 2 * step):
                for n in range(start, min(start + step, count - step)):
                    if n // (2 * part) == (n + step) // (2 * part):
                        pairs.append((n, n + step))
            step //= 2
        part *= 2
    needed, steps = set(used), list[_Step]()
    for first, second in reversed(pairs):
        if first in needed or second in needed:
            steps.append(_Step(first, second, first in needed, second in needed))
            needed |= {first, second}
    return tuple(reversed(steps))


def ascending(cells: np.ndarray, used: range) -> list[np.ndarray]:
    """Return cells, sorted along the first axis; only those at the positions `used` are right.

    NaN comes last. The cells may be changed.
    """
    count = len(cells)
    has_nan = cells.dtype.kind in "fc" and bool(np.isnan(cells).any())
    if count > _MAX_NETWORK[cells.itemsize] or has_nan:
        if cells.itemsize <= 2 and len(used) < count:
            windows = np.moveaxis(cells, 0, -1).copy()
            windows.partition(list(used), axis=-1)
            return list(np.moveaxis(windows, -1, 0))
        cells.sort(axis=0)
        return list(cells)
    rows, free = list(cells), np.empty_like(cells[0])
    for first, second, has_least, has_greatest in network(count, used):
        a, b = rows[first], rows[second]
        if has_least and has_greatest:
            rows[first], free = np.minimum(a, b, out=free), a
            np.maximum(a, b, out=b)
        elif has_least:
            np.minimum(a, b, out=a)
        else:
            np.maximum(a, b, out=b)
    return rows


def median(cells: np.ndarray) -> np.ndarray:
    """Return the medians along the first axis, for integers rounded half to even."""
    count = len(cells)
    used = range((count - 1) // 2, count // 2 + 1)
    rows = ascending(cells, used)
    result = _middle(rows[used[0]], rows[used[-1]])
    if rows[0].dtype.kind == "f":
        result = np.where(np.isnan(rows[-1]), np.nan, result)
    return result


def median_of_first(cells: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the medians of the `counts` least cells along the first axis; no count is 0."""
    rows = ascending(cells, range(len(cells)))
    low, high = rows[0].copy(), rows[0].copy()
    for n, row in enumerate(rows[: len(rows) // 2 + 1]):
        _put(low, row, (counts - 1) // 2 == n)
        _put(high, row, counts // 2 == n)
    return _middle(low, high)


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the means of two cells each."""
    middle: np.ndarray
    if low.dtype.kind == "f":
        middle = (low.astype(np.float64) + high) / 2 + 0  # as in `mode`
    else:  # the mean, rounded half to even, without overflow
        floor = (low & high) + ((low ^ high) >> 1)
        middle = floor + ((low ^ high) & floor & 1)
    return middle


def mode(cells: np.ndarray, counts: np.ndarray | int) -> np.ndarray:
    """Return the most frequent of the `counts` least cells along the first axis.

    If several cells are equally frequent, it is the smallest.
    """
    rows = ascending(cells, range(len(cells)))
    result = rows[0].copy()
    run = np.ones(result.shape, np.uint8 if len(rows) < 256 else np.intp)
    longest = run.copy()
    for n in range(1, len(rows)):
        is_same = rows[n] == rows[n - 1]
        if result.dtype.kind in "fc":
            is_same |= np.isnan(rows[n]) & np.isnan(rows[n - 1])
        run *= is_same
        run += 1
        is_longer = run > longest
        if not isinstance(counts, int):
            is_longer &= n < counts
        _put(result, rows[n], is_longer)
        np.maximum(longest, run, out=longest)
    # NumPy's minimum of 0.0 and -0.0 depends on where they are in memory: no negative zero is left.
    return result + 0 if result.dtype.kind in "fc" else result


def _put(values: np.ndarray, others: np.ndarray, mask: np.ndarray) -> None:
    """Replace the values that a mask selects by others."""
    if values.itemsize > 8:
        np.copyto(values, others, where=mask)
        return
    # Without branches, which processors do not predict well here.
    bits, others = (each.view(f"u{each.itemsize}") for each in (values, others))
    bits ^= (bits ^ others) * mask
