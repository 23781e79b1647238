"""Write parts of a stored array.

A *unit* is a stored object: a chunk, or a shard of an array that has shards. Units that are covered
completely are encoded and stored; others are read, changed and stored under a lock.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from zarrdask.chunks.parts import in_parts
from zarrdask.chunks.stored import StoredChunks
from zarrdask.codecs.array_to_bytes.sharding import shard_of
from zarrdask.codecs.decode import fill_chunk, merge
from zarrdask.dtypes.fill_values import only_fill
from zarrdask.errors import CodecError, LinkError, UnsupportedError, ZarrdaskError
from zarrdask.grids.base import ChunkGrid, Index
from zarrdask.indexing.projection import Points, Projection, Request, permute, project
from zarrdask.runtime.locks import ChunkLocks, Lock
from zarrdask.runtime.progress import Show
from zarrdask.runtime.turns import in_turns
from zarrdask.storage.base import Store
from zarrdask.storage.byte_ranges import Buffer
from zarrdask.storage.in_flight import MAX_BYTES_IN_FLIGHT, Requests
from zarrdask.storage.unchanged import until_unchanged

#: How a write treats the elements of a unit that are beyond the end of the array: in a new array
#: they are set to the fill value; in an existing one they are kept, since another writer may be
#: appending to the array.
Beyond = Literal["fill", "keep"]

#: How often a partial write is repeated because another machine has changed the unit meanwhile.
_MAX_SWAPS = 100


def write_region(
    chunks: StoredChunks,
    request: Request,
    values: np.ndarray,
    *,
    empty: bool,
    beyond: Beyond = "keep",
    threads: int | None = 1,
    among: Lock | None = None,
    show: Show | None = False,
    requests: Requests | None = None,
) -> int:
    """Write values to the requested elements of an array.

    Parameters
    ----------
    chunks : StoredChunks
        The array.
    request : Request
        The elements to write, as in `zarrdask.chunks.read.read_region`.
    values : ndarray
        The values, with the shape of the request and the data type of the array.
    empty : bool
        Whether units that hold nothing but the fill value are stored; otherwise they are erased.
    beyond : {"keep", "fill"}
        Whether elements of units beyond the end of the array are kept, which requires reading the
        units (the default), or set to the fill value.
    threads : int, optional
        The number of threads that encode in parallel, by default 1. None means as many as
        configured.
    among : Lock, optional
        A lock to take for a unit that is covered in part, which excludes writers on other
        machines. Writers on this machine are always excluded.
    show : bool, file or callable, default False
        Whether and how to show a progress bar. None shows one if the write is large.
    requests : Requests, optional
        In a store with latency, the requests that those for whole units join. Then this function
        returns before these units are stored; they are when the context of the requests is left.

    Returns
    -------
    int
        The number of units that were stored.

    Raises
    ------
    CodecError
        If values can't be encoded, or a unit that is written in part is damaged.
    StoreError
        If the store fails.
    """
    cuts = project(request, chunks.metadata.grid.axes)
    locks = ChunkLocks(chunks.store, among)
    writer = _Writer(chunks=chunks, locks=locks, empty=empty, beyond=beyond, joined=requests)
    work, nbytes = partial(writer.write, values), values.nbytes
    return sum(
        in_parts(work, chunks, cuts, threads=threads, label="write", show=show, nbytes=nbytes)
    )


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Writes units of an array; the attributes are the parameters of `write_region`."""

    chunks: StoredChunks
    locks: ChunkLocks
    empty: bool
    beyond: Beyond
    joined: Requests | None

    def write(self, values: np.ndarray, cuts: Projection) -> int:
        """Write values to parts of units, and return the number of units that were stored."""
        has_several = len(cuts.indices) > 1 or self.joined is not None
        if has_several and not self.chunks.units.seekable:
            return self._write_at_once(values, cuts)
        stored = 0

        def write(units: Iterable[tuple[Index, Any, Any]]) -> int:
            nonlocal stored
            count = 0
            for index, inside, outside in units:
                if self._replaces(index, inside):
                    data = self._encode(index, inside, values[outside])
                    self._put_whole(index, data)
                    stored += data is not None
                else:
                    stored += self._change(index, inside, values[outside])
                count += 1
            return count

        nbytes = self.chunks.metadata.pipeline.spec.nbytes
        in_turns(write, zip(*cuts, strict=True), count=len(cuts.indices), nbytes=nbytes)
        return stored

    def _write_at_once(self, values: np.ndarray, cuts: Projection) -> int:
        """Write to a store with latency: while one object is encoded, others are on their way."""
        counts = list[int]()
        in_thread_of_task = self.locks.is_distributed and not self.chunks.units.swappable

        def change(index: Index, inside: Any, part: np.ndarray) -> None:
            counts.append(self._change(index, inside, part))

        with Requests(MAX_BYTES_IN_FLIGHT) as requests:
            whole_units = requests if self.joined is None else self.joined
            for index, inside, outside in zip(*cuts, strict=True):
                part = values[outside]
                if self._replaces(index, inside):
                    data = self._encode(index, inside, part)
                    counts.append(data is not None)
                    # Some codecs return a view of memory that the next chunk is encoded into.
                    data = None if data is None else bytes(data)
                    whole_units.send(partial(self._put_whole, index, data), len(data or b""))
                elif in_thread_of_task:
                    # A lock of the cluster belongs to the thread of the task.
                    change(index, inside, part)
                else:
                    size = self.chunks.metadata.pipeline.spec.nbytes
                    requests.send(partial(change, index, inside, part), 2 * size)
        return sum(counts)

    # ---- whole units

    def _replaces(self, index: Index, inside: Any) -> bool:
        """Whether a write keeps no element of the stored unit."""
        if inside is None:
            return True
        return self.beyond == "fill" and _reaches_edges(self.chunks.metadata.grid, index, inside)

    def _encode(self, index: Index, inside: Any, values: np.ndarray) -> Buffer | None:
        """Return an encoded unit, or None if it need not be stored."""
        pipeline = self.chunks.metadata.pipeline_at(index)
        if inside is not None:
            padded = fill_chunk(pipeline.spec)
            padded[inside] = values
            values = padded
        if not self.empty and only_fill(values, pipeline.spec.fill_value):
            return None
        try:
            return pipeline.encode(values)
        except ZarrdaskError as error:
            raise error.within(self.chunks.key(index)) from error.__cause__

    def _put_whole(self, index: Index, data: Buffer | None) -> None:
        name = self.chunks.lock_name(index)
        version = self.locks.version(name)
        self._put(index, data)
        if not self.locks.is_outdated(version):
            return
        # A partial write at the same time may have stored a unit that was read before this write.
        # It is one of this machine, and the locks of a cluster belong to the threads of its tasks.
        with self.locks.hold_here(name):
            self._put(index, data)

    def _put(self, index: Index, data: Buffer | None) -> None:
        units, key = self.chunks.units, self.chunks.key(index)
        if data is None:
            try:
                units.erase(key)
                return
            except LinkError:
                # Nothing is erased through a symbolic link. A unit of the fill value reads the
                # same.
                data = self._encoded_fill(index)
        units.set(key, data)

    def _encoded_fill(self, index: Index) -> Buffer:
        pipeline = self.chunks.metadata.pipeline_at(index)
        return pipeline.encode(fill_chunk(pipeline.spec))

    # ---- parts of units

    def _change(self, index: Index, inside: Any, values: np.ndarray) -> bool:
        """Change part of a unit, and return whether it was stored rather than erased."""
        name, units = self.chunks.lock_name(index), self.chunks.units
        if units.swappable:
            try:
                with self.locks.hold_here(name):
                    return self._swap(index, inside, values)
            except UnsupportedError:
                # Not every server of S3 has conditional writes. In a cluster that is an error, as
                # this may be a thread that can't take its locks.
                if self.locks.is_distributed:
                    raise
        if units.concurrent and units.shared:
            _warn_of_other_machines(units.url)
        with self.locks.hold(name):
            old = units.get(self.chunks.key(index))
            data = self._encode_part(index, inside, values, old)
            self._put(index, data)
        return data is not None

    def _swap(self, index: Index, inside: Any, values: np.ndarray) -> bool:
        """Change part of a unit, again until no other machine has changed it meanwhile."""
        key = self.chunks.key(index)

        def change(units: Store) -> bool:
            old = units.get(key)
            data = self._encode_part(index, inside, values, old)
            if data is None and old is None:
                return False
            # Stores can't erase on a condition.
            units.set(key, self._encoded_fill(index) if data is None else data)
            return True

        return until_unchanged(self.chunks.units, change)

    def _encode_part(
        self, index: Index, inside: Any, values: np.ndarray, old: Buffer | None
    ) -> Buffer | None:
        """Return an encoded unit of which a part is changed, or None if it need not be stored."""
        pipeline = self.chunks.metadata.pipeline_at(index)
        shard = shard_of(pipeline)
        try:
            if shard is not None and _is_box(inside):
                if pipeline.axes is not None:
                    inside, values = permute(inside, pipeline.axes), values.transpose(pipeline.axes)
                data = shard.update(old, inside, values)
                return shard.assemble({}) if data is None and self.empty else data
            merged = merge(pipeline, old, inside, values)
        except CodecError as error:
            if not _reaches_edges(self.chunks.metadata.grid, index, inside):
                raise error.within(self.chunks.key(index)) from error.__cause__
            # The damaged unit has no other element in the array that would have to be kept.
            return self._encode(index, inside, values)
        except ZarrdaskError as error:
            raise error.within(self.chunks.key(index)) from error.__cause__
        return self._encode(index, None, merged)


@cache
def _warn_of_other_machines(url: str) -> None:
    warnings.warn(
        f"{url}: part of a chunk or shard is changed, and this store can't detect that another "
        "machine changes it at the same time. If other machines write to this array now, let the "
        "regions that they write end at the edges of chunks, or of shards",
        stacklevel=2,
    )


def _is_box(request: Request) -> bool:
    """Whether a request is a contiguous block: slices of step 1 along all axes."""
    return not isinstance(request, Points) and all(
        isinstance(pick, slice) and pick.step == 1 for pick in request
    )


def _reaches_edges(grid: ChunkGrid, index: Index, inside: Any) -> bool:
    """Whether a request covers all elements of a unit that are within the array."""
    return _is_box(inside) and all(
        pick.start == 0 and pick.stop == min(length, size - at)
        for pick, length, at, size in zip(
            inside, grid.shape_of(index), grid.start(index), grid.shape, strict=True
        )
    )
