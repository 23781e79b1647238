"""Arrays to rewrite, and stores that count, or fail, on the way."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import zarrdask
from tests.counting import CountingStore
from tests.parallel.graph.cases import same
from zarrdask.parallel.plan.rechunk_strategies import schemes
from zarrdask.storage.memory import MemoryStore

SHAPE = (24, 30)


VALUES = np.arange(1, 24 * 30 + 1, dtype="i4").reshape(SHAPE)


DOCUMENTS = ("plan.json", "arrays.json", "zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


def stored(place=None, path="", values=VALUES, **options):
    """Return an array that is stored."""
    options = {"chunks": (3, 30), "compressors": ()} | options
    place = MemoryStore() if place is None else place
    array = zarrdask.create_array(place, path, shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return array


def columns(source, target=None, way="two passes", memory=1500, **options):
    """Plan to turn rows into columns by one of the ways, with little memory."""
    options = {"chunks": (24, 2), "scheduler": "sync"} | options
    plan = zarrdask.rechunk(source, MemoryStore() if target is None else target, **options)
    return by(way, plan, memory)


def by(way, plan, memory=None):
    """Return the plan that goes one of the ways that there are."""
    costs = plan.costs if memory is None else plan.costs._replace(memory=memory)
    (found,) = (each for each in schemes(plan.grids, costs) if each.name == way)
    return replace(plan, costs=costs, schemes=(found,))


def quietly(plan, scheduler="sync", **options):
    """Execute a plan."""
    return plan.execute(scheduler, progress=False, **options)


def keys(store):
    """Return all keys."""
    return sorted(store.list_prefix(""))


def data_of(counts):
    """Return counts of chunks, without those of packed pieces and of the claim."""
    return {key: n for key, n in counts.items() if "zarrdask-" not in str(key)}


def check_group(found, group):
    """Check that all nodes of a group are in another one."""
    assert found.attrs == group.attrs
    assert [path for path, _ in found.walk()] == [path for path, _ in group.walk()]
    for path, node in group.walk():
        assert found[path].attrs == node.attrs
        if isinstance(node, zarrdask.Array):
            same(found[path][...], node[...])


class Counted(CountingStore):
    """Counts reads and writes of each key, and remembers which ranges were read."""

    def __init__(self, inner=None):
        super().__init__(MemoryStore() if inner is None else inner)
        self.sets, self.ranges = Counter(), Counter()
        self.pieces = 0

    def get_range(self, key, start, length=None):
        self.ranges[key, start, length] += 1
        return self.inner.get_range(key, start, length)

    def get_ranges(self, key, ranges, scratch):
        self.ranges.update((key, *each) for each in ranges)
        self.pieces += 1
        return self.inner.get_ranges(key, ranges, scratch)

    def set(self, key, value):
        self.sets[key] += 1
        self.inner.set(key, value)

    def taken(self):
        """Return what was read, and set, since the last call: chunks and packed pieces only."""
        found = [
            Counter({k: n for k, n in counts.items() if k.rpartition("/")[2] not in DOCUMENTS})
            for counts in (self.reads, self.sets)
        ]
        ranges = self.ranges
        self.reads, self.sets, self.ranges = Counter(), Counter(), Counter()
        return (*found, ranges)


class Breaking(Counted):
    """Stores so many chunks and packed pieces, then no more, until it is mended."""

    def __init__(self, works=10**9):
        super().__init__()
        self.works = works

    def set(self, key, value):
        if key.rpartition("/")[2] not in DOCUMENTS:
            if not self.works:
                raise zarrdask.errors.StoreError("broken on purpose", key=key)
            self.works -= 1
        super().set(key, value)


def broken(way, works, **options):
    """Return a source, and a place where a rewrite by one way was begun and has failed."""
    source, target = stored(), Breaking(works)
    with pytest.raises(zarrdask.errors.StoreError, match="broken on purpose"):
        quietly(columns(source, target, way, **options))
    target.works = 10**9
    target.taken()
    return source, target
