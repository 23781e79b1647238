"""Parts of chunks that are read, and decoded, without the rest."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import numpy as np

from zarrdask.errors import ZarrdaskError
from zarrdask.formats.byte_ranges import Buffer, Range, Value
from zarrdask.formats.codecs.byte_source import HeldValue, Located, StoredParts
from zarrdask.formats.codecs.codec import Codec, named
from zarrdask.formats.codecs.part_layout import RANGE_BYTES, PartLayout, part_layout
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.indexing.projection import Points, Request, permute

#: The size in bytes, decoded, up to which a chunk is decoded sooner than a part of it.
MIN_CHUNK_BYTES = 2**16


class SizedValue(Value, Protocol):
    """A stored value that can be read in parts, and whose size is known when one was read."""

    @property
    def size(self) -> int:
        """The size in bytes."""


class FetchedChunk:
    """A fetched part of a chunk, in place of all of its encoded bytes."""

    # No abstract base class: each chunk that is decoded is checked for being an instance.
    __slots__ = ()

    def elements(self, pipeline: Pipeline, inside: Request | None) -> np.ndarray:
        """Return the requested elements, which must not be changed; None requests all of them."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ChunkPart(FetchedChunk):
    """The encoded bytes of a part of a chunk, which is all that is requested of it.

    Attributes
    ----------
    layout : PartLayout
        Where the requested elements are.
    stored : StoredParts
        What decodes the bytes.
    located : sequence of ((int, int), bytes-like)
        The bytes, by their ranges in the stored value.
    """

    layout: PartLayout
    stored: StoredParts
    located: Located

    def elements(self, pipeline: Pipeline, inside: Request | None) -> np.ndarray:
        try:
            data = self.stored.decode(self.layout.ranges, self.located)
        except ZarrdaskError as error:
            raise named(error, cast(Codec, pipeline.partial)) from error.__cause__
        part = self.layout.elements(pipeline.raw, data)  # type: ignore[arg-type]
        is_turned = pipeline.back is not None and not isinstance(inside, Points)
        return part.transpose(pipeline.back) if is_turned else part


class PartReader(NamedTuple):
    """Reads parts of the chunks of a pipeline without the rest."""

    pipeline: Pipeline

    def find(self, inside: Request, overhead: int = RANGE_BYTES) -> PartLayout | None:
        """Return which bytes of a chunk hold requested elements; None if all should be read.

        `overhead` is as in `part_layout`.
        """
        pipeline = self.pipeline
        request = inside if pipeline.axes is None else permute(inside, pipeline.axes)
        return part_layout(request, pipeline.strides, pipeline.spec.nbytes, overhead)  # type: ignore[arg-type]

    def stored(self, value: Value) -> StoredParts | None:
        """Return the locations of the parts of a chunk, if parts are read alone."""
        codec = self.pipeline.partial
        return None if codec is None else codec.read_parts(value, self.pipeline.spec.nbytes)

    def shape(self, value: Value, overhead: int = RANGE_BYTES) -> tuple[int, ...] | None:
        """Return the shape of the least part of a chunk that is read in less time than more of it.

        `overhead` is as in `part_layout`. None is returned if the layout can't be read because the
        chunk is missing, or if it is read as a whole in any case.
        """
        stored, pipeline = self.stored(value), self.pipeline
        if stored is None:
            return None
        size, shape = max(stored.block, overhead), list(pipeline.spec.shape)
        for axis, stride in zip(pipeline.axes or range(len(shape)), pipeline.strides, strict=True):
            shape[axis] = min(-(-size // stride), shape[axis])
        return tuple(shape)

    def read(self, layout: PartLayout, value: SizedValue) -> ChunkPart | None:
        """Read a part of a chunk; return None if all has to be read, also if it is damaged.

        The bytes are valid until the next part of a value is read.
        """
        stored = self.stored(value)
        return None if stored is None else _chunk_part(stored, layout, value)


def decode_part(pipeline: Pipeline, data: Buffer, inside: Request) -> np.ndarray | None:
    """Return a small part of an encoded chunk, decoded without the rest; None if not possible."""
    if pipeline.spec.nbytes <= MIN_CHUNK_BYTES or not pipeline.compressors:
        return None
    value, reader = HeldValue(data), PartReader(pipeline)
    stored = reader.stored(value)
    if stored is None or stored.stored != value.size:
        return None
    layout = reader.find(inside)
    if layout is None or not stored.is_small(layout.ranges):
        return None
    return ChunkPart(layout, stored, [((0, value.size), data)]).elements(pipeline, inside)


def _chunk_part(stored: StoredParts, layout: PartLayout, value: SizedValue) -> ChunkPart | None:
    ranges = stored.locate(layout.ranges)
    if ranges is None:
        return None
    parts: Iterable[Buffer | None] = value.parts(ranges)
    if len(ranges) > 1:
        parts = (part if part is None else bytes(part) for part in parts)
    located = list[tuple[Range, Buffer]]()
    for each, part in zip(ranges, parts, strict=True):
        if part is None or len(part) != each[1]:
            return None
        located.append((each, part))
    return ChunkPart(layout, stored, located) if value.size == stored.stored else None
