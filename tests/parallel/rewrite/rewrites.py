"""Random rewrites: what is stored, and what it is to become."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import zarrdask
from tests.parallel.graph import cases
from zarrdask.parallel.plan.rechunk_strategies import schemes

#: What only a new array is asked for, not one that becomes another.
_ONLY_NEW = ("order", "separator")


@dataclass(frozen=True)
class Rewrite:
    """An array with these options, some of which is filled, is stored with others."""

    seed: int
    options: dict[str, Any]
    changes: dict[str, Any]
    values: np.ndarray
    part: float

    def __str__(self):
        return f"seed {self.seed}: {self.options} becomes {self.changes}, {self.part:.2g} filled"

    def stored(self, place):
        """Store it, and return the array; chunks may be missing."""
        array = zarrdask.create_array(place, "a", **self.options)
        if self.values.ndim:
            stop = int(self.part * len(self.values))
            array[:stop] = self.values[:stop]
        else:
            array[...] = self.values
        return array

    def plans(self, source, place, **options):
        """Yield a plan for each way that there is, with memory that is just enough, and more.

        Parameters
        ----------
        place : callable
            Makes a place for each.
        """
        first = zarrdask.rechunk(source, place(), **self.changes, **options)
        least = smallest(first)
        rng = np.random.default_rng(self.seed)
        for memory in (least, int(least * rng.uniform(1, 4)) + 1000):
            costs = first.costs._replace(memory=memory)
            for way in schemes(first.grids, costs):
                plan = zarrdask.rechunk(source, place(), **self.changes, **options)
                yield replace(plan, costs=costs, schemes=(way,))


def smallest(plan):
    """Return the smallest memory that works for what is planned."""
    try:
        schemes(plan.grids, plan.costs._replace(memory=0))
    except zarrdask.errors.MetadataError as error:
        return int(re.search(r"at least (\d+) bytes", str(error)).group(1))
    return 0


def rewrite(seed):
    """Return the rewrite that a seed stands for."""
    found, rng = cases.case(seed), np.random.default_rng(seed)
    shape, dtype = found.options["shape"], found.options["dtype"]
    zarr_format = int(rng.choice([2, 3]))
    layout = cases.layout(rng, shape, dtype, zarr_format)
    changes = {k: v for k, v in layout.items() if k not in _ONLY_NEW}
    if zarr_format == 2:
        changes.setdefault("filters", ())
    part = rng.choice([0, rng.random(), 1, 1, 1])
    return Rewrite(
        seed, found.options, changes | {"zarr_format": zarr_format}, found.expected, float(part)
    )
