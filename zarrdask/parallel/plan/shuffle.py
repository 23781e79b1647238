"""The strategy to rewrite an array by workers that exchange what they read. Pure.

The array is cut into boxes, at boundaries that source and target have in common. For one box after
another, each worker reads some regions of whole pieces and keeps them in memory; when all are read,
each worker writes some regions of whole units, for which it fetches parts from the others. So every
byte is read once and written once, without intermediate storage; but a box has to fit in the memory
of all workers together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from toolz import unique

from zarrdask.formats.grids.axis import Axis, Even
from zarrdask.parallel.plan.owned_regions import (
    MAX_JOINED,
    Cutting,
    ReadEdges,
    choices,
    geometric,
    pieces_between,
)
from zarrdask.parallel.plan.strategies import (
    TASK,
    Costs,
    Exchanged,
    Grids,
    Scheme,
    Stage,
    cheapest,
    cost_of,
    cutting,
    lengths_of,
    outer,
    to_read,
    to_write,
)

#: The largest number of box lengths that are tried along each axis, and of boxes of these lengths.
_MAX_LENGTHS, _MAX_BOXES = 24, 12
#: The least ratio of the sizes of two successive boxes that are tried.
_STEP = 1.2


@dataclass(frozen=True, eq=False)
class _Split:
    """Regions along an axis, within boxes."""

    units: Axis
    boxes: np.ndarray
    length: int

    @cached_property
    def edges(self) -> np.ndarray:
        """The boundaries of the regions."""
        if isinstance(self.units, Even):
            starts = self.boxes[:-1, None] + np.arange(0, _longest(self.boxes), self.length)
            return np.append(starts[starts < self.boxes[1:, None]], self.boxes[-1])
        both = np.concatenate((self.units.join(self.length, MAX_JOINED).edges, self.boxes))
        both.sort()
        unique_edges: np.ndarray = both[np.append(True, np.diff(both) > 0)]
        return unique_edges

    @cached_property
    def longest(self) -> int:
        """The greatest length of a region."""
        if isinstance(self.units, Even):
            return min(self.length, _longest(self.boxes))
        return _longest(self.edges)

    @cached_property
    def most(self) -> int:
        """The largest number of regions in a box."""
        if isinstance(self.units, Even):
            return -(-_longest(self.boxes) // self.length)
        return int(np.diff(np.searchsorted(self.edges, self.boxes)).max(initial=1))


def _longest(edges: np.ndarray) -> int:
    return int(np.diff(edges).max(initial=1))


def exchanges(grids: Grids, costs: Costs) -> Iterator[Scheme]:
    """Yield the strategy of workers that exchange what they read, if it is possible."""
    candidates, threads = list(_boxes(grids, costs)), costs.threads
    while threads:
        schemes = (_within(boxes, grids, costs, threads) for boxes in candidates)
        yield from islice(filter(None, schemes), 1)
        threads //= 2


def _boxes(grids: Grids, costs: Costs) -> Iterator[Cutting]:
    """Yield boxes that fit in the memory of all workers together, the largest first."""
    common = [one.common(other) for one, other in zip(grids.source, grids.target, strict=True)]
    axes = [choices(axis, ReadEdges.whole(axis.edges), _MAX_LENGTHS) for axis in common]
    sizes = outer(axes, "longest") * grids.itemsize
    order = np.lexsort((outer(axes, "count").ravel(), -sizes.ravel()))
    previous, remaining = float(costs.memory * costs.processes) * _STEP, _MAX_BOXES
    for number in order.tolist():
        size = sizes.ravel()[number]
        if remaining and size * _STEP <= previous:
            previous, remaining = size, remaining - 1
            at = np.unravel_index(number, sizes.shape)
            yield cutting([axis[i] for axis, i in zip(axes, at, strict=True)])


def _within(boxes: Cutting, grids: Grids, costs: Costs, threads: int) -> Scheme | None:
    """Return the strategy that rewrites boxes one after another, if the memory suffices."""
    working = threads * (to_read(grids, costs) + to_write(grids))
    room = costs.memory - working
    axes = _splits(grids.source, boxes)
    read = _best(axes, grids, costs, _kept(*_sizes(axes, grids), costs) <= room)
    if read is None:
        return None
    kept = _kept(*_of(read, grids), costs)
    axes = _splits(grids.target, boxes)
    # Twice: the received pieces, and the region that they are assembled to.
    written = _best(axes, grids, costs, 2 * _sizes(axes, grids)[1] <= room - kept)
    if written is None:
        return None
    gathered = 2 * _of(written, grids)[1]
    parts, units = grids.pieces.size, grids.units.size
    nbytes, held = grids.nbytes, kept + working
    stages = (
        Stage(cutting(read), "source", "held", parts, nbytes, 0, held, threads, costs),
        Stage(
            cutting(written), "held", "target", units, 0, nbytes, held + gathered, threads, costs
        ),
    )
    cuts = zip(read, written, strict=True)
    pieces = prod(pieces_between(one.edges, other.edges) for one, other in cuts)
    exchange = Exchanged(boxes, grids.nbytes * (costs.processes - 1) // costs.processes, pieces)
    cost = exchange.nbytes * costs.network + pieces * TASK
    for stage, chosen in zip(stages, (read, written), strict=True):
        cost += cost_of(stage, costs, _of(chosen, grids)[0])
    return Scheme("in the cluster", stages, cost, exchange)


def _of(chosen: Sequence[_Split], grids: Grids) -> tuple[int, int]:
    """Return the largest number of regions in a box, and the bytes of the largest region."""
    longest = prod(axis.longest for axis in chosen) * grids.itemsize
    return prod(axis.most for axis in chosen), longest


def _splits(axes: Sequence[Axis], boxes: Cutting) -> list[list[_Split]]:
    """Return the ways to cut boxes along each axis into about equal regions of whole units."""
    splits = []
    for units, length, edges in zip(axes, lengths_of(tuple(axes)), boxes.edges, strict=True):
        unit, box = max(length, 1), _longest(edges)
        lengths = (-(-box // parts // unit) * unit for parts in geometric(-(-box // unit)))
        splits.append([_Split(units, edges, n) for n in unique([*lengths, unit])])
    return splits


def _kept(most: Any, longest: Any, costs: Costs) -> Any:
    """Return the most bytes that a worker keeps, for a number of regions and their size."""
    return -(-most // costs.processes) * longest


def _best(
    axes: Sequence[Sequence[_Split]], grids: Grids, costs: Costs, fits: np.ndarray
) -> list[_Split] | None:
    """Return the regions that fit for which the slowest worker finishes first."""
    if not fits.any():
        return None
    most, longest = _sizes(axes, grids)
    slowest = _kept(most, longest, costs)
    return cheapest(axes, slowest + most * TASK, ~fits, 0)


def _sizes(axes: Sequence[Sequence[_Split]], grids: Grids) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest number of regions in a box, and their bytes, for each combination."""
    return outer(axes, "most"), outer(axes, "longest") * grids.itemsize
