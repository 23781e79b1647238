"""Writes that are begun, done and finished together."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.execution.handle import Handle, Target
from zarrdask.graph.conflicts import check_apart
from zarrdask.graph.target import Destination
from zarrdask.graph.tasks import gather, read_blocks, write_blocks
from zarrdask.hierarchy.path import node_location
from zarrdask.nodes.array import Array
from zarrdask.plan.align import Chunks


class Job(NamedTuple):
    """A write, begun: its tasks are there.

    Attributes
    ----------
    to : Destination
    receipts : dask.array.Array
        One a block that was written.
    blocks : tuple of tuple of int
        Their lengths.
    target : Target
        What the tasks write to.
    """

    to: Destination
    receipts: da.Array
    blocks: Chunks
    target: Target

    def stored(self) -> da.Array:
        """Return the stored array, written when it is computed."""
        of = self.target
        final = Target(
            Handle(self.to.array.stored), of.start, empty=of.empty, name=of.name, beyond=of.beyond
        )
        return read_blocks(self.receipts, self.blocks, final, self.to.commit)


def known(x: Any) -> da.Array:
    """Return what is to be stored as a Dask array; the lengths of its blocks must be known.

    Raises
    ------
    MetadataError
        If they aren't.
    """
    x = da.asanyarray(x)
    if any(np.isnan(n) for axis in x.chunks for n in axis):
        raise MetadataError(
            "chunk sizes must be known to store an array; call x.compute_chunk_sizes()",
            key="chunks",
            found=x.chunks,
        )
    return x


def begin(writes: Sequence[tuple[da.Array, Destination]]) -> list[Job]:
    """Make the destinations ready, and return the tasks that write to them.

    Raises
    ------
    MetadataError
        If two arrays are to be created in one place; nothing is written then.
    SelectionError
        If two regions of an array overlap; nothing is written then, either.
    """
    _check_distinct([to for _, to in writes])
    begun: list[Destination] = []
    try:
        for _, to in writes:
            begun.append(to)
            to.begin()
    except BaseException as error:
        _failed(begun, error)
        raise
    return [Job(to, *write_blocks(x, to.chunks, to.place, to.beyond)) for x, to in writes]


@contextmanager
def batches(destinations: Iterable[Destination]) -> Iterator[None]:
    """Have all that is written in the block appear at once, in stores that can do that."""
    with ExitStack() as stack:
        for to in destinations:
            stack.enter_context(to.array.store.batch())
        yield


def check_deferrable(arrays: Iterable[Array]) -> None:
    """Check that writes may be computed later.

    Raises
    ------
    UnsupportedError
        If each value that is written later would cost as much as all of them.
    """
    for array in arrays:
        if not array.store.deferrable:
            raise UnsupportedError(
                "a write to a zip archive can't be computed later, unless both the call and the "
                "computation are within `with store.batch():`; omit compute=False, or write a "
                "directory and zarrdask.copy it",
                key=node_location(array.store, array.path),
            )


def _check_distinct(destinations: Sequence[Destination]) -> None:
    found = Counter(to.part.place for to in destinations)
    for to in destinations:
        if to.is_new and found[to.part.place] > 1:
            raise MetadataError("two arrays are to be stored in one place", key=to.part.location)
    check_apart([to.part for to in destinations])


def do(jobs: Sequence[Job], **options: Any) -> None:
    """Store all blocks, then commit each write.

    Parameters
    ----------
    jobs : sequence of Job
    **options
        Options of `dask.compute`, such as the scheduler.
    """
    left = [job.to for job in jobs]
    try:
        dask.compute(*(job.receipts for job in jobs), **options)
        while left:
            if left[0].commit is not None:
                left[0].commit()
            left.pop(0)
    except BaseException as error:
        for job in jobs:
            job.target.abort()
        _failed(left, error)
        raise


def later(jobs: Sequence[Job]) -> Delayed:
    """Return one Delayed that does all of it."""
    # All blocks come first: a commit may replace what another array is computed from.
    return gather([job.receipts for job in jobs], [job.to.commit for job in jobs])


def _failed(destinations: Sequence[Destination], error: BaseException) -> None:
    for to in destinations:
        to.failed(error)
