"""Sums and means of integers without overflow; means are rounded half to even. Pure."""

import numpy as np

#: Sums of fewer integers of less than 64 bits stay below 2**52.
MAX_COUNT = 2**20


def halfway_to_even(sums: np.ndarray, count: np.ndarray | int) -> np.ndarray:
    """Return sums below 2**52 divided by a number, or by one each, rounded half to even.

    >>> halfway_to_even(np.array([-6, 2, 3, 6, 10]), 4).tolist()
    [-2, 0, 1, 2, 2]
    """
    if isinstance(count, int) and count & (count - 1) == 0 < count - 1:
        bits = count.bit_length() - 1
        if int(sums.max(initial=0)) <= np.iinfo(sums.dtype).max - count:
            odd: np.ndarray = sums >> bits
            odd &= 1
            odd += sums
            odd += (count >> 1) - 1
            odd >>= bits
            return odd
    # The quotient of such numbers as float64 is a half only if the exact one is.
    mean: np.ndarray = np.rint(sums / count)
    return mean


def _rounds_up(quotient: np.ndarray, rest: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Whether a quotient with a rest is rounded up."""
    twice = rest + rest
    is_up: np.ndarray = (twice > count) | ((twice == count) & (quotient & 1).astype(bool))
    return is_up.astype(quotient.dtype)


def mean_of_integers(rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the sums along the last axis divided by `counts`, rounded half to even.

    The quotients and the rests of the values are added instead of the values, which may overflow.
    """
    wide = np.uint64 if rows.dtype.kind == "u" else np.int64
    counts = counts.astype(wide)
    quotients, rests = np.divmod(rows.astype(wide), counts[..., None])
    carried, rest = np.divmod(rests.sum(axis=-1, dtype=wide), counts)
    quotient: np.ndarray = quotients.sum(axis=-1, dtype=wide) + carried
    quotient += _rounds_up(quotient, rest, counts)
    return quotient


def sum_of_integers(rows: np.ndarray) -> np.ndarray:
    """Return the sums along the last axis of 64-bit integers, or the limit that they exceed."""
    limits, wide = np.iinfo(rows.dtype), rows.dtype
    low, high = rows & 0xFFFFFFFF, rows >> 32
    lows, highs = low.sum(axis=-1, dtype=wide), high.sum(axis=-1, dtype=wide)
    highs = highs + (lows >> 32)
    sums = (highs << 32) + (lows & 0xFFFFFFFF)
    sums = np.where(highs > limits.max >> 32, limits.max, sums)
    return np.where(highs < limits.min >> 32, limits.min, sums)
