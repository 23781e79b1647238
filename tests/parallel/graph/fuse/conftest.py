"""Limits that let small arrays have several fused tasks."""

import pytest

from zarrdask.parallel.graph.fuse import limits


@pytest.fixture(scope="module")
def three_tasks():
    """Let the 24 blocks of small arrays be read by three fused tasks or more."""
    patch = pytest.MonkeyPatch()
    patch.setattr(limits, "MIN_TASKS", 3)
    patch.setattr(limits, "TASKS_PER_THREAD", 1)
    patch.setattr(limits, "FAR_TASKS_PER_THREAD", 3)
    yield
    patch.undo()
