"""Decode chunks straight into their places in a block: the inner loop of every read."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from zarrdask.codecs.base import Buffer
from zarrdask.codecs.pipeline import Pipeline, inverse
from zarrdask.errors import ZarrdaskError
from zarrdask.indexing.projection import Points, Request, numpy_index, permute
from zarrdask.indexing.selection import pick_size
from zarrdask.runtime import buffers

#: Below this many bytes a codec that makes its own buffer is faster than one that is given one.
_SMALL = 2**16


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
    """Decode each value and put what is wanted of it in its place.

    Parameters
    ----------
    pipeline : Pipeline
        Of all the chunks.
    names : iterable
        What each chunk is called in an error.
    insides, outsides : iterable
        As in `zarrdask.indexing.projection.Projection`.
    values : iterable of bytes-like or None
        The stored chunks; None stands for one that is absent, and reads as the fill value. Each
        is used before the next is asked for.
    out : ndarray
        The block.
    kind : str
        What stands before a name in an error.

    Raises
    ------
    CodecError
        If a value can't be decoded; the error begins with its name.
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
            raise  # the next value could not be had: that error names it
        raise error.within(f"{kind}{name}") from error.__cause__


def fits(pipeline: Pipeline, out: np.ndarray, outside: Any) -> bool:
    """Whether decoded bytes are just what belongs into a place in a block."""
    # NumPy takes None for float64 where it is compared with a dtype.
    if pipeline.axes is not None or pipeline.raw is None or pipeline.raw != out.dtype:
        return False
    return bool(out[outside].flags.c_contiguous)


def decode_into(pipeline: Pipeline, data: Buffer, place: np.ndarray) -> None:
    """Decode a whole chunk into a contiguous place."""
    room = place.reshape(-1).view(np.uint8)
    found: Any = pipeline.inflate(data, room)
    if found is not room:
        place[...] = pipeline.finish(found)


def decode_part(pipeline: Pipeline, data: Buffer, inside: Request) -> np.ndarray | None:
    """Return a small part of a chunk, decoded without the rest; None if that can't be done.

    The elements from the first that is wanted to the last must be less than half of the chunk.
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
    start, found = partial(data, pipeline.spec.nbytes, first * size, (first + span) * size)
    offset, strides = first * size - start, [step * size for step in steps]
    # Not by as_strided, which does not know all dtypes.
    part: np.ndarray = np.ndarray(counts, pipeline.raw, found, offset, strides)
    return part if pipeline.axes is None else part.transpose(inverse(pipeline.axes))


def chunk_decoder(pipeline: Pipeline) -> Callable[[Buffer], np.ndarray]:
    """Return a function that decodes one chunk after another; each is valid until the next.

    A chunk's worth of memory is decoded into again and again, so that it stays in the CPU's
    cache until it is copied to its place.
    """
    raw, spec = pipeline.raw, pipeline.spec
    if raw is None or not pipeline.compressors:
        return pipeline.decode
    axes = pipeline.axes or tuple(range(len(spec.shape)))
    shape = tuple(spec.shape[i] for i in axes)
    back = inverse(axes) if pipeline.axes else None
    inflate, finish, size = pipeline.inflate, pipeline.finish, spec.nbytes
    room = None
    if size > _SMALL:
        chunk = buffers.chunk(shape, raw)
        room = chunk.reshape(-1).view(np.uint8)
        chunk = chunk.transpose(inverse(axes))

    def decode(data: Buffer) -> np.ndarray:
        found: Any = inflate(data, room)
        if found is room:
            return chunk
        if len(found) != size:
            return finish(found)  # raises what fits
        small = np.frombuffer(found, raw).reshape(shape)
        return small if back is None else small.transpose(back)

    return decode


def put_fill(out: np.ndarray, outside: Any, fill: Any) -> None:
    """Put the fill value in a place."""
    if out.dtype.hasobject:
        # As one object: a list or an array would be spread over the place.
        cell = np.empty((), object)
        cell[()] = fill
        fill = cell
    out[outside] = fill
