"""Forks of stores that tasks write to, where tasks in other processes can't see the store."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from uuid import uuid4

import numpy as np

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.parallel.execution.client import check_visible, other_processes
from zarrdask.storage.adapters.forks import Changes, changing
from zarrdask.storage.adapters.icechunk import session_of
from zarrdask.storage.base import Store
from zarrdask.storage.snapshots.digesting_store import DigestingFork


class TaskStores:
    """The stores that the tasks of one call write to: each store is forked once.

    Parameters
    ----------
    is_forked : bool
        Whether tasks write to a fork of each store that can be forked.
    is_later : bool, default False
        Whether the tasks are computed after the call. Others may write to the store before that, so
        tasks that read from it don't write to a fork.
    is_digested : bool, default False
        Whether the digests of what tasks write are computed, and returned by a `DigestingFork`: to
        this process, or, if they are computed later, to the last task.
    """

    def __init__(
        self, *, is_forked: bool, is_later: bool = False, is_digested: bool = False
    ) -> None:
        self._is_forked = is_forked
        self._is_digested = is_digested
        self._is_later = is_later
        self._forks = dict[str, Store]()

    @classmethod
    def of_scheduler(cls, *, is_later: bool, is_digested: bool = False) -> "TaskStores":
        """Return the stores for tasks that the current scheduler runs, or any one later."""
        is_forked = is_later or other_processes() is not None
        return cls(is_forked=is_forked, is_later=is_later, is_digested=is_digested)

    def chunks(self, chunks: StoredChunks) -> StoredChunks:
        """Return the chunks of an array as tasks change them."""
        store = chunks.store
        if self._is_digested and not store.capabilities.forks:
            name = f"later-{uuid4().hex}" if self._is_later else ""
            return replace(chunks, store=DigestingFork(store, name))
        if not (self._is_forked and store.capabilities.forks):
            return chunks
        token = store.identity.token
        if token not in self._forks:
            self._forks[token] = session_of(store, "fork").fork()
        # No other writer can change the fork.
        return replace(chunks, store=self._forks[token], guard=None)

    def region(self, region: ArrayRegion, *, reads: bool) -> ArrayRegion:
        """Return a region of an array as tasks change it; `reads` is whether they change units.

        Raises
        ------
        StoreError
            If tasks in other processes need the store itself.
        """
        if reads and self._is_later:
            check_visible(region.stored.store)
            if region.stored.store.capabilities.forks:
                return region
        return _in(region, self.chunks(region.stored))


@contextmanager
def changing_chunks(chunks: StoredChunks) -> Iterator[tuple[StoredChunks, list[Changes]]]:
    """Yield the chunks that a task changes, and a list that holds its changes after the block."""
    with changing(chunks.store) as (store, changes):
        yield _with_store(chunks, store), changes


@contextmanager
def changing_each(
    arrays: Iterable[StoredChunks],
) -> Iterator[tuple[list[StoredChunks], list[Changes]]]:
    """Yield the chunks of arrays that one task changes, as `changing_chunks`."""
    arrays, changes = [*arrays], list[Changes]()
    stores, made = dict[int, Store](), list[list[Changes]]()
    with ExitStack() as stack:
        for store in {id(each.store): each.store for each in arrays}.values():
            stores[id(store)], of_store = stack.enter_context(changing(store))
            made.append(of_store)
        yield [_with_store(each, stores[id(each.store)]) for each in arrays], changes
    changes += chain.from_iterable(made)


def _with_store(chunks: StoredChunks, store: Store) -> StoredChunks:
    return chunks if store is chunks.store else replace(chunks, store=store)


@contextmanager
def changing_region(region: ArrayRegion) -> Iterator[tuple[ArrayRegion, list[Changes]]]:
    """Yield the region that a task changes, and a list that holds its changes after the block."""
    with changing_chunks(region.stored) as (chunks, changes):
        yield _in(region, chunks), changes


def changes_of(receipt: np.ndarray) -> Iterator[Changes]:
    """Yield the changes in the receipt of a task."""
    if receipt.dtype == object:
        yield from (each for each in receipt.flat if isinstance(each, Changes))


def _in(region: ArrayRegion, chunks: StoredChunks) -> ArrayRegion:
    if chunks is region.stored:
        return region
    return ArrayRegion(chunks, region.region, region.axes, region.token)
