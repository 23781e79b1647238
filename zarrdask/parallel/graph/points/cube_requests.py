"""Cubes of several arrays: cubes that are read now are one plan, the others are Dask arrays."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Literal, NamedTuple

import numpy as np

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.together import ArrayRead, read_together
from zarrdask.formats.indexing.selection import whole_region
from zarrdask.parallel.graph.points.cube_reads import read_at
from zarrdask.parallel.graph.points.region_cubes import Cubes

Ends = Literal["pad", "clip", "drop"]


class CubeRequest(NamedTuple):
    """The cubes of one array.

    Attributes
    ----------
    source : ArrayRegion
        The array.
    starts : dict of int to ndarray
        The first positions, by the number of the axis.
    lengths : dict of int to int
        The lengths of the cubes along these axes.
    ends : {"pad", "clip", "drop"}
        What is done with cubes beyond the ends; those to drop are not among `starts`.
    is_lazy : bool
        Whether the result is a Dask array.
    """

    source: ArrayRegion
    starts: Mapping[int, np.ndarray]
    lengths: Mapping[int, int]
    ends: Ends
    is_lazy: bool

    @property
    def cubes(self) -> Cubes:
        """The cubes, without their positions."""
        return Cubes(self.source, self.lengths, ends="clip" if self.ends == "clip" else "pad")

    @property
    def positions(self) -> list[np.ndarray]:
        """The first positions along each axis that has them, in order."""
        return [self.starts[axis] for axis in sorted(self.starts)]


def sample_each(requests: Mapping[Any, CubeRequest]) -> dict[Any, Any]:
    """Return the cubes of each array, in the order of the requests."""
    now = {name: each for name, each in requests.items() if not each.is_lazy}
    results = dict[Any, Any](_read(now))
    return {
        name: read_at(each.cubes, each.positions) if each.is_lazy else results[name]
        for name, each in requests.items()
    }


def _read(requests: Mapping[Any, CubeRequest]) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the cubes of each array; all requests to remote stores are in flight together."""
    waiting, reads = list[tuple[Any, np.ndarray | None]](), list[ArrayRead]()
    for name, each in requests.items():
        read, memory = each.cubes.planned(each.positions, _whole(each.cubes))
        reads.append(read)
        waiting.append((name, memory))
    with closing(read_together(reads)) as completed:
        reads.clear()
        for number in completed:
            # The memory is released as soon as the cubes are complete.
            (name, values), waiting[number] = waiting[number], ("", None)
            cubes = requests[name].cubes
            if values is not None:
                yield name, cubes.finished(values, requests[name].positions, _whole(cubes))


def _whole(cubes: Cubes) -> tuple[slice, ...]:
    """Return the region along the axes without positions."""
    return whole_region(tuple(cubes.source.shape[axis] for axis in cubes.others))
