"""What the tasks of a rewrite hold, what they cost, and which regions they may own. Pure."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from zarrdask.grids.base import Axis, Shape
from zarrdask.plan.regions import Choice, Cutting, choices, edges_within
from zarrdask.plan.strategies import Costs, Grids, Stage

#: What a task costs besides, as bytes that could be moved meanwhile.
TASK = 2**20
#: How many combinations of lengths are looked at.
_COMBINATIONS = 100_000
#: How much of a task is done by one thread: an object of packed pieces is stored in one call.
_SERIAL = {"packed": 0.25, "held": 0.05, "target": 0.05}


def count(axes: Sequence[Axis], shape: Shape) -> int:
    """Return how many chunks a grid has."""
    return prod(len(edges_within(axis, size)) - 1 for axis, size in zip(axes, shape, strict=True))


def to_read(grids: Grids, costs: Costs) -> int:
    """Return what a thread holds to read: a piece as it is stored, and what it decodes."""
    piece = grids.largest("source")
    return piece + costs.copies * max(piece, min(costs.slab, grids.nbytes))


def to_write(grids: Grids) -> int:
    """Return what a thread holds to write a unit: cut out, before a codec and after it."""
    return 3 * grids.largest("target")


# --------------------------------------------------------------------------------------------
# Regions


def joined(units: Sequence[Axis], shape: Shape, pieces: Sequence[Axis]) -> list[list[Choice]]:
    """Return how the units of each axis may be joined to regions."""
    edges = [edges_within(axis, size) for axis, size in zip(pieces, shape, strict=True)]
    several = sum(len(edges_within(a, n)) > 2 for a, n in zip(units, shape, strict=True))
    limit = max(4, int(_COMBINATIONS ** (1 / max(several, 1))))
    return [
        choices(axis, size, met, min(limit, 60))
        for axis, size, met in zip(units, shape, edges, strict=True)
    ]


def outer(axes: Sequence[Sequence[Any]], name: str) -> np.ndarray:
    """Return the product of a property, for each combination of choices along the axes."""
    found = np.ones((), float)
    for axis in axes:
        found = np.multiply.outer(found, np.array([getattr(c, name) for c in axis], float))
    return found


def cheapest(cost: np.ndarray, memory: np.ndarray, room: int) -> tuple[int, ...]:
    """Return which combination costs the least of those that fit; the smallest if none does."""
    fits = memory <= room
    found = np.where(fits, cost, np.inf) if fits.any() else memory
    return tuple(int(i) for i in np.unravel_index(int(np.argmin(found)), found.shape))


def cutting(axes: Sequence[Any]) -> Cutting:
    """Return the regions that were chosen along each axis."""
    return Cutting(tuple(chosen.edges for chosen in axes))


# --------------------------------------------------------------------------------------------
# Costs


def idle(tasks: np.ndarray, at_once: int) -> np.ndarray:
    """Return by how much longer it takes as some workers have nothing to do at the end."""
    tasks = np.maximum(tasks, 1)
    found: np.ndarray = np.ceil(tasks / at_once) * at_once / tasks
    return found


def cost_of(stage: Stage, costs: Costs, tasks: int | None = None) -> float:
    """Return what a pass costs: bytes that are moved, and what else takes time, as bytes.

    Parameters
    ----------
    stage : Stage
    costs : Costs
    tasks : int, optional
        After how many all workers wait for the last one; after all, if absent.
    """
    moved = stage.bytes_read + stage.bytes_written + stage.requests * costs.request
    moved += stage.tasks * TASK
    rounds = float(idle(np.array(tasks or stage.tasks, float), costs.tasks))
    return moved * rounds * _alone(stage, costs)


def _alone(stage: Stage, costs: Costs) -> float:
    """Return by how much longer it takes as some of a task is done by one thread."""
    part = _SERIAL[stage.writes]
    return costs.threads * (part + (1 - part) / stage.threads) / stage.at_once
