"""The memory and the costs of the tasks of a rewrite, and the regions to choose from. Pure."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from zarrdask.grids.base import Axis, Shape
from zarrdask.plan.regions import Choice, Cutting, choices, edges_within
from zarrdask.plan.strategies import Costs, Grids, Stage

#: The overhead of a task, in bytes that could be moved in the same time.
TASK = 2**20
#: The largest number of combinations of lengths that are compared.
_MAX_COMBINATIONS = 100_000
#: The fraction of a task that one thread does: an object of packed pieces is stored in one call.
_SERIAL_FRACTION = {"packed": 0.25, "held": 0.05, "target": 0.05}


def count(axes: Sequence[Axis], shape: Shape) -> int:
    """Return the number of chunks in a grid."""
    return prod(len(edges_within(axis, size)) - 1 for axis, size in zip(axes, shape, strict=True))


def to_read(grids: Grids, costs: Costs) -> int:
    """Return the bytes that a thread holds to read: a decoded piece, and its stored values."""
    piece = grids.largest("source")
    return piece + costs.copies * max(piece, min(costs.slab, grids.nbytes))


def to_write(grids: Grids) -> int:
    """Return the bytes that a thread holds to write a unit: its copy, and a codec's in and out."""
    return 3 * grids.largest("target")


# --------------------------------------------------------------------------------------------
# Regions


def joined(units: Sequence[Axis], shape: Shape, pieces: Sequence[Axis]) -> list[list[Choice]]:
    """Return the ways to join the units along each axis to regions."""
    edges = [edges_within(axis, size) for axis, size in zip(pieces, shape, strict=True)]
    axes_with_choice = sum(len(edges_within(a, n)) > 2 for a, n in zip(units, shape, strict=True))
    limit = max(4, int(_MAX_COMBINATIONS ** (1 / max(axes_with_choice, 1))))
    return [
        choices(axis, size, piece_edges, min(limit, 60))
        for axis, size, piece_edges in zip(units, shape, edges, strict=True)
    ]


def outer(axes: Sequence[Sequence[Any]], name: str) -> np.ndarray:
    """Return the product of an attribute, for each combination of choices along the axes."""
    products = np.ones((), float)
    for axis in axes:
        products = np.multiply.outer(products, np.array([getattr(c, name) for c in axis], float))
    return products


def cheapest(cost: np.ndarray, memory: np.ndarray, room: int) -> tuple[int, ...]:
    """Return the index of the cheapest combination that fits; of the smallest one if none does."""
    fits = memory <= room
    rank = np.where(fits, cost, np.inf) if fits.any() else memory
    return tuple(int(i) for i in np.unravel_index(int(np.argmin(rank)), rank.shape))


def cutting(axes: Sequence[Any]) -> Cutting:
    """Return the regions that the choices along the axes make up."""
    return Cutting(tuple(chosen.edges for chosen in axes))


# --------------------------------------------------------------------------------------------
# Costs


def idle(tasks: np.ndarray, at_once: int) -> np.ndarray:
    """Return the factor by which idle workers in the last round of tasks prolong a pass."""
    tasks = np.maximum(tasks, 1)
    factor: np.ndarray = np.ceil(tasks / at_once) * at_once / tasks
    return factor


def cost_of(stage: Stage, costs: Costs, tasks: int | None = None) -> float:
    """Return the cost of a pass: the moved bytes, and all else as bytes moved in the same time."""
    moved = stage.bytes_read + stage.bytes_written + stage.requests * costs.request
    moved += stage.tasks * TASK
    rounds = float(idle(np.array(tasks or stage.tasks, float), costs.tasks))
    return moved * rounds * _serial_factor(stage, costs)


def _serial_factor(stage: Stage, costs: Costs) -> float:
    """Return the factor by which the serial part of tasks prolongs a pass."""
    part = _SERIAL_FRACTION[stage.writes]
    return costs.threads * (part + (1 - part) / stage.threads) / stage.at_once
