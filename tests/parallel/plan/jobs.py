"""Random jobs to rewrite an array."""

import re
from itertools import pairwise, product
from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.axes import grids_of
from zarrdask.errors import MetadataError
from zarrdask.parallel.plan.rechunk_strategies import schemes
from zarrdask.parallel.plan.strategies import Costs


@st.composite
def jobs(draw, moves=(None,)):
    """Any arrays of up to 4 axes, and what is to be reckoned with: memory that is enough."""
    ndim = draw(st.integers(0, 4))
    shape = tuple(draw(st.integers(0, (0, 60, 20, 8, 5)[ndim])) for _ in range(ndim))
    source = tuple(draw(axes(size)) for size in shape)
    target = tuple(draw(axes(size)) for size in shape)
    grids = grids_of(
        shape, draw(st.sampled_from([1, 2, 4, 8, 16])), source, target, draw(st.sampled_from(moves))
    )
    costs = Costs(
        0,
        draw(st.integers(1, 5)),
        draw(st.integers(1, 5)),
        draw(st.sampled_from([1, 2**15, 2**19])),
        packs=draw(st.booleans()),
        copies=draw(st.integers(1, 2)),
    )
    least = smallest(grids, costs)
    memory = draw(st.integers(least, 4 * least + 4096) | st.just(least))
    return grids, costs._replace(memory=memory)


def pieces(axes):
    """Return the chunks of a grid as far as the array goes."""
    return list(product(*(list(pairwise(axis.edges.tolist())) for axis in axes)))


def is_made_of(cutting, axes):
    """Whether the boundaries of regions are boundaries of chunks."""
    return all(
        set(edges.tolist()) <= set(axis.edges.tolist())
        for edges, axis in zip(cutting.edges, axes, strict=True)
    )


@st.composite
def axes(draw, size):
    """Chunks along an axis of some length: regular or not, the last one may hang over."""
    if draw(st.integers(0, 2)):
        return draw(st.integers(1, size + 3))
    inner = draw(st.sets(st.integers(1, size - 1), max_size=5)) if size > 1 else set()
    return np.array([0, *sorted(inner), size + draw(st.integers(0, 2))])


def smallest(grids, costs):
    """Return the smallest memory that works, as the error for too little of it says."""
    try:
        schemes(grids, costs._replace(memory=0))
    except MetadataError as error:
        return int(re.search(r"at least (\d+) bytes", str(error)).group(1))
    return 0


def elements(box):
    """Return how many elements a box has."""
    return prod(stop - start for start, stop in box)


def met(one, other):
    """Return which boxes of two lists have elements in common: pairs."""
    return [
        (a, b)
        for a, b in product(one, other)
        if all(
            max(low, start) < min(high, stop)
            for (low, high), (start, stop) in zip(a, b, strict=True)
        )
    ]


def regions(cutting):
    """Return the regions of a stage."""
    return list(product(*(list(pairwise(edges.tolist())) for edges in cutting.edges)))
