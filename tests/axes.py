"""The chunks along axes, from what tests write down."""

import numpy as np

from zarrdask.formats.grids.axis import Axis, Even, Uneven
from zarrdask.parallel.plan.strategies import Grids


def axis_of(chunks, size=None):
    """Return the chunks along an axis, from their length or an array of their boundaries.

    The axis ends at the last boundary if there is no other size.
    """
    if isinstance(chunks, Axis):
        return chunks
    if isinstance(chunks, np.ndarray):
        return Uneven(int(chunks[-1]) if size is None else size, chunks)
    return Even(10**18 if size is None else size, chunks)


def axes_of(chunks, shape):
    """Return the chunks along each axis of an array, as `axis_of` does."""
    return tuple(map(axis_of, chunks, shape))


def grids_of(shape, itemsize, source, target, moves=None):
    """Return the grids of a rewrite, from the source's and target's chunks as in `axis_of`."""
    return Grids(itemsize, axes_of(source, shape), axes_of(target, shape), moves)
