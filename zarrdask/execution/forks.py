"""The stores that tasks write to: forks of those that tasks in other processes can't see."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from zarrdask.chunks.region import ArrayRegion
from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.client import other_processes
from zarrdask.storage.base import Store
from zarrdask.storage.forks import Changes, changing
from zarrdask.storage.places import store_token
from zarrdask.storage.upkeep import fork


class TaskStores:
    """The stores that the tasks of one call write to: each store is forked once.

    Parameters
    ----------
    is_forked : bool
        Whether tasks write to a fork of each store that can be forked.
    """

    def __init__(self, *, is_forked: bool) -> None:
        self._is_forked = is_forked
        self._forks = dict[str, Store]()

    @classmethod
    def of_scheduler(cls) -> "TaskStores":
        """Return the stores for tasks that the current scheduler or client runs."""
        return cls(is_forked=other_processes() is not None)

    def chunks(self, chunks: StoredChunks) -> StoredChunks:
        """Return the chunks of an array as tasks change them."""
        store = chunks.store
        if not (self._is_forked and store.capabilities.forks):
            return chunks
        token = store_token(store)
        if token not in self._forks:
            self._forks[token] = fork(store)
        # No other writer can change the fork.
        return replace(chunks, store=self._forks[token], guard=None)

    def region(self, region: ArrayRegion) -> ArrayRegion:
        """Return a region of an array as tasks change it."""
        return _in(region, self.chunks(region.stored))


@contextmanager
def changing_region(region: ArrayRegion) -> Iterator[tuple[ArrayRegion, list[Changes]]]:
    """Yield a region as a task changes it, and a list that holds its changes after the block."""
    with changing(region.stored.store) as (store, changes):
        is_copy = store is not region.stored.store
        yield _in(region, replace(region.stored, store=store)) if is_copy else region, changes


def changes_of(receipt: np.ndarray) -> Iterator[Changes]:
    """Yield the changes in the receipt of a task."""
    if receipt.dtype == object:
        yield from (each for each in receipt.flat if isinstance(each, Changes))


def _in(region: ArrayRegion, chunks: StoredChunks) -> ArrayRegion:
    if chunks is region.stored:
        return region
    return ArrayRegion(chunks, region.region, region.axes, region.token)
