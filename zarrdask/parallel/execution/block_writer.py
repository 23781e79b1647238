"""Writes of the blocks of a Dask array, in tasks."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from zarrdask.arrays.cancellation import write_named
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.write import Beyond
from zarrdask.arrays.hierarchy.changes.block_log import BlockLog
from zarrdask.arrays.hierarchy.changes.later_claim import LaterClaim
from zarrdask.arrays.hierarchy.changes.marker import LaterMarker
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.execution.compared import compared
from zarrdask.parallel.execution.expected_array import ExpectedArray
from zarrdask.parallel.execution.forks import changing_region
from zarrdask.parallel.execution.locks import among_workers
from zarrdask.runtime.in_flight import Requests
from zarrdask.runtime.turns import Pace
from zarrdask.storage.adapters.forks import Changes, Fork
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.storage.locks.lock_files import lock_place

#: For the fused task that this thread runs, by the names of writes: the function that writes a
#: block, the blocks that were written, and whether they are compared instead.
_JOINED = threading.local()
#: The receipts of blocks of a new array that is computed later: a block that was compared with what
#: is stored, as the array is complete, and one that was stored under the claim of the write.
_COMPARED, _CLAIMED = -1, -2


def are_compared(receipts: Iterable[np.ndarray]) -> bool:
    """Whether the blocks of new arrays were compared with complete ones, and none was stored."""
    # Tasks that return changes have stored blocks.
    marks = [each for receipt in receipts for each in receipt.flat]
    is_stored = any(type(each) is Changes or each == _CLAIMED for each in marks)
    return _COMPARED in marks and not is_stored


class BlockWriter:
    """Writes the blocks of a Dask array to a region of a stored array: what tasks carry.

    Parameters
    ----------
    region : ArrayRegion
        The region that is written.
    empty : bool
        Whether units that hold only the fill value are stored.
    name : str
        The unique name of the write.
    beyond : {"keep", "fill"}
        Whether elements that units hold beyond the end of the array are kept, or become the fill
        value; see `write_region`.
    log : BlockLog, optional
        Where the blocks that are stored are recorded, if they are.
    marker : LaterMarker, optional
        The marker that says that the array is unfinished, which the first task stores.
    expected : ExpectedArray or LaterClaim, optional
        The array that tasks find, if they run later, or the claim of a new one: checked before they
        store chunks.
    threads : int, default 1
        The number of threads that encode a block, in the process that made the writer: more than
        one if there are fewer blocks than threads. Other processes use one.
    """

    __slots__ = (
        "_locked_at",
        "_write",
        "beyond",
        "casting",
        "empty",
        "expected",
        "log",
        "marker",
        "name",
        "region",
        "threads",
    )

    def __init__(
        self,
        region: ArrayRegion,
        *,
        empty: bool,
        name: str,
        beyond: Beyond,
        log: BlockLog | None = None,
        marker: LaterMarker | None = None,
        expected: ExpectedArray | LaterClaim | None = None,
        threads: int = 1,
    ) -> None:
        self._locked_at: str | None = None
        self.casting = Casting.chosen()
        self.log = log
        self.marker = marker
        self.expected = expected
        self.threads = threads
        self._write = write_named(name)
        self._write.names |= {each.write for each in (marker, expected) if each is not None}
        self.region = region
        self.empty = empty
        self.name = name
        self.beyond = beyond

    def write(self, values: np.ndarray, block: Region) -> int | Changes:
        """Write a block, and return the number of units that were stored.

        For a new array that is computed later, it is `_COMPARED` or `_CLAIMED`. If the block is not
        joined with others, and the store is a fork: the changes.
        """
        region = self.region
        shape = tuple([part.stop - part.start for part in block])
        values = self.casting.cast_block(values, shape, region.dtype, region.stored)
        joined = vars(_JOINED).get(self.name)
        if joined is not None:
            write, written, is_repeated = joined
            with self._write.block():
                if not is_repeated and isinstance(self.expected, LaterClaim):
                    self.expected.check()
                count: int = write(values, block)
                if self.log is not None:
                    written.append((block, count))
            return self._receipt(count, is_repeated=is_repeated)
        with self._write.block():
            is_repeated = self._begin()
            with self._changing(is_repeated=is_repeated) as (region, changes):
                count = self._writer(region)(values, block)
                if self.log is not None:
                    self.log.add([(block, count)])
        return changes[0] if changes else self._receipt(count, is_repeated=is_repeated)

    def _receipt(self, count: int, *, is_repeated: bool) -> int:
        """Return the receipt of a block that consists of so many units."""
        if not isinstance(self.expected, LaterClaim):
            return count
        return _COMPARED if is_repeated else _CLAIMED

    def _changing(
        self, *, is_repeated: bool
    ) -> AbstractContextManager[tuple[ArrayRegion, list[Changes]]]:
        """Return the context that yields the region as tasks change it, or as they compare it."""
        if not is_repeated:
            return changing_region(self.region)
        region = self.region
        chunks = compared(region.stored)
        return nullcontext((ArrayRegion(chunks, region.region, region.axes, region.token), []))

    def _writer(
        self, region: ArrayRegion, requests: Requests | None = None
    ) -> Callable[[np.ndarray, Region], int]:
        """Return the function that writes a block to the region, or to the region of a copy."""
        store = region.stored.store
        # No other writer can change a fork.
        locks = ChunkLocks(
            store, among_workers(None if store.capabilities.forks else self._locked_at)
        )
        return partial(
            region.write,
            empty=self.empty,
            beyond=self.beyond,
            threads=self.threads,
            locks=locks,
            requests=requests,
        )

    @contextmanager
    def joining(self, requests: Requests) -> Iterator[list[Changes]]:
        """Share locks and requests among the blocks that this thread writes.

        In a remote store, their requests are added to `requests`: the blocks are stored when the
        context of these is left, which must come first. Then they are recorded. If the store is a
        fork, the list that is yielded holds its changes afterwards.
        """
        written, joined = list[tuple[Region, int]](), vars(_JOINED)
        with self._write.block():
            is_repeated = self._begin()
        with (
            self._write.block() if self.region.costs.overlaps else nullcontext(),
            self._changing(is_repeated=is_repeated) as (region, changes),
        ):
            joined[self.name] = self._writer(region, requests), written, is_repeated
            try:
                yield changes
            finally:
                del joined[self.name]
            if self.log is not None and written:
                self.log.add(written)

    def _begin(self) -> bool:
        """Do what comes before the first block, if the tasks run later than requested.

        Return whether the write was completed before, so that blocks are compared.
        """
        is_repeated = self.expected is not None and self.expected.check()
        if self.marker is not None:
            self.marker.begin()
        return is_repeated

    @property
    def receipt_dtype(self) -> np.dtype[Any]:
        """The data type of receipts, which Dask joins; receipts of forks may hold changes."""
        return np.dtype(object if isinstance(self.region.stored.store, Fork) else np.intp)

    @property
    def pace(self) -> Pace:
        """The pace of the threads of this process that write small blocks."""
        return self._write.pace

    def abort(self) -> None:
        """Stop writing blocks in this process, and wait for those that are being written."""
        self._write.abort()

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "zarrdask", self.name  # which is unique

    def __reduce__(self) -> tuple[Any, ...]:
        if self._locked_at is None:
            self._locked_at = lock_place()
        options = self.empty, self.name, self.beyond, self.log, self.marker, self.expected
        return _writer, (self.region, *options, self._locked_at, self.casting)


def _writer(
    region: ArrayRegion,
    empty: Any,
    name: str,
    beyond: Beyond,
    log: BlockLog | None,
    marker: LaterMarker | None,
    expected: ExpectedArray | LaterClaim | None,
    locked_at: str,
    casting: Casting,
) -> BlockWriter:
    later = {"marker": marker, "expected": expected}
    writer = BlockWriter(region, empty=empty, name=name, beyond=beyond, log=log, **later)  # type: ignore[arg-type]
    writer._locked_at, writer.casting = locked_at, casting
    return writer
