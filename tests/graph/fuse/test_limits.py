"""The number of small blocks that become one task."""

import pytest

from zarrdask.graph.fuse.limits import UNFUSED, FuseLimits


@pytest.mark.parametrize("is_far", [False, True])
def test_a_task_has_as_many_blocks_as_every_limit_allows(is_far):
    limits = FuseLimits(blocks=100, nbytes=6400, threads=2)
    assert limits.length(10**6, 8, is_far=is_far) == 100
    assert limits.length(10**6, 100, is_far=is_far) == 64
    assert limits.length(10**6, 10**4, is_far=is_far) == 0
    # Each thread has several tasks; fewer of them if these wait for a store.
    assert limits.length(640, 8, is_far=is_far) == (80 if is_far else 20)


def test_many_threads_have_more_tasks():
    limits = FuseLimits(blocks=10**6, nbytes=10**9, threads=100)
    assert limits.length(8000, 1) == 10


def test_nothing_is_fused_without_blocks_or_bytes():
    assert UNFUSED.length(10**6, 0) == UNFUSED.length(10**6, 8, is_far=True) == 0
