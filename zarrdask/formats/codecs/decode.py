"""Decode chunks: directly into a block, or to change a part of one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from zarrdask.errors import ZarrdaskError
from zarrdask.formats.codecs.chunk_parts import FetchedChunk, decode_part
from zarrdask.formats.codecs.codec import Buffer, ChunkSpec
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.indexing.projection import Points, Request, numpy_index
from zarrdask.runtime import buffers, measuring
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.runtime.turns import SMALL_CHUNK_BYTES, in_turns


@dataclass(frozen=True)
class Blocks:
    """The blocks of `Regions`, indexed by pairs of a block's number and an index in it."""

    blocks: Sequence[np.ndarray]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The number of axes of each block."""
        return self.blocks[0].ndim

    @property
    def nbytes(self) -> int:
        """The size of all blocks in bytes."""
        return sum(block.nbytes for block in self.blocks)

    def __getitem__(self, outsides: Any) -> "Blocks":
        return Blocks([self.blocks[number][outside] for number, outside in outsides], self.dtype)

    def __setitem__(self, outsides: Any, value: Any) -> None:
        for block in self.blocks if outsides is ... else self[outsides].blocks:
            block[...] = value

    def transpose(self, axes: Sequence[int] | None) -> "Blocks":
        """Return the blocks with their axes in another order."""
        return Blocks([block.transpose(axes) for block in self.blocks], self.dtype)


class CachedChunk(FetchedChunk):
    """A stored chunk that is decoded as a whole for a cache, or is in it."""

    __slots__ = ()

    def elements(self, pipeline: Pipeline, inside: Request | None) -> np.ndarray:
        if measuring.IS_ACTIVE:
            THIS_THREAD.counts.left_out += 1  # It counts itself.
        return _picked(self.decoded(pipeline), inside)

    def decoded(self, pipeline: Pipeline) -> np.ndarray:
        """Return the chunk, which must not be changed."""
        raise NotImplementedError


class ChunkCache(Protocol):
    """A cache of the chunks of one shard, by index."""

    def get(self, index: tuple[int, ...]) -> CachedChunk | None:
        """Return a chunk that is in the cache."""

    def new(self, index: tuple[int, ...], data: Buffer) -> CachedChunk:
        """Return an encoded chunk that is put into the cache when it is decoded."""


#: The name, the requested part, the index in the block and the stored value of a chunk.
Item = tuple[Any, Any, Any, Buffer | FetchedChunk | None]


def scatter(
    pipeline: Pipeline,
    names: Sequence[Any],
    insides: Iterable[Any],
    outsides: Iterable[Any],
    values: Iterable[Buffer | FetchedChunk | None],
    *,
    out: np.ndarray | Blocks,
    kind: str = "",
    again: Callable[[Any], Buffer | None] | None = None,
    missed: list[Any] | None = None,
) -> None:
    """Decode chunks, and copy the requested part of each to a block.

    Parameters
    ----------
    pipeline : Pipeline
        The pipeline of all the chunks.
    names : sequence
        The names of the chunks, with which errors begin.
    insides, outsides : iterable
        As in `zarrdask.formats.indexing.projection.Projection`.
    values : iterable of bytes-like, FetchedChunk or None
        The stored chunks. None stands for a missing chunk, which reads as the fill value. Each is
        used before the next one is requested.
    out : ndarray or Blocks
        The block, or several of them if the requests are `Regions`.
    kind : str
        The text before a name in an error.
    again : callable, optional
        Given if `values` waits for requests to a store with latency: it requests the value of a
        name once more, as a chunk that can't be decoded may have been damaged in transit.
    missed : list, optional
        A list to which the names of missing chunks are added.
    """
    work: Callable[[Iterable[Item]], int]
    if isinstance(out, Blocks):
        work = partial(_scatter_regions, pipeline, out, kind, again, missed)
    else:
        work = partial(_scatter, pipeline, out, kind, again, missed)
    items = zip(names, insides, outsides, values, strict=True)
    if measuring.IS_ACTIVE and pipeline.is_counted:
        if len(names) == 1:
            THIS_THREAD.counts.decode_one(work, items)
            return
        work = partial(THIS_THREAD.counts.decode_batch, work, nbytes=pipeline.spec.nbytes)
    if again or len(names) == 1:
        work(items)
    else:
        in_turns(work, items, count=len(names), nbytes=pipeline.spec.nbytes)


def _scatter(
    pipeline: Pipeline,
    out: np.ndarray,
    kind: str,
    again: Callable[[Any], Buffer | None] | None,
    missed: list[Any] | None,
    items: Iterable[Item],
) -> int:
    """Decode chunks into a block, and return their number."""
    memory, is_direct, count = _memory(pipeline), None, 0
    for name, inside, outside, data in items:
        try:
            if data is None:
                if measuring.IS_ACTIVE:
                    THIS_THREAD.counts.left_out += 1
                if missed is not None:
                    missed.append(name)
                put_fill(out, outside, pipeline.spec.fill_value)
            elif inside is not None or isinstance(data, FetchedChunk):
                out[outside] = _decode(pipeline, data, inside, memory)
            else:
                if is_direct is None:
                    is_direct = fits(pipeline, out, outside)
                target = out[outside].reshape(-1).view(np.uint8) if is_direct else memory
                chunk = pipeline.decode(data, target)
                if not (is_direct and np.may_share_memory(chunk, out)):
                    out[outside] = chunk
        except ZarrdaskError as error:
            if again is None:
                raise error.within(f"{kind}{name}") from error.__cause__
            _scatter(pipeline, out, kind, None, missed, [(name, inside, outside, again(name))])
        count += 1
    return count


def _scatter_regions(
    pipeline: Pipeline,
    out: Blocks,
    kind: str,
    again: Callable[[Any], Buffer | None] | None,
    missed: list[Any] | None,
    items: Iterable[Item],
) -> int:
    """Decode each chunk once, and copy the part that each region needs to its block."""
    memory, count = _memory(pipeline), 0
    for count, (name, inside, outsides, data) in enumerate(items, 1):  # noqa: B007
        regions = inside.regions
        if data is None or regions == (None,):  # It may be decoded into the block.
            if measuring.IS_ACTIVE:
                THIS_THREAD.counts.left_out += 1 - len(regions)
            for region, (number, outside) in zip(regions, outsides, strict=True):
                item = name, region, outside, data
                _scatter(pipeline, out.blocks[number], kind, again, missed, [item])
            continue
        try:
            if len(regions) == 1:
                number, outside = outsides[0]
                out.blocks[number][outside] = _decode(pipeline, data, regions[0], memory)
                continue
            chunk = _decode(pipeline, data, None, memory)
        except ZarrdaskError as error:
            if again is None:
                raise error.within(f"{kind}{name}") from error.__cause__
            item = name, inside, outsides, again(name)
            _scatter_regions(pipeline, out, kind, None, missed, [item])
            continue
        for region, (number, outside) in zip(regions, outsides, strict=True):
            out.blocks[number][outside] = chunk if region is None else chunk[region]
    return count


def _decode(
    pipeline: Pipeline,
    data: Buffer | FetchedChunk,
    inside: Request | None,
    memory: np.ndarray | None,
) -> np.ndarray:
    """Return the requested elements of a chunk; decode only a part of it if that is faster."""
    if isinstance(data, FetchedChunk):
        return data.elements(pipeline, inside)
    if inside is not None and pipeline.partial:
        part = decode_part(pipeline, data, inside)
        if part is not None:
            return part
    return _picked(pipeline.decode(data, memory), inside)


def _picked(chunk: np.ndarray, inside: Request | None) -> np.ndarray:
    """Return the requested elements of a decoded chunk."""
    if isinstance(inside, Points):
        return inside.take(chunk)
    return chunk if inside is None else chunk[numpy_index(inside)]


def _memory(pipeline: Pipeline) -> np.ndarray | None:
    """Return memory of this thread to decode chunks into, one after another, or None.

    A chunk that is decoded into it is still in the cache of the CPU when it is copied to the block.
    For small chunks, codecs are faster if they allocate memory.
    """
    size = pipeline.spec.nbytes
    is_used = size >= SMALL_CHUNK_BYTES and pipeline.raw is not None and pipeline.compressors
    return buffers.of_thread(size) if is_used else None


def fits(pipeline: Pipeline, out: np.ndarray, outside: Any) -> bool:
    """Whether a chunk is decoded to the bytes that its part of a block has."""
    # NumPy reads None as float64 when it compares it with a dtype.
    if pipeline.axes is not None or pipeline.raw is None or pipeline.raw != out.dtype:
        return False
    return bool(out[outside].flags.c_contiguous)


def merge(
    pipeline: Pipeline, data: Buffer | None, inside: Request, values: np.ndarray
) -> np.ndarray:
    """Return a stored chunk in which the elements of a request have new values.

    None stands for a missing chunk, which reads as the fill value.
    """
    chunk = fill_chunk(pipeline.spec) if data is None else pipeline.decode_counted(data)
    if not chunk.flags.writeable or chunk.dtype != pipeline.spec.dtype:
        chunk = np.array(chunk, pipeline.spec.dtype)
    chunk[numpy_index(inside)] = values
    return chunk


def fill_chunk(spec: ChunkSpec) -> np.ndarray:
    """Return a new chunk, or shard, in which every element is the fill value."""
    chunk = buffers.chunk(spec.shape, spec.dtype)
    put_fill(chunk, ..., spec.fill_value)
    return chunk


def put_fill(out: np.ndarray | Blocks, outside: Any, fill: Any) -> None:
    """Fill part of a block, or parts of several, with the fill value."""
    if out.dtype.hasobject:
        # As one object: the items of a list or an array would be spread over the part.
        cell = np.empty((), object)
        cell[()] = fill
        fill = cell
    out[outside] = fill
