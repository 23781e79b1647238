"""Read and write regions of a stored array: grid, pipeline and store meet here, and only here."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from zarrdask import config, memory
from zarrdask.codecs.scatter import put_fill, scatter
from zarrdask.codecs.sharding import HeldValue, Shard, Value, read_shard
from zarrdask.cuts import Cuts, Points, Request, cut, numpy_index, permute
from zarrdask.dtypes.fill import only_fill
from zarrdask.errors import ZarrdaskError
from zarrdask.grids import Index, Shape
from zarrdask.indexing import pick_size
from zarrdask.metadata import ArrayMetadata
from zarrdask.storage.base import Buffer, Range, Scratch, Store

# Small units are read by one thread at a time; see `_read_in_turns`.
_TURN = threading.Lock()
_SMALL = 2**16
# Units of one turn: at first, and when those came fast, in seconds a unit.
_TRIAL, _RUN = 16, 256
_PATIENCE = 150e-6
# Bytes, decoded, that are asked for together.
_TOGETHER = 2**28


@dataclass(frozen=True)
class Chunks:
    """The stored units of one array.

    Attributes
    ----------
    store : Store
    prefix : str
        Of the array's keys: "" or ends with "/".
    metadata : ArrayMetadata
    """

    store: Store
    prefix: str
    metadata: ArrayMetadata

    def key(self, index: Index) -> str:
        """Return the store key of a unit."""
        return self.prefix + self.metadata.keys.key(index)


@dataclass(frozen=True)
class StoredValue:
    """A value in a store, read in parts."""

    store: Store
    key: str
    scratch: Scratch

    def part(self, start: int, length: int) -> Buffer | None:  # noqa: D102
        return self.store.get_range(self.key, start, None if start < 0 else length)

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:  # noqa: D102
        return self.store.get_ranges(self.key, ranges, self.scratch)


# --------------------------------------------------------------------------------------------
# Reading


def read_region(chunks: Chunks, request: Request, *, threads: int | None = 1) -> np.ndarray:
    """Return what is wanted of an array.

    Parameters
    ----------
    chunks : Chunks
    request : Request
        One slice (with a positive step) or array of positions an axis, within the shape; or
        points.
    threads : int, optional
        How many decode at a time; as configured, if None. A Dask task uses one: the cluster is
        the parallelism.

    Returns
    -------
    ndarray
        New, in C order, of the array's dtype: one axis a pick, or one axis for points.

    Raises
    ------
    CodecError
        If a unit is damaged. The error names its key.
    StoreError
        If the store fails.
    """
    metadata = chunks.metadata
    cuts = cut(request, metadata.chunk_shape)
    out = memory.empty(request_shape(request), metadata.dtype)
    _run(lambda part: _read(chunks, part, out), cuts, threads)
    return out


def request_shape(request: Request) -> Shape:
    """Return the shape of what a request gives."""
    if isinstance(request, Points):
        return (len(request.coordinates[0]),) if request.coordinates else (1,)
    return tuple(map(pick_size, request))


def _read(chunks: Chunks, cuts: Cuts, out: np.ndarray) -> None:
    """Read some of a region's units, one after another."""
    metadata, store = chunks.metadata, chunks.store
    size, count = metadata.pipeline.spec.nbytes, len(cuts.indices)
    if not store.seekable:
        # Units that are asked for together are in memory together.
        step = max(_TOGETHER // max(size, 1), 1)
        for at in range(0, count, step):
            _read_units(chunks, cuts.some(at, at + step), out)
    elif count > 1 and size < _SMALL and metadata.shard is None:
        _read_in_turns(chunks, cuts, out)
    else:
        _read_units(chunks, cuts, out)


def _read_in_turns(chunks: Chunks, cuts: Cuts, out: np.ndarray) -> None:
    """Read small units, as a rule while no other thread does."""
    # Small chunks are many short calls, each of which lets go of the GIL and has to get it back:
    # threads that do this at the same time are slower than one after the other. But where units
    # come slowly, from a disk far away, all should wait at once.
    at, step, end = 0, _TRIAL, len(cuts.indices)
    while at < end:
        part = cuts.some(at, at + step)
        with _TURN:
            start = perf_counter()
            _read_units(chunks, part, out)
            spent = perf_counter() - start
        at += step
        if spent > _PATIENCE * len(part.indices):
            _read_units(chunks, cuts.some(at, end), out)
            return
        step = _RUN


def _read_units(chunks: Chunks, cuts: Cuts, out: np.ndarray) -> None:
    metadata, store = chunks.metadata, chunks.store
    names = [chunks.prefix + name for name in metadata.keys.names(cuts.indices)]
    scratch = _scratch()
    shard = metadata.shard
    if shard is None:
        values = store.get_many(names, scratch)
        scatter(metadata.pipeline, names, cuts.insides, cuts.outsides, values, out=out)
        return
    for name, value, inside, outside in zip(
        names, _shards(store, names, cuts, scratch), cuts.insides, cuts.outsides, strict=True
    ):
        if value is None:
            put_fill(out, outside, metadata.fill)
            continue
        try:
            read_shard(metadata.pipeline, shard, value, inside, out, outside)
        except ZarrdaskError as error:
            raise error.within(name) from error.__cause__


def _shards(store: Store, names: list[str], cuts: Cuts, scratch: Scratch) -> Iterator[Value | None]:
    """Yield each shard: as a whole where all of it is wanted and a request costs time."""
    if store.seekable or not any(inside is None for inside in cuts.insides):
        yield from (StoredValue(store, name, scratch) for name in names)
        return
    whole = [name for name, inside in zip(names, cuts.insides, strict=True) if inside is None]
    held = store.get_many(whole, scratch)
    for name, inside in zip(names, cuts.insides, strict=True):
        if inside is None:
            data = next(held)
            yield None if data is None else HeldValue(data)
        else:
            yield StoredValue(store, name, scratch)


# --------------------------------------------------------------------------------------------
# Writing


def write_region(
    chunks: Chunks, request: Request, values: np.ndarray, *, empty: bool, threads: int | None = 1
) -> int:
    """Write values to a region, or to any other part of an array.

    A unit that the region covers (as far as the array goes) is encoded and stored; one that it
    covers in part is read, changed and stored. So nobody else may write that unit meanwhile.

    Parameters
    ----------
    chunks : Chunks
    request : Request
        Where to, as in `read_region`.
    values : ndarray
        Of the request's shape and the array's dtype.
    empty : bool
        Whether units that hold only the fill value are stored; they are erased otherwise.
    threads : int, optional
        How many encode at a time.

    Returns
    -------
    int
        How many units were stored.

    Raises
    ------
    CodecError
        If values can't be encoded, or a unit that is to be changed is damaged.
    StoreError
        If the store fails.
    """
    cuts = cut(request, chunks.metadata.chunk_shape)
    written = _run(lambda part: _write(chunks, part, values, empty=empty), cuts, threads)
    return sum(written)


def _write(chunks: Chunks, cuts: Cuts, values: np.ndarray, *, empty: bool) -> int:
    stored = 0
    for index, inside, outside in zip(*cuts, strict=True):
        key = chunks.key(index)
        try:
            data = _encode(chunks, key, index, inside, values[outside], empty=empty)
        except ZarrdaskError as error:
            raise error.within(key) from error.__cause__
        if data is None:
            chunks.store.erase(key)
        else:
            chunks.store.set(key, data)
            stored += 1
    return stored


def _encode(
    chunks: Chunks, key: str, index: Index, inside: Any, values: np.ndarray, *, empty: bool
) -> Buffer | None:
    """Return the new stored form of a unit, or None if it need not be stored."""
    metadata = chunks.metadata
    pipeline, fill = metadata.pipeline, metadata.fill
    if inside is not None and not _reaches_edges(metadata, index, inside):
        shard = metadata.shard
        if shard is not None and _is_box(inside):
            return _update_shard(chunks, shard, key, inside, values, empty=empty)
        values = _merge(chunks, key, inside, values)
    elif inside is not None:
        padded = np.empty(metadata.chunk_shape, metadata.dtype)
        put_fill(padded, ..., fill)
        padded[inside] = values
        values = padded
    if not empty and only_fill(values, fill):
        return None
    return pipeline.encode(values)


def _is_box(request: Request) -> bool:
    """Whether a request is a block of neighbouring elements."""
    return not isinstance(request, Points) and all(
        isinstance(pick, slice) and pick.step == 1 for pick in request
    )


def _reaches_edges(metadata: ArrayMetadata, index: Index, inside: Any) -> bool:
    """Whether all elements of a unit that lie in the array are covered."""
    return _is_box(inside) and all(
        pick.start == 0 and pick.stop == min(chunk, size - i * chunk)
        for pick, i, chunk, size in zip(
            inside, index, metadata.chunk_shape, metadata.shape, strict=True
        )
    )


def _merge(chunks: Chunks, key: str, inside: Any, values: np.ndarray) -> np.ndarray:
    metadata = chunks.metadata
    data = chunks.store.get(key)
    if data is None:
        unit = np.empty(metadata.chunk_shape, metadata.dtype)
        put_fill(unit, ..., metadata.fill)
    else:
        unit = np.array(metadata.pipeline.decode(data), metadata.dtype)
    unit[numpy_index(inside)] = values
    return unit


def _update_shard(
    chunks: Chunks, shard: Shard, key: str, inside: Any, values: np.ndarray, *, empty: bool
) -> Buffer | None:
    axes = chunks.metadata.pipeline.axes
    if axes is not None:
        inside, values = permute(inside, axes), values.transpose(axes)
    encoded = shard.update(chunks.store.get(key), inside, values)
    return shard.assemble({}) if encoded is None and empty else encoded


# --------------------------------------------------------------------------------------------
# Threads


_LOCAL = threading.local()
# A thread that once read something huge must not hold on to it.
_KEPT = 2**25


def _scratch() -> Scratch:
    """Return this thread's buffer for encoded bytes."""
    found: Scratch | None = getattr(_LOCAL, "scratch", None)
    if found is None or len(found.view) > _KEPT:
        found = _LOCAL.scratch = Scratch()
    return found


def _run(work: Callable[[Cuts], Any], cuts: Cuts, threads: int | None) -> list[Any]:
    """Do the work on all units: here, or in parts by several threads."""
    count = len(cuts.indices)
    if threads == 1 or count <= 1:
        return [work(cuts)]
    threads = threads or config.get("threads") or len(os.sched_getaffinity(0))
    # A few parts a thread, so that they end together though units differ.
    size = max(1, -(-count // (threads * 4)))
    pieces = [cuts.some(start, start + size) for start in range(0, count, size)]
    futures = [_pool(threads).submit(work, piece) for piece in pieces]
    # All of them, also if one fails: nothing may go on behind the caller's back.
    wait(futures)
    return [future.result() for future in futures]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="zarrdask")


def _after_fork() -> None:
    # A forked process has none of its parent's threads: their pool, and a lock that one held.
    global _TURN  # noqa: PLW0603
    _TURN = threading.Lock()
    _pool.cache_clear()


os.register_at_fork(after_in_child=_after_fork)


# --------------------------------------------------------------------------------------------
# What is stored


def stored_units(chunks: Chunks) -> Iterable[Index]:
    """Yield the indices of the units that are stored.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    """
    metadata = chunks.metadata
    within = metadata.grid.counts
    start = len(chunks.prefix)
    for key in chunks.store.list_prefix(chunks.prefix):
        index = metadata.keys.index(key[start:], len(within))
        if index is not None and all(i < n for i, n in zip(index, within, strict=True)):
            yield index


def trim(chunks: Chunks, shape: Shape) -> None:
    """Erase what lies outside a smaller shape, so that growing again shows the fill value.

    Parameters
    ----------
    chunks : Chunks
        With the old shape.
    shape : tuple of int
        The new one.
    """
    metadata = chunks.metadata
    kept = metadata.grid.resize(shape).counts
    for index in list(stored_units(chunks)):
        if any(i >= n for i, n in zip(index, kept, strict=True)):
            chunks.store.erase(chunks.key(index))
        elif any(
            (i + 1) * chunk > new < old
            for i, chunk, new, old in zip(
                index, metadata.chunk_shape, shape, metadata.shape, strict=True
            )
        ):
            _clear_outside(chunks, index, shape)


def _clear_outside(chunks: Chunks, index: Index, shape: Shape) -> None:
    """Rewrite a unit that hangs over a shape, with the fill value where it does."""
    metadata = chunks.metadata
    start = metadata.grid.start(index)
    inside = tuple(
        slice(0, min(chunk, size - at), 1)
        for chunk, size, at in zip(metadata.chunk_shape, shape, start, strict=True)
    )
    key = chunks.key(index)
    data = chunks.store.get(key)
    if data is None:
        return
    unit = np.empty(metadata.chunk_shape, metadata.dtype)
    put_fill(unit, ..., metadata.fill)
    unit[inside] = metadata.pipeline.decode(data)[inside]
    chunks.store.set(key, metadata.pipeline.encode(unit))


def count_stored(chunks: Chunks) -> int:
    """Return how many chunks are stored: in shards, those that their indices name."""
    shard = chunks.metadata.shard
    units = stored_units(chunks)
    if shard is None:
        return sum(1 for _ in units)
    total = 0
    for unit in units:
        value = StoredValue(chunks.store, chunks.key(unit), Scratch())
        index = shard.read_index(value)
        if index is not None:
            total += prod(shard.grid.counts) - int((index == 2**64 - 1).all(axis=-1).sum())
    return total
