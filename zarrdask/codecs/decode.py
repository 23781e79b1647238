"""Decode chunks directly into their places in a block: the inner loop of every read."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from zarrdask.codecs.base import Buffer
from zarrdask.codecs.pipeline import Pipeline, inverse
from zarrdask.errors import ZarrdaskError
from zarrdask.indexing.projection import Points, Request, numpy_index, permute
from zarrdask.indexing.selection import pick_size
from zarrdask.runtime import buffers

#: For chunks smaller than this, in bytes, codecs are faster if they allocate their own buffer.
_SMALL_CHUNK_BYTES = 2**16


def scatter(
    pipeline: Pipeline,
    names: Iterable[Any],
    insides: Iterable[Request | None],
    outsides: Iterable[Any],
    values: Iterable[Buffer | None],
    *,
    out: np.ndarray,
    kind: str = "",
) -> None:
    """Decode chunks, and copy the requested part of each to its place in a block.

    Parameters
    ----------
    pipeline : Pipeline
        The pipeline of all the chunks.
    names : iterable
        The names of the chunks, for errors.
    insides, outsides : iterable
        As in `zarrdask.indexing.projection.Projection`.
    values : iterable of bytes-like or None
        The stored chunks. None stands for a missing chunk, which reads as the fill value. Each is
        used before the next one is requested.
    out : ndarray
        The block.
    kind : str
        The text before a name in an error.

    Raises
    ------
    CodecError
        If a value can't be decoded. The error begins with the name of the chunk.
    """
    name = None
    decode = None
    fill = pipeline.spec.fill_value
    try:
        for item in zip(names, insides, outsides, values, strict=True):
            name, inside, outside, data = item
            if data is None:
                put_fill(out, outside, fill)
            elif inside is not None:
                part = decode_part(pipeline, data, inside)
                if part is None:
                    decode = decode or chunk_decoder(pipeline)
                    part = decode(data)[numpy_index(inside)]
                out[outside] = part
            elif decode is not None:
                out[outside] = decode(data)
            elif fits(pipeline, out, outside):
                decode_into(pipeline, data, out[outside])
            else:
                decode = chunk_decoder(pipeline)
                out[outside] = decode(data)
            name = None
    except ZarrdaskError as error:
        if name is None:
            raise  # the store could not return the next value: its error names the key
        raise error.within(f"{kind}{name}") from error.__cause__


def fits(pipeline: Pipeline, out: np.ndarray, outside: Any) -> bool:
    """Whether the decoded bytes of a chunk are those of its place in a block."""
    # NumPy reads None as float64 when it compares it with a dtype.
    if pipeline.axes is not None or pipeline.raw is None or pipeline.raw != out.dtype:
        return False
    return bool(out[outside].flags.c_contiguous)


def decode_into(pipeline: Pipeline, data: Buffer, place: np.ndarray) -> None:
    """Decode a whole chunk into a contiguous place."""
    target = place.reshape(-1).view(np.uint8)
    decoded: Any = pipeline.inflate(data, target)
    if decoded is not target:
        place[...] = pipeline.finish(decoded)


def decode_part(pipeline: Pipeline, data: Buffer, inside: Request) -> np.ndarray | None:
    """Return a small part of a chunk, decoded without the rest; None if that is not possible.

    The requested elements, from the first to the last, must lie within less than half of the chunk.
    """
    partial = pipeline.partial
    if partial is None or isinstance(inside, Points):
        return None
    if pipeline.axes is not None:
        inside = permute(inside, pipeline.axes)
    first, span, counts, steps = 0, 1, [], []
    for pick, stride in zip(inside, pipeline.strides, strict=True):
        if not isinstance(pick, slice):
            return None
        count = pick_size(pick)
        first += pick.start * stride
        span += (count - 1) * pick.step * stride
        counts.append(count)
        steps.append(pick.step * stride)
    size = pipeline.raw.itemsize  # type: ignore[union-attr]
    if 2 * span * size > pipeline.spec.nbytes:
        return None
    start, decoded = partial(data, pipeline.spec.nbytes, first * size, (first + span) * size)
    offset, strides = first * size - start, [step * size for step in steps]
    # Not by as_strided, which does not support all dtypes.
    part: np.ndarray = np.ndarray(counts, pipeline.raw, decoded, offset, strides)
    return part if pipeline.axes is None else part.transpose(inverse(pipeline.axes))


def chunk_decoder(pipeline: Pipeline) -> Callable[[Buffer], np.ndarray]:
    """Return a function that decodes chunks; each is valid until the next one is decoded.

    All chunks are decoded into the same memory, so that a chunk is still in the cache of the CPU
    when it is copied to its place.
    """
    raw, spec = pipeline.raw, pipeline.spec
    if raw is None or not pipeline.compressors:
        return pipeline.decode
    axes = pipeline.axes or tuple(range(len(spec.shape)))
    shape = tuple(spec.shape[i] for i in axes)
    back = inverse(axes) if pipeline.axes else None
    inflate, finish, size = pipeline.inflate, pipeline.finish, spec.nbytes
    target = None
    if size > _SMALL_CHUNK_BYTES:
        chunk = buffers.chunk(shape, raw)
        target = chunk.reshape(-1).view(np.uint8)
        chunk = chunk.transpose(inverse(axes))

    def decode(data: Buffer) -> np.ndarray:
        decoded: Any = inflate(data, target)
        if decoded is target:
            return chunk
        if len(decoded) != size:
            return finish(decoded)  # raises the right error
        small = np.frombuffer(decoded, raw).reshape(shape)
        return small if back is None else small.transpose(back)

    return decode


def put_fill(out: np.ndarray, outside: Any, fill: Any) -> None:
    """Fill a place in a block with the fill value."""
    if out.dtype.hasobject:
        # As one object: the items of a list or an array would be spread over the place.
        cell = np.empty((), object)
        cell[()] = fill
        fill = cell
    out[outside] = fill
