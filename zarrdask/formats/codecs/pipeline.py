"""`Pipeline`: the codecs of an array, bound to its chunks; checked once, applied per chunk."""

from collections.abc import Sequence
from math import prod
from time import perf_counter
from typing import Any, Protocol, cast

import numpy as np

from zarrdask.errors import MetadataError, ZarrdaskError
from zarrdask.formats.byte_ranges import Value
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.byte_source import PlainParts, StoredParts
from zarrdask.formats.codecs.codec import (
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
    named,
)
from zarrdask.runtime import measuring
from zarrdask.runtime.thread_counts import THIS_THREAD


class PartialCodec(Protocol):
    """A codec that decodes part of the bytes of a value without the rest; see `BloscCodec`."""

    def read_parts(self, value: Value, whole: int) -> StoredParts | None:
        """Return the locations of the parts of a value, read from it if necessary.

        `whole` is the size of all decoded bytes. None is returned if they can't be decoded without
        the rest, also if the value is missing or damaged.
        """


class _Plain:
    """The elements of a chunk as they are stored if no bytes -> bytes codec changes them."""

    def read_parts(self, value: Value, whole: int) -> StoredParts | None:
        return PlainParts(0, whole)


_PLAIN = _Plain()


_ORDER = tuple(Kind)


def check_sizes(pipeline: "Pipeline") -> None:
    """Check that the codecs of a new array can encode chunks of this size: some have a limit."""
    inner = getattr(pipeline.serializer, "chunks", None)
    if isinstance(inner, Pipeline):
        check_sizes(inner)
    size = pipeline.serializer.encoded_size
    for codec, _ in pipeline.compressors:
        limit = getattr(codec, "max_bytes", None)
        if size is None:
            return
        if limit is not None and size > limit:
            raise MetadataError(
                f"the codec {codec.name} can't encode chunks of this size; make them smaller, or "
                "choose another codec, such as zstd",
                key="chunks",
                found=f"{pipeline.spec.shape}, {size} bytes",
                expected=f"at most {limit} bytes",
            )
        size = codec.encoded_size(size)


class Pipeline:
    """Encodes and decodes the chunks of one array.

    Parameters
    ----------
    codecs : sequence of Codec
        Array -> array codecs, one array -> bytes codec, bytes -> bytes codecs (conformance C-42).
    spec : ChunkSpec
        The properties of the chunks.

    Attributes
    ----------
    axes, back : tuple of int or None
        Leading transpositions, folded into one permutation, and its inverse: they cost a view, not
        a copy.
    filters : tuple of (ArrayArray, ChunkSpec)
        The other array -> array codecs, each with the properties of its input.
    array_bytes : ArrayBytes
        The array -> bytes codec.
    serializer : Serializer
        The same, bound to its input.
    raw : numpy.dtype or None
        The dtype of the decoded bytes if they are the elements and nothing else (the codec
        ``bytes``, with at most transpositions before it). Then they can be decoded directly into
        a block.
    compressors : tuple of (BytesBytes, int)
        The bytes -> bytes codecs, each with the maximum size of its decoded bytes.
    partial : PartialCodec or None
        What decodes part of the elements of a chunk: the only compressor, if it can, or if there is
        none, what returns them as they are stored.

    Raises
    ------
    MetadataError
        If the order of the codecs is wrong, or a chunk is larger than any memory.
    ZarrdaskError
        If a codec can't encode its input, or an array of NumPy can't have so many dimensions.
    """

    __slots__ = (
        "array_bytes",
        "axes",
        "back",
        "codecs",
        "compressors",
        "encoded_size",
        "filters",
        "is_counted",
        "most",
        "partial",
        "raw",
        "serializer",
        "spec",
        "strides",
    )

    def __init__(self, codecs: Sequence[Codec], spec: ChunkSpec) -> None:
        before, self.array_bytes, after = split(codecs)
        check_dimensions(len(spec.shape), "chunk_shape")
        if spec.nbytes >= MOST:
            raise MetadataError(
                "a chunk is larger than any memory; make the chunks smaller",
                key="chunk_shape",
                found=spec.shape,
                expected=f"less than {MOST} bytes",
            )
        self.codecs = tuple(codecs)
        self.spec = spec
        # Leading transpositions become one permutation.
        unchanged = axes = tuple(range(len(spec.shape)))
        filters: list[tuple[ArrayArray, ChunkSpec]] = []
        last, codec = spec, cast(Any, self.array_bytes)
        try:
            for codec in before:
                following = codec.resolve(last)
                check_dimensions(len(following.shape), f"the output of the codec {codec.name}")
                if isinstance(codec, TransposeCodec) and not filters:
                    axes = tuple(axes[i] for i in codec.order)
                else:
                    filters.append((codec, last))
                last = following
            codec = self.array_bytes
            self.serializer = codec.bind(last)
        except ZarrdaskError as error:
            raise named(error, codec) from error.__cause__
        self.axes = None if axes == unchanged else axes
        self.back = None if axes == unchanged else tuple(map(axes.index, unchanged))
        self.filters = tuple(filters)
        self.raw = None if filters else self.serializer.raw
        size = self.serializer.encoded_size
        limit = min(self.serializer.most, MOST)
        compressors = []
        for codec in after:
            compressors.append((codec, limit))
            size = None if size is None else codec.encoded_size(size)
            limit = limit * getattr(codec, "growth", 2) + SLACK if size is None else size
            limit = min(limit, MOST)
        self.compressors = tuple(compressors)
        self.partial = None if self.raw is None else _partial(after)
        #: The strides of an encoded chunk in bytes, if it consists of its elements.
        size_of_one = last.dtype.itemsize
        self.strides = tuple(
            prod(last.shape[i + 1 :]) * size_of_one for i in range(len(last.shape))
        )
        #: The size of every encoded chunk, or None if it depends on the values.
        self.encoded_size = size
        #: Whether what it encodes and decodes counts as chunks: not shards and their indexes.
        self.is_counted = not isinstance(getattr(self.serializer, "chunks", None), Pipeline)
        #: The maximum size of an encoded chunk in bytes.
        self.most = limit

    def encode(self, chunk: np.ndarray) -> Buffer:
        """Return the encoded bytes of a chunk, which may be a view of the chunk."""
        start = perf_counter() if measuring.IS_ACTIVE and self.is_counted else 0.0
        if self.axes is not None:
            chunk = chunk.transpose(self.axes)
        codec: Any = self.array_bytes
        try:
            for codec, _ in self.filters:
                chunk = codec.encode(chunk)
            codec = self.array_bytes
            data = self.serializer.encode(chunk)
            for codec, _ in self.compressors:
                data = codec.encode(data)
        except ZarrdaskError as error:
            raise named(error, codec) from error.__cause__
        if start:
            THIS_THREAD.counts.count_encoded(perf_counter() - start)
        return data

    def decode_counted(self, data: Buffer, memory: np.ndarray | None = None) -> np.ndarray:
        """Return the chunk for a stored value, as `decode` does, and count it."""
        if not (measuring.IS_ACTIVE and self.is_counted):
            return self.decode(data, memory)
        start = perf_counter()
        chunk = self.decode(data, memory)
        THIS_THREAD.counts.count_decoded(1, perf_counter() - start)
        return chunk

    def decode(self, data: Buffer, memory: np.ndarray | None = None) -> np.ndarray:
        """Return the chunk for a stored value, which may be a read-only view of the value.

        The caller counts it, if it is a chunk: `ThreadCounts.decode_batch` counts many together.
        `memory` (ndarray of uint8) has the size that the bytes -> bytes codecs decode to. If the
        codec that is undone last can decode into it, the chunk may be a view of it.
        """
        codec: Any = self.array_bytes
        try:
            if self.compressors:
                (first, size), *later = self.compressors
                for codec, limit in reversed(later):
                    data = codec.decode(data, limit)
                codec = first
                data = first.decode(data, size, memory)
            codec = self.array_bytes
            chunk = self.serializer.decode(data)
            for codec, spec in reversed(self.filters):
                chunk = codec.decode(chunk, spec)
        except ZarrdaskError as error:
            raise named(error, codec) from error.__cause__
        return chunk if self.back is None else chunk.transpose(self.back)

    def decode_apart(self, data: Buffer) -> np.ndarray:
        """Return the chunk for a stored value as an array of its own, not a view of the value."""
        memory = None
        if self.raw is not None and self.compressors:
            memory = np.empty(self.spec.nbytes, np.uint8)
        chunk = self.decode_counted(data, memory)
        is_apart = memory is not None and np.may_share_memory(chunk, memory)
        is_apart = is_apart and chunk.dtype == self.spec.dtype
        return chunk if is_apart else np.array(chunk, self.spec.dtype)


def _partial(compressors: Sequence[BytesBytes]) -> PartialCodec | None:
    """Return the decoder of parts of a value, if parts can be decoded alone."""
    if not compressors:
        return _PLAIN
    is_one = len(compressors) == 1 and hasattr(compressors[0], "read_parts")
    return cast(PartialCodec, compressors[0]) if is_one else None


def split(
    codecs: Sequence[Codec],
) -> tuple[list[ArrayArray], ArrayBytes, list[BytesBytes]]:
    """Return the codecs by kind, if their number and order are right (conformance C-9, C-42)."""
    check_count(codecs, "codecs")
    kinds = [codec.kind for codec in codecs]
    if kinds.count(Kind.ARRAY_BYTES) != 1 or kinds != sorted(kinds, key=_ORDER.index):
        raise MetadataError(
            "the codecs are in the wrong order",
            key="codecs",
            found=[codec.name for codec in codecs],
            expected="array->array codecs, then one array->bytes codec, then bytes->bytes codecs",
        )
    at = kinds.index(Kind.ARRAY_BYTES)
    return (
        cast(list[ArrayArray], list(codecs[:at])),
        cast(ArrayBytes, codecs[at]),
        cast(list[BytesBytes], list(codecs[at + 1 :])),
    )
