"""How an array is rewritten by workers that hand each other what they read. Pure.

The array is cut into boxes, at boundaries that source and target have in common. Of one box after
another, each worker reads some regions of whole pieces and keeps them; when all are read, each
writes some regions of whole units, for which it asks the others for their parts. So every byte is
read and written once, and nothing lies in a store between; but a box has to fit in the memory of
all workers together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import lcm, prod
from typing import Any

import numpy as np
from toolz import unique

from zarrdask.grids.base import Axis
from zarrdask.plan.cost import TASK, cost_of, count, cutting, outer, to_read, to_write
from zarrdask.plan.regions import (
    Cutting,
    choices,
    edges_within,
    geometric,
    joined_to,
    pieces_between,
)
from zarrdask.plan.strategies import Costs, Exchanged, Grids, Scheme, Stage, lengths_of

#: Lengths of boxes that are looked at along each axis, and boxes of these.
_LENGTHS, _BOXES = 24, 12
#: By how much boxes that are looked at differ in size, at least.
_STEP = 1.2


@dataclass(frozen=True, eq=False)
class _Split:
    """Regions along an axis, within boxes.

    Attributes
    ----------
    units : int or ndarray of int
        What is joined to regions: the length, or the boundaries.
    boxes : ndarray of int64
        The boundaries of the boxes.
    length : int
        Which regions have, unless a unit has more, or a box ends.
    """

    units: Axis
    boxes: np.ndarray
    length: int

    @cached_property
    def edges(self) -> np.ndarray:
        """The boundaries of the regions."""
        if isinstance(self.units, int):
            starts = self.boxes[:-1, None] + np.arange(0, _longest(self.boxes), self.length)
            return np.append(starts[starts < self.boxes[1:, None]], self.boxes[-1])
        units = edges_within(self.units, int(self.boxes[-1]))
        both = np.concatenate((joined_to(self.length, self.units, units), self.boxes))
        both.sort()
        found: np.ndarray = both[np.append(True, np.diff(both) > 0)]
        return found

    @cached_property
    def longest(self) -> int:
        """The greatest length of a region."""
        if isinstance(self.units, int):
            return min(self.length, _longest(self.boxes))
        return _longest(self.edges)

    @cached_property
    def most(self) -> int:
        """How many regions the fullest box has."""
        if isinstance(self.units, int):
            return -(-_longest(self.boxes) // self.length)
        return int(np.diff(np.searchsorted(self.edges, self.boxes)).max(initial=1))


def _longest(edges: np.ndarray) -> int:
    return int(np.diff(edges).max(initial=1))


def exchanges(grids: Grids, costs: Costs) -> Iterator[Scheme]:
    """Yield how workers rewrite an array by handing each other what they read, if they can.

    Parameters
    ----------
    grids : Grids
        Of an array that is not empty.
    costs : Costs
        A process does one task at a time.
    """
    tried, threads = list(_boxes(grids, costs)), costs.threads
    while threads:
        ways = (_within(boxes, grids, costs, threads) for boxes in tried)
        yield from islice(filter(None, ways), 1)
        threads //= 2


def _boxes(grids: Grids, costs: Costs) -> Iterator[Cutting]:
    """Yield boxes that all workers may hold together, the largest first."""
    axes = []
    for one, other, size in zip(grids.source, grids.target, grids.shape, strict=True):
        common = _common(one, other, size)
        axes.append(choices(common, size, edges_within(common, size), _LENGTHS))
    sizes = outer(axes, "longest") * grids.itemsize
    order = np.lexsort((outer(axes, "count").ravel(), -sizes.ravel()))
    last, left = float(costs.memory * costs.processes) * _STEP, _BOXES
    for number in order.tolist():
        size = sizes.ravel()[number]
        if left and size * _STEP <= last:
            last, left = size, left - 1
            at = np.unravel_index(number, sizes.shape)
            yield cutting([axis[i] for axis, i in zip(axes, at, strict=True)])


def _common(one: Axis, other: Axis, size: int) -> Axis:
    """Return where chunks of both grids end, as one does of a grid."""
    if isinstance(one, int) and isinstance(other, int):
        return lcm(max(one, 1), max(other, 1))
    ends = edges_within(one, size), edges_within(other, size)
    return np.intersect1d(*ends, assume_unique=True)


def _within(boxes: Cutting, grids: Grids, costs: Costs, threads: int) -> Scheme | None:
    """Return how boxes are rewritten one after another, if what workers hold of each fits."""
    working = threads * (to_read(grids, costs) + to_write(grids))
    room = costs.memory - working
    axes = _splits(grids.source, grids, boxes)
    read = _best(axes, grids, costs, _kept(*_sizes(axes, grids), costs) <= room)
    if read is None:
        return None
    kept = _kept(*_of(read, grids), costs)
    axes = _splits(grids.target, grids, boxes)
    # Twice: what others send, and what that is put together to.
    written = _best(axes, grids, costs, 2 * _sizes(axes, grids)[1] <= room - kept)
    if written is None:
        return None
    gathered = 2 * _of(written, grids)[1]
    stages = (
        Stage(
            cutting(read),
            "source",
            "held",
            count(grids.source, grids.shape),
            grids.nbytes,
            0,
            kept + working,
            threads,
            costs.slab,
        ),
        Stage(
            cutting(written),
            "held",
            "target",
            count(grids.target, grids.shape),
            0,
            grids.nbytes,
            kept + working + gathered,
            threads,
            costs.slab,
        ),
    )
    cuts = zip(read, written, strict=True)
    pieces = prod(pieces_between(one.edges, other.edges) for one, other in cuts)
    handed = Exchanged(boxes, grids.nbytes * (costs.processes - 1) // costs.processes, pieces)
    cost = handed.nbytes * costs.network + pieces * TASK
    for stage, chosen in zip(stages, (read, written), strict=True):
        cost += cost_of(stage, costs, _of(chosen, grids)[0])
    return Scheme("in the cluster", stages, cost, handed)


def _of(chosen: Sequence[_Split], grids: Grids) -> tuple[int, int]:
    """Return how many regions the fullest box has, and the bytes of the largest."""
    longest = prod(axis.longest for axis in chosen) * grids.itemsize
    return prod(axis.most for axis in chosen), longest


def _splits(units: Sequence[Axis], grids: Grids, boxes: Cutting) -> list[list[_Split]]:
    """Return how units may be joined to regions within boxes, along each axis."""
    return [list(_split(axis, edges)) for axis, edges in zip(units, boxes.edges, strict=True)]


def _split(units: Axis, boxes: np.ndarray) -> Iterator[_Split]:
    """Yield ways to cut boxes along an axis: from one region to single units, about as long."""
    unit, box = max(lengths_of((units,))[0], 1), _longest(boxes)
    lengths = (-(-box // parts // unit) * unit for parts in geometric(-(-box // unit)))
    yield from (_Split(units, boxes, length) for length in unique([*lengths, unit]))


def _kept(most: Any, longest: Any, costs: Costs) -> Any:
    """Return the bytes that the fullest worker keeps of a box, of so many regions and bytes."""
    return -(-most // costs.processes) * longest


def _best(
    axes: Sequence[Sequence[_Split]], grids: Grids, costs: Costs, fits: np.ndarray
) -> list[_Split] | None:
    """Return the regions of those that fit for which all workers are ready the soonest."""
    if not fits.any():
        return None
    most, longest = _sizes(axes, grids)
    slowest = _kept(most, longest, costs)
    cost = np.where(fits, (slowest + most * TASK) * costs.processes, np.inf)
    at = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return [axis[int(i)] for axis, i in zip(axes, at, strict=True)]


def _sizes(axes: Sequence[Sequence[_Split]], grids: Grids) -> tuple[np.ndarray, np.ndarray]:
    """Return how many regions the fullest box has, and their bytes, of each combination."""
    return outer(axes, "most"), outer(axes, "longest") * grids.itemsize
