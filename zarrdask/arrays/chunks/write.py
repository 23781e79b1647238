"""Write parts of a stored array.

A *unit* is a stored object: a chunk, or a shard of an array that has shards. Units that are covered
completely are encoded and stored; others are read, changed and stored under a lock.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from zarrdask.arrays.chunks.parts import in_parts
from zarrdask.arrays.chunks.stored import StoredChunks, in_doubt
from zarrdask.errors import CodecError, LinkError, UnsupportedError, ZarrdaskError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.codecs.array_to_bytes.sharding import shard_of
from zarrdask.formats.codecs.decode import fill_chunk, merge
from zarrdask.formats.dtypes.fill_values import only_fill
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.projection import Points, Projection, Request, permute, project
from zarrdask.runtime.in_flight import Requests
from zarrdask.runtime.progress import Show
from zarrdask.runtime.turns import in_turns
from zarrdask.storage.base import Store
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.storage.locks.unchanged import until_unchanged

#: How a write treats the elements of a unit that are beyond the end of the array: in a new array
#: they are set to the fill value; in an existing one they are kept, since another writer may be
#: appending to the array.
Beyond = Literal["fill", "keep"]


def write_region(
    chunks: StoredChunks,
    request: Request,
    values: np.ndarray,
    *,
    empty: bool,
    beyond: Beyond = "keep",
    threads: int | None = 1,
    locks: ChunkLocks | None = None,
    show: Show | None = False,
    requests: Requests | None = None,
) -> int:
    """Write values to the requested elements of an array.

    Parameters
    ----------
    chunks : StoredChunks
        The array.
    request : Request
        The elements to write, as in `zarrdask.arrays.chunks.read.read_region`.
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
    locks : ChunkLocks, optional
        The locks of the units, by default those that exclude writers on this machine only.
    show : bool, file or callable, default False
        Whether and how to show a progress bar. None shows one if the write is large.
    requests : Requests, optional
        For a remote store, the requests in flight, to which those that store whole units are added.
        Then this function returns before these units are stored: they are when the context of the
        requests is left.

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
    projection = project(request, chunks.metadata.grid.axes)
    return write_units(
        chunks,
        projection,
        values,
        empty=empty,
        beyond=beyond,
        threads=threads,
        locks=locks,
        show=show,
        requests=requests,
    )


def write_units(
    chunks: StoredChunks,
    projection: Projection,
    values: np.ndarray,
    *,
    empty: bool,
    beyond: Beyond,
    threads: int | None,
    locks: ChunkLocks | None = None,
    show: Show | None = False,
    requests: Requests | None = None,
) -> int:
    """Write the values of a block to parts of units; see `write_region`."""
    locks = locks or ChunkLocks(chunks.store)
    writer = _Writer(chunks=chunks, locks=locks, empty=empty, beyond=beyond, joined=requests)
    work, nbytes = partial(writer.write, values), values.nbytes
    with chunks.measured("write"):
        return sum(
            in_parts(
                work, chunks, projection, threads=threads, label="write", show=show, nbytes=nbytes
            )
        )


class _Unit(NamedTuple):
    """A unit: its key, the name of its lock, its index, and the part to write (None for all)."""

    key: str
    lock: str
    at: Index
    inside: Any


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Writes units of an array; the attributes are the parameters of `write_region`."""

    chunks: StoredChunks
    locks: ChunkLocks
    empty: bool
    beyond: Beyond
    joined: Requests | None

    def write(self, values: np.ndarray, projection: Projection) -> int:
        """Write values to parts of units, and return the number of units that were stored."""
        has_several = len(projection.indices) > 1 or self.joined is not None
        if has_several and self.chunks.costs.overlaps:
            return self._write_at_once(values, projection)
        stored = list[bool]()

        def write(units: Iterable[tuple[_Unit, Any]]) -> int:
            before = len(stored)
            for unit, outside in units:
                if self._replaces(unit):
                    data = self._encode(unit, values[outside])
                    self._put_whole(unit, data)
                    stored.append(data is not None)
                else:
                    stored.append(self._change(unit, values[outside]))
            return len(stored) - before

        nbytes = self.chunks.metadata.pipeline.spec.nbytes
        in_turns(write, self._units(projection), count=len(projection.indices), nbytes=nbytes)
        return sum(stored)

    def _units(self, projection: Projection) -> Iterator[tuple[_Unit, Any]]:
        """Yield each unit, and where its values are."""
        prefix, location = self.chunks.prefix, self.chunks.canonical_location
        names = self.chunks.metadata.keys.names(projection.indices)
        for name, index, inside, outside in zip(names, *projection, strict=True):
            yield _Unit(prefix + name, location + name, index, inside), outside

    def _write_at_once(self, values: np.ndarray, projection: Projection) -> int:
        """Write to a remote store: while one object is encoded, others are in flight."""
        stored = list[bool]()
        can_swap = self.chunks.units.capabilities.compare_and_swap
        in_thread_of_task = self.locks.is_distributed and not can_swap

        def change(unit: _Unit, part: np.ndarray) -> None:
            stored.append(self._change(unit, part))

        with Requests() as requests:
            whole_units = requests if self.joined is None else self.joined
            for unit, outside in self._units(projection):
                part = values[outside]
                if self._replaces(unit):
                    data = self._encode(unit, part)
                    stored.append(data is not None)
                    # Some codecs return a view of memory that the next chunk is encoded into.
                    if not isinstance(data, bytes | None):
                        is_view = np.may_share_memory(np.asarray(data), part)
                        data = data if is_view else bytes(data)
                    whole_units.send(partial(self._put_whole, unit, data), len(data or b""))
                elif in_thread_of_task:
                    # A lock of the cluster belongs to the thread of the task.
                    change(unit, part)
                else:
                    size = self.chunks.metadata.pipeline.spec.nbytes
                    requests.send(partial(change, unit, part), 2 * size)
        return sum(stored)

    # ---- whole units

    def _replaces(self, unit: _Unit) -> bool:
        """Whether a write keeps no element of the stored unit."""
        if unit.inside is None:
            return True
        return self.beyond == "fill" and self._reaches_edges(unit)

    def _reaches_edges(self, unit: _Unit) -> bool:
        """Whether a write covers all elements of a unit that are within the array."""
        grid, (_, _, index, inside) = self.chunks.metadata.grid, unit
        return _is_box(inside) and all(
            pick.start == 0 and pick.stop == min(length, size - at)
            for pick, length, at, size in zip(
                inside, grid.shape_of(index), grid.start(index), grid.shape, strict=True
            )
        )

    def _encode(self, unit: _Unit, values: np.ndarray) -> Buffer | None:
        """Return an encoded unit, or None if it need not be stored.

        Elements that are not written have the fill value.
        """
        try:
            return self._encoded(unit, values, None)
        except ZarrdaskError as error:
            raise error.within(unit.key) from error.__cause__

    def _encoded(self, unit: _Unit, values: np.ndarray, old: Buffer | None) -> Buffer | None:
        """Return an encoded unit, changed from an old one; None if it need not be stored."""
        pipeline, inside = self.chunks.metadata.pipeline_at(unit.at), unit.inside
        shard = shard_of(pipeline)
        if inside is None:
            whole = values
        elif shard is not None and _is_box(inside):
            # Only the inner chunks that change are encoded.
            if pipeline.axes is not None:
                inside, values = permute(inside, pipeline.axes), values.transpose(pipeline.axes)
            data = shard.update(old, inside, values)
            return shard.assemble({}) if data is None and self.empty else data
        else:
            whole = merge(pipeline, old, inside, values)
        has_fill = self.chunks.metadata.fill_value is not None
        # Readers differ in what they make of missing chunks without a fill value.
        if not self.empty and has_fill and only_fill(whole, pipeline.spec.fill_value):
            return None
        return pipeline.encode(whole)

    def _put_whole(self, unit: _Unit, data: Buffer | None) -> None:
        version = self.locks.version(unit.lock)
        self._put(unit, data)
        if not self.locks.is_outdated(version):
            return
        # A partial write at the same time may have stored a unit that was read before this write.
        # That writer runs on this machine; cluster locks belong to the threads of their tasks.
        with self.locks.hold_here(unit.lock):
            self._put(unit, data)

    def _put(self, unit: _Unit, data: Buffer | None) -> None:
        units = self.chunks.units
        if data is None:
            try:
                units.erase(unit.key)
                return
            except LinkError:
                # Nothing is erased through a symbolic link. A unit of the fill value reads the
                # same.
                data = self._encoded_fill(unit)
        units.set(unit.key, data)

    def _encoded_fill(self, unit: _Unit) -> Buffer:
        pipeline = self.chunks.metadata.pipeline_at(unit.at)
        return pipeline.encode(fill_chunk(pipeline.spec))

    # ---- parts of units

    def _change(self, unit: _Unit, values: np.ndarray) -> bool:
        """Change part of a unit, and return whether it was stored rather than erased."""
        units = self.chunks.units
        if units.capabilities.compare_and_swap:
            try:
                with self.locks.hold_here(unit.lock):
                    return self._swap(unit, values)
            except UnsupportedError:
                # Not every server of S3 has conditional writes. In a cluster that raises an error,
                # as this may be a thread that can't take its locks.
                if self.locks.is_distributed:
                    raise
        if units.capabilities.concurrent and units.capabilities.shared:
            _warn_of_other_machines(units.url)
        with self.locks.hold(unit.lock):
            data = self._encode_part(unit, values, units.get(unit.key))
            self._put(unit, data)
        return data is not None

    def _swap(self, unit: _Unit, values: np.ndarray) -> bool:
        """Change part of a unit by compare-and-swap, repeated if another machine has changed it."""

        def change(units: Store) -> bool:
            old = units.get(unit.key)
            data = self._encode_part(unit, values, old)
            if data is None and old is None:
                return False
            # Stores can't erase on a condition.
            units.set(unit.key, self._encoded_fill(unit) if data is None else data)
            return True

        return until_unchanged(self.chunks.units, change)

    def _encode_part(self, unit: _Unit, values: np.ndarray, old: Buffer | None) -> Buffer | None:
        """Change a part of a unit and encode it; return None if it need not be stored."""
        try:
            return self._encoded(unit, values, old)
        except ZarrdaskError as error:
            if not isinstance(error, CodecError) or not self._reaches_edges(unit):
                if isinstance(error, CodecError) and old is not None:
                    in_doubt(error)
                raise error.within(unit.key) from error.__cause__
        # The damaged unit has no other element in the array that would have to be kept.
        return self._encode(unit, values)


@cache
def _warn_of_other_machines(url: str) -> None:
    warnings.warn(
        f"{url}: this write changes part of a chunk or shard, and the store can't detect another "
        "machine that changes it at the same time. If other machines write to this array now, "
        "align the regions that they write with its chunks, or shards",
        stacklevel=2,
    )


def _is_box(request: Any) -> bool:
    """Whether a request is a contiguous block: slices of step 1 along all axes."""
    return not isinstance(request, Points) and all(
        isinstance(pick, slice) and pick.step == 1 for pick in request
    )
