"""The number of small blocks that become one task."""

import pytest

import zarrdask
from tests.storage.latency import FarStore
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.parallel.graph.fuse.limits import UNFUSED, FuseLimits


def region(store):
    return ArrayRegion(chunks_of(zarrdask.create_array(store, shape=1, dtype="u1")))


LOCAL, REMOTE = region({}), region(FarStore(seconds=0))


@pytest.mark.parametrize(
    ("regions", "shared"), [((), 20), ([LOCAL], 20), ([REMOTE], 80), ([LOCAL, REMOTE], 80)]
)
def test_a_task_has_as_many_blocks_as_every_limit_allows(regions, shared):
    limits = FuseLimits(blocks=100, nbytes=6400, threads=2)
    assert limits.length(10**6, 8, regions) == 100
    assert limits.length(10**6, 100, regions) == 64
    assert limits.length(10**6, 10**4, regions) == 0
    # Each thread has several tasks, fewer of them if their requests are in flight together.
    assert limits.length(640, 8, regions) == shared


def test_many_threads_have_more_tasks():
    limits = FuseLimits(blocks=10**6, nbytes=10**9, threads=100)
    assert limits.length(8000, 1) == 10


def test_nothing_is_fused_without_blocks_or_bytes():
    assert UNFUSED.length(10**6, 0) == UNFUSED.length(10**6, 8, [REMOTE]) == 0
