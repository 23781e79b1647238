"""Positions grouped by the chunks that hold them. Pure."""

from collections.abc import Sequence

import numpy as np

#: The most different numbers that NumPy sorts by digits, in a time proportional to their count.
_DIGIT = 2**16
#: More different numbers are not told apart by an integer of 64 bits.
_MAX_DIFFERENT = 2**63


def grouped(numbers: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of elements by their chunks, and the edges of each chunk in that order.

    Parameters
    ----------
    numbers : sequence of ndarray
        For each axis the numbers of the chunks that hold the elements.

    Returns
    -------
    order : ndarray of int
        The elements, grouped by chunk, in C order of the chunks. Elements of one chunk
        stay in their order.
    edges : ndarray of int
        Where each chunk begins in `order`, and the end of the last one.

    Examples
    --------
    >>> order, edges = grouped([np.array([1, 0, 1]), np.array([2, 5, 2])])
    >>> order.tolist(), edges.tolist()
    ([1, 0, 2], [0, 1, 3])
    """
    flat, different = flat_numbers(numbers)
    order = stable_order(flat, different)
    if not len(order):
        return order, np.zeros(1, np.intp)
    if different <= max(len(flat), _DIGIT):
        counts = np.bincount(flat)
        return order, np.concatenate([[0], np.cumsum(counts[counts > 0])])
    changes = np.flatnonzero(np.diff(flat[order])) + 1
    return order, np.concatenate([[0], changes, [len(order)]])


def flat_numbers(numbers: Sequence[np.ndarray]) -> tuple[np.ndarray, int]:
    """Return one number for each chunk, in C order, in the smallest type; and their bound."""
    flat: np.ndarray = np.zeros(len(numbers[0]), np.uint8)
    different = 1
    if not len(flat):
        return flat, different
    for each in numbers:
        low = int(each.min())
        count = int(each.max()) - low + 1
        if count == 1:
            continue
        if different * count >= _MAX_DIFFERENT:
            # As ranks, which are at most as many as there are elements.
            flat = np.unique(flat, return_inverse=True)[1].reshape(-1)
            ranks = np.unique(each, return_inverse=True)[1].reshape(-1)
            each, low = ranks, 0
            different, count = int(np.max(flat)) + 1, int(np.max(ranks)) + 1
        before, different = different, different * count
        kind = np.min_scalar_type(different - 1)
        own = (each - low).astype(kind, copy=False)
        flat = own if before == 1 else flat.astype(kind, copy=False) * kind.type(count) + own
    return flat, different


def stable_order(numbers: np.ndarray, different: int) -> np.ndarray:
    """Return the stable order of unsigned integers below a bound, sorted digit by digit."""
    order = np.argsort(numbers.astype(np.uint16, copy=False), kind="stable")
    rest, shift = different, 0
    while rest > _DIGIT:
        rest, shift = -(-rest // _DIGIT), shift + 16
        digits = (numbers >> np.uint8(shift)).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order
