"""The order in which the chunks of a shard are written, which metadata does not record."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

import numpy as np

from zarrdask import config
from zarrdask.errors import one_of
from zarrdask.formats.grids.chunk_grid import Index

#: "c": the last axis varies fastest; "f": the first one; "morton": bits of all axes alternate.
ShardOrder = Literal["c", "f", "morton"]

_order: ContextVar[ShardOrder | None] = ContextVar("shard_order", default=None)
#: Returns the order for codecs that are created now: as set by `shard_order`, or None.
fixed_order = _order.get


def default_order() -> ShardOrder:
    """Return the setting ``zarrdask.shard-order``."""
    order: ShardOrder = one_of(
        config.get("shard-order"), "zarrdask.shard-order", get_args(ShardOrder)
    )
    return order


@contextmanager
def shard_order(order: ShardOrder | None) -> Iterator[None]:
    """Set the order for the sharding codecs that are parsed in a ``with`` block, unless None."""
    token = _order.set(order or _order.get())
    try:
        yield
    finally:
        _order.reset(token)


def ordered(indices: Collection[Index], order: ShardOrder) -> list[Index]:
    """Return the indices of chunks in the order in which a shard has them.

    Examples
    --------
    >>> ordered([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)], "f")
    [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]
    """
    if order == "c":
        return sorted(indices)
    if order == "f":
        return sorted(indices, key=lambda index: index[::-1])
    listed = list(indices)
    return [listed[n] for n in np.argsort(_morton_codes(listed))] if listed else []


def _morton_codes(indices: list[Index]) -> np.ndarray:
    """Return for each index the number whose bits are the bits of its coordinates, in turns.

    The lowest bit belongs to the first axis, as in zarr-python. An axis without further bits is
    left out, so that the number has few more bits than the largest number of chunks in a shard.
    """
    coordinates = np.array(indices, np.int64).reshape(len(indices), -1)
    largest = coordinates.max(axis=0)
    codes, position = np.zeros(len(indices), np.int64), 0
    for bit in range(max(largest.tolist(), default=0).bit_length()):
        for axis in np.flatnonzero(largest >> bit):
            codes |= (coordinates[:, axis] >> bit & 1) << position
            position += 1
    return codes
