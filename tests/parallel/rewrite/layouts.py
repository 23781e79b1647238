"""Layouts of arrays to rewrite, and each strategy."""

from dataclasses import replace

from tests.parallel.rewrite.arrays import (
    quietly,
)
from tests.parallel.rewrite.rewrites import smallest
from zarrdask.parallel.plan.rechunk_strategies import schemes

LAYOUTS = {
    "regular": {"chunks": (5, 7)},
    "sharded": {"chunks": (2, 5), "shards": (6, 15)},
    "rectilinear": {"chunks": ((1, 3, 20), (10, 20))},
    "rectilinear shards": {"chunks": (2, 5), "shards": ((4, 20), (10, 5, 15))},
    "F": {"chunks": (5, 7), "order": "F"},
    "v2": {"chunks": (5, 7), "zarr_format": 2},
    "draft": {"chunks": (5, 7), "zarr_format": "v3-draft"},
    "gzip": {"chunks": (5, 7), "compressors": "gzip"},
    "one": {"chunks": -1},
    "each": {"chunks": 1},
}


def each_way(make):
    """Execute what `make` plans, on fresh places, by all ways that there are for little memory."""
    plan = make()
    ways = schemes(plan.grids, plan.costs._replace(memory=smallest(plan)))
    for way in ways:
        yield quietly(replace(make(), schemes=(way,)))
