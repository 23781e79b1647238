"""Decode chunks straight into their places in a block: the inner loop of every read."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from zarrdask.codecs.base import Buffer
from zarrdask.codecs.pipeline import Pipeline, inverse
from zarrdask.errors import ZarrdaskError
from zarrdask.indexing import Points, Request, numpy_index


def scatter(
    pipeline: Pipeline,
    names: Iterable[Any],
    insides: Iterable[Request | None],
    outsides: Iterable[Any],
    values: Iterable[Buffer | None],
    out: np.ndarray,
) -> None:
    """Decode each value and put what is wanted of it in its place.

    Parameters
    ----------
    pipeline : Pipeline
        Of all the chunks.
    names : iterable
        What each chunk is called in an error.
    insides, outsides : iterable
        As in `zarrdask.indexing.Cuts`.
    values : iterable of bytes-like or None
        The stored chunks; None stands for one that is absent, and reads as the fill value. Each
        is used before the next is asked for.
    out : ndarray
        The block.

    Raises
    ------
    CodecError
        If a value can't be decoded; the error begins with its name.
    """
    scratch = _Scratch(pipeline)
    straight = pipeline.axes is None and pipeline.raw == out.dtype
    name = None
    try:
        for name, inside, outside, data in zip(names, insides, outsides, values, strict=True):
            if data is None:
                put_fill(out, outside, pipeline.spec.fill_value)
            elif inside is None:
                place = out[outside]
                if straight and place.flags.c_contiguous:
                    room = place.reshape(-1).view(np.uint8)
                    found = pipeline.inflate(data, room)
                    if found is not room:
                        place[...] = pipeline.finish(found)
                else:
                    place[...] = scratch.decode(data)
            else:
                out[outside] = scratch.decode(data)[numpy_index(inside)]
    except ZarrdaskError as error:
        raise error.within(str(name)) from error.__cause__


class _Scratch:
    """A chunk's worth of memory, decoded into again and again: it stays in the CPU's cache."""

    __slots__ = ("chunk", "pipeline", "room")

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.room: np.ndarray | None = None
        self.chunk: np.ndarray | None = None

    def decode(self, data: Buffer) -> np.ndarray:
        """Return the chunk, valid until the next call."""
        pipeline = self.pipeline
        if pipeline.raw is None or not pipeline.compressors:
            return pipeline.decode(data)
        if self.room is None:
            self._allocate()
        found = pipeline.inflate(data, self.room)
        return self.chunk if found is self.room else pipeline.finish(found)  # type: ignore[return-value]

    def _allocate(self) -> None:
        pipeline, spec = self.pipeline, self.pipeline.spec
        axes = pipeline.axes or tuple(range(len(spec.shape)))
        chunk = np.empty(tuple(spec.shape[i] for i in axes), pipeline.raw)
        self.room = chunk.reshape(-1).view(np.uint8)
        self.chunk = chunk.transpose(inverse(axes))


def put_fill(out: np.ndarray, outside: Any, fill: Any) -> None:
    """Put the fill value in a place."""
    if out.dtype.hasobject and not isinstance(outside, np.ndarray):
        out[outside].fill(fill)
    else:
        out[outside] = fill


def is_pointwise(request: Request | None) -> bool:
    """Whether a request's result has one axis only, whatever the chunk's."""
    return isinstance(request, Points)
