"""Codecs bound once to the chunks of an array: checked at open, only applied per chunk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np

from zarrdask.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.codecs.base import (
    MOST,
    SLACK,
    ArrayArray,
    ArrayBytes,
    Buffer,
    BytesBytes,
    ChunkSpec,
    Codec,
    Kind,
    check_count,
    check_dimensions,
)
from zarrdask.errors import MetadataError

#: (data, size, start, stop) -> (where it begins, decoded bytes); see `BloscCodec.decode_part`.
Partial = Callable[[Buffer, int, int, int], tuple[int, Buffer]]
_ORDER = (Kind.ARRAY_ARRAY, Kind.ARRAY_BYTES, Kind.BYTES_BYTES)


@dataclass(frozen=True)
class Stage:
    """An array -> array codec and the chunks it takes."""

    codec: ArrayArray
    spec: ChunkSpec


class Pipeline:
    """How the chunks of one array become bytes and back.

    Parameters
    ----------
    codecs : sequence of Codec
        Array -> array ones, one array -> bytes, bytes -> bytes ones (conformance C-42).
    spec : ChunkSpec
        The chunks.

    Attributes
    ----------
    axes : tuple of int or None
        Leading transpositions, folded into one permutation: they cost a view, not a copy.
    stages : tuple of Stage
        The other array -> array codecs.
    serializer : Serializer
        The array -> bytes codec.
    raw : numpy.dtype or None
        The dtype of the decoded bytes if they are just the elements (the codec ``bytes`` and at
        most transpositions before it): then they can be decoded straight into their place.
    compressors : tuple of (BytesBytes, int)
        Each with the most bytes that it may decode to.
    partial : callable or None
        Decodes some of the bytes of a chunk: of a single compressor that can do that.

    Raises
    ------
    MetadataError
        If the order is wrong, or a chunk larger than any memory.
    ZarrdaskError
        If a codec can't take its input, or NumPy has no arrays of so many dimensions.
    """

    __slots__ = (
        "axes",
        "codecs",
        "compressors",
        "encoded_size",
        "most",
        "partial",
        "raw",
        "serializer",
        "spec",
        "stages",
        "strides",
    )

    def __init__(self, codecs: Sequence[Codec], spec: ChunkSpec) -> None:
        before, serializer, after = split(codecs)
        check_dimensions(len(spec.shape), "chunk_shape")
        if spec.nbytes >= MOST:
            raise MetadataError(
                "a chunk that no memory could hold",
                key="chunk_shape",
                found=spec.shape,
                expected=f"less than {MOST} bytes",
            )
        self.codecs = tuple(codecs)
        self.spec = spec
        axes, stages, last = _fold(before, spec)
        self.axes = axes
        self.stages = stages
        self.serializer = serializer.bind(last)
        self.raw = None if stages else self.serializer.raw
        size = self.serializer.encoded_size
        limit = min(self.serializer.most, MOST)
        compressors = []
        for codec in after:
            compressors.append((codec, limit))
            size = None if size is None else codec.encoded_size(size)
            limit = limit * getattr(codec, "growth", 2) + SLACK if size is None else size
            limit = min(limit, MOST)
        self.compressors = tuple(compressors)
        one = after[0] if len(after) == 1 and self.raw is not None else None
        self.partial: Partial | None = getattr(one, "decode_part", None)
        #: Of the chunk as it is encoded, in elements.
        self.strides = tuple(prod(last.shape[i + 1 :]) for i in range(len(last.shape)))
        #: The size of every encoded chunk, or None if it depends on the values.
        self.encoded_size = size
        #: The most bytes that an encoded chunk may have.
        self.most = limit

    def encode(self, chunk: np.ndarray) -> Buffer:
        """Return the stored form of a chunk of the whole chunk shape.

        The result may be a view of `chunk`.
        """
        if self.axes is not None:
            chunk = chunk.transpose(self.axes)
        for stage in self.stages:
            chunk = stage.codec.encode(chunk)
        data = self.serializer.encode(chunk)
        for codec, _ in self.compressors:
            data = codec.encode(data)
        return data

    def inflate(self, data: Buffer, out: Any = None) -> Buffer:
        """Undo the bytes -> bytes codecs.

        Parameters
        ----------
        out : ndarray of uint8, optional
            Of the decoded size: where the result is put if the last codec can do that; the
            result is then this very object.
        """
        if not self.compressors:
            return data
        (first, size), *later = self.compressors
        for codec, limit in reversed(later):
            data = codec.decode(data, limit)
        return first.decode(data, size, out)

    def decode(self, data: Buffer) -> np.ndarray:
        """Return the chunk that a stored value holds; it may be a read-only view."""
        return self.finish(self.inflate(data))

    def finish(self, data: Buffer) -> np.ndarray:
        """Return the chunk, from what `inflate` gave."""
        chunk = self.serializer.decode(data)
        for stage in reversed(self.stages):
            chunk = stage.codec.decode(chunk, stage.spec)
        return chunk if self.axes is None else chunk.transpose(inverse(self.axes))


def inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation that undoes one.

    >>> inverse((2, 0, 1))
    (1, 2, 0)
    """
    return tuple(axes.index(i) for i in range(len(axes)))


def split(
    codecs: Sequence[Codec],
) -> tuple[list[ArrayArray], ArrayBytes, list[BytesBytes]]:
    """Return the codecs by kind.

    Raises
    ------
    MetadataError
        If there are too many, or they don't stand in the one order that is possible (conformance
        C-9, C-42).
    """
    check_count(codecs, "codecs")
    names = [codec.name for codec in codecs]
    ranks = [_ORDER.index(codec.kind) for codec in codecs]
    if ranks != sorted(ranks) or ranks.count(1) != 1:
        raise MetadataError(
            "codecs in an order that can't work",
            key="codecs",
            found=names,
            expected="array->array ones, then exactly one array->bytes, then bytes->bytes ones",
        )
    at = ranks.index(1)
    return (
        cast(list[ArrayArray], list(codecs[:at])),
        cast(ArrayBytes, codecs[at]),
        cast(list[BytesBytes], list(codecs[at + 1 :])),
    )


def _fold(
    codecs: list[ArrayArray], spec: ChunkSpec
) -> tuple[tuple[int, ...] | None, tuple[Stage, ...], ChunkSpec]:
    """Return the leading transpositions as one, the other codecs, and what comes out."""
    axes = tuple(range(len(spec.shape)))
    stages: list[Stage] = []
    for codec in codecs:
        following = codec.resolve(spec)
        check_dimensions(len(following.shape), f"the output of the codec {codec.name}")
        if isinstance(codec, TransposeCodec) and not stages:
            axes = tuple(axes[i] for i in codec.order)
        else:
            stages.append(Stage(codec, spec))
        spec = following
    folded = None if axes == tuple(range(len(axes))) else axes
    return folded, tuple(stages), spec
