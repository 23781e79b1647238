"""``sharding_indexed``: many chunks in one stored value, with an index (S-15 to S-27)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np

from zarrdask.errors import (
    ChunkNotFoundError,
    CodecError,
    MetadataError,
    TruncatedError,
    UnsupportedError,
    ZarrdaskError,
    one_of,
)
from zarrdask.formats.byte_ranges import Range, Value
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.formats.codecs.byte_source import HeldValue, PartOfValue, exact
from zarrdask.formats.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from zarrdask.formats.codecs.codec import (
    Buffer,
    ChunkSpec,
    Codec,
    Configured,
    Kind,
    Serializer,
    complete,
    parse_configuration,
)
from zarrdask.formats.codecs.decode import Blocks, CachedChunk, ChunkCache, merge, put_fill, scatter
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.codecs.registry import parse_codecs
from zarrdask.formats.codecs.shard_index import MISSING, ShardIndex
from zarrdask.formats.codecs.shard_order import ShardOrder, default_order, fixed_order, ordered
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.fill_values import only_fill
from zarrdask.formats.grids.chunk_grid import Shape, parse_lengths
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.indexing.projection import AnyRequest, Projection, permute, project
from zarrdask.formats.indexing.selection import whole_region
from zarrdask.runtime import buffers
from zarrdask.runtime.turns import in_turns

#: The largest number of inner chunks in a shard: an index of 1 GiB.
_MAX_CHUNKS = 2**26


@dataclass(frozen=True)
class ShardingCodec(Configured):
    """Array -> bytes.

    Parameters
    ----------
    chunk_shape : tuple of int
        The shape of the inner chunks, whose lengths divide the lengths of the shard.
    codecs, index_codecs : tuple of Codec
        The codecs of the inner chunks, and of the index. `index_codecs` is None in files of
        2023, in which it is little-endian, with a checksum of crc32c or without (conformance S-27).
    index_location : {"end", "start"}
        The position of the index in the shard.
    order : {"c", "f", "morton"}, optional
        The order of the inner chunks in a shard that is written. Metadata doesn't contain it, and
        codecs that differ only in it are equal. By default, it is the setting
        ``zarrdask.shard-order`` at the time of the write.
    """

    chunk_shape: Shape
    codecs: tuple[Codec, ...] = (BytesCodec(),)
    index_codecs: tuple[Codec, ...] | None = (BytesCodec(), Crc32cCodec())
    index_location: Literal["end", "start"] = "end"
    order: ShardOrder | None = field(default_factory=fixed_order, compare=False, repr=False)

    name: ClassVar[str] = "sharding_indexed"
    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    @property
    def written_order(self) -> ShardOrder:
        """The order of the inner chunks in a shard that is written now."""
        return self.order or default_order()

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        defaults = {"chunk_shape": ..., "codecs": ..., "index_codecs": ..., "index_location": "end"}
        old = isinstance(configuration, Mapping) and "index_codecs" not in configuration
        if old:
            report_deviation(
                "S-27",
                "the codecs of the index are missing",
                key="sharding_indexed.index_codecs",
                expected="a list of codecs",
            )
            defaults |= {"codecs": [], "index_codecs": None}
        members = parse_configuration(configuration, cls.name, defaults)
        shape = parse_lengths(members["chunk_shape"], "sharding_indexed.chunk_shape", 1)
        return cls(
            shape,
            parse_codecs(members["codecs"], len(shape), lenient="S-27" if old else None),
            None if old else parse_codecs(members["index_codecs"], len(shape) + 1),
            one_of(members["index_location"], "sharding_indexed.index_location", ("end", "start")),
        )

    def complete(self, spec: ChunkSpec) -> Self:
        inner = replace(spec, shape=self.chunk_shape)
        return replace(self, codecs=complete(self.codecs, inner))

    def bind(self, spec: ChunkSpec) -> "Shard":
        return Shard(self, spec)


class Shard(Serializer):
    """The sharding codec, bound to shards.

    Attributes
    ----------
    grid : RegularGrid
        The grid of the inner chunks in a shard.
    chunks : Pipeline
        The pipeline of an inner chunk.
    index : Pipeline
        The pipeline of the entries of a `ShardIndex`.
    plain_index : Pipeline or None
        The pipeline of an index without a checksum, if the metadata doesn't say whether it has one.
    index_size : int
        The encoded size of the index in bytes.

    Raises
    ------
    MetadataError
        If the inner chunks don't divide the shard, or the index has no fixed size.
    UnsupportedError
        If there are more inner chunks than an index in memory can have.
    """

    def __init__(self, codec: ShardingCodec, spec: ChunkSpec) -> None:
        self.codec = codec
        self.spec = spec
        self.grid = RegularGrid(spec.shape, codec.chunk_shape)
        if any(n % m for n, m in zip(spec.shape, codec.chunk_shape, strict=True)):
            raise MetadataError(
                "the inner chunks do not divide the shard",
                key="sharding_indexed.chunk_shape",
                found=list(codec.chunk_shape),
                expected=f"divisors of {list(spec.shape)}",
            )
        if self.grid.size > _MAX_CHUNKS:
            raise UnsupportedError(
                "the index of a shard is read as a whole, which is not possible with so many inner "
                "chunks",
                key="sharding_indexed.chunk_shape",
                found=f"{self.grid.size} chunks in a shard",
                expected=f"at most {_MAX_CHUNKS}",
            )
        self.chunks = Pipeline(
            codec.codecs, ChunkSpec(codec.chunk_shape, spec.dtype, spec.fill_value)
        )
        entries = ChunkSpec((*self.grid.counts, 2), np.dtype("u8"), MISSING)
        self.index, self.plain_index = _index_pipelines(codec, entries)
        self.index_size = cast(int, self.index.encoded_size)
        # Twice the size of all chunks, as there may be gaps, and bytes of replaced chunks.
        self.most = self.index_size + 2 * self.grid.size * self.chunks.most

    # ---- reading

    def read_index(self, value: Value) -> ShardIndex | None:
        """Return the index of a shard, or None if there is no shard."""
        try:
            return self._read_index(value, self.index)
        except CodecError:
            if self.plain_index is None:
                raise
        return self._read_index(value, self.plain_index)

    @property
    def index_range(self) -> Range:
        """The start (from the end, if negative) and the length of the index, in bytes."""
        return (0 if self.codec.index_location == "start" else -self.index_size, self.index_size)

    def _read_index(self, value: Value, pipeline: Pipeline) -> ShardIndex | None:
        size = cast(int, pipeline.encoded_size)
        data = value.part(0 if self.codec.index_location == "start" else -size, size)
        if data is None:
            return None
        if len(data) != size:
            raise TruncatedError(
                "the shard is shorter than its index",
                key="shard index",
                found=f"{len(data)} bytes",
                expected=f"{size} bytes",
            )
        try:
            return ShardIndex(pipeline.decode(data).astype("u8", copy=False))
        except ZarrdaskError as error:
            raise error.within("shard index") from error.__cause__

    def locate(self, value: Value, request: AnyRequest) -> "Located | None":
        """Return the inner chunks that a request overlaps, or None if there is no shard."""
        index = self.read_index(value)
        if index is None:
            return None
        cuts = project(request, self.grid.axes)
        missing, stored, ranges = index.locate(cuts.indices)
        return Located(ranges, cuts.at(stored), cuts.at(missing))

    def read(
        self,
        value: Value,
        chunks: "Located | None",
        out: np.ndarray | Blocks,
        *,
        required: bool = False,
    ) -> None:
        """Read the inner chunks that a request overlaps, as `locate` found them, and no others.

        `out` has the shape of the request. If the chunks are `required`, a missing
        one raises an error.
        """
        if chunks is None:
            put_fill(out, ..., self.spec.fill_value)
            return
        ranges, (names, insides, outsides), missing, cache, cached = chunks
        if required and missing.indices:
            raise ChunkNotFoundError.of("inner chunk", missing.indices[0])
        for outside in missing.outsides:
            put_fill(out, outside, self.spec.fill_value)
        if cache is not None:
            scatter(self.chunks, *cached[0], cached[1], out=out)
        if shard_of(self.chunks) is None:
            whole: Iterable[Any] = exact(value.parts(ranges), ranges, names)
            if cache is not None:
                whole = map(cache.new, names, whole)
            scatter(self.chunks, names, insides, outsides, whole, out=out, kind="inner chunk ")
            return
        for (start, size), name, inside, outside in zip(ranges, *chunks.stored, strict=True):
            within = PartOfValue(value, start, size)
            try:
                located = locate(self.chunks, within, inside)
                read_shard(self.chunks, within, located, out, outside, required=required)
            except ZarrdaskError as error:
                raise error.within(f"inner chunk {name}") from error.__cause__

    def decode(self, data: Buffer) -> np.ndarray:
        out = buffers.chunk(self.spec.shape, self.spec.dtype)
        value = HeldValue(data)
        self.read(value, self.locate(value, whole_region(self.spec.shape)), out)
        return out

    # ---- writing

    def encode(self, chunk: np.ndarray) -> Buffer:
        region = whole_region(self.spec.shape)
        return self.update(None, region, chunk) or self.assemble({})

    def assemble(self, encoded: dict[Shape, Buffer]) -> bytes:
        """Return the shard of encoded inner chunks."""
        lengths = {
            index: len(encoded[index]) for index in ordered(encoded, self.codec.written_order)
        }
        chunks = [encoded[index] for index in lengths]
        head = self.encode_index(lengths)
        is_first = self.codec.index_location == "start"
        return b"".join([head, *chunks] if is_first else [*chunks, head])

    def encode_index(self, lengths: Mapping[Shape, int]) -> Buffer:
        """Return the encoded index of a shard whose chunks follow one another.

        `lengths` has the lengths of the chunks in bytes, by index, in the order of the chunks.
        """
        start = self.index_size if self.codec.index_location == "start" else 0
        index = ShardIndex.contiguous(self.grid.counts, lengths, start)
        return self.index.encode(index.entries)

    def split(self, data: Buffer) -> dict[Shape, Buffer]:
        """Return the encoded inner chunks of a shard, by index."""
        index = self.read_index(HeldValue(data))
        if index is None:
            return {}
        indices = list(np.ndindex(*self.grid.counts))
        _, stored, ranges = index.locate(indices)
        names = [indices[n] for n in stored]
        return dict(zip(names, exact(HeldValue(data).parts(ranges), ranges, names), strict=True))

    def update(
        self, data: Buffer | None, region: tuple[slice, ...], values: np.ndarray
    ) -> bytes | None:
        """Return a shard with a region replaced; chunks outside it keep their encoded bytes.

        If no inner chunk has another value than the fill value, None is returned. The region is in
        elements of the shard, with step 1.
        """
        encoded = {} if data is None else self.split(data)
        cuts = project(region, self.grid.axes)

        def encode(chunks: Iterable[tuple[Shape, Any, Any]]) -> int:
            count = 0
            for count, (index, inside, outside) in enumerate(chunks, 1):  # noqa: B007
                part = values[outside]
                if inside is not None:
                    part = merge(self.chunks, encoded.get(index), inside, part)
                if only_fill(part, self.spec.fill_value):
                    encoded.pop(index, None)
                else:
                    # A copy, as some codecs return a view of memory that is used again.
                    encoded[index] = bytes(self.chunks.encode(part))
            return count

        chunks = zip(*cuts, strict=True)
        in_turns(encode, chunks, count=len(cuts.indices), nbytes=self.chunks.spec.nbytes)
        return self.assemble(encoded) if encoded else None


def _index_pipelines(codec: ShardingCodec, entries: ChunkSpec) -> tuple[Pipeline, Pipeline | None]:
    """Return the pipeline of the index, and an alternative without a checksum or None."""
    if codec.index_codecs is None:
        plain = _of_index((BytesCodec(),), entries)
        return _of_index((BytesCodec(), Crc32cCodec()), entries), plain
    index = _of_index(codec.index_codecs, entries)
    if index.encoded_size is None:
        raise MetadataError(
            "the codecs of the index do not have a fixed encoded size",
            key="sharding_indexed.index_codecs",
            found=[c.name for c in codec.index_codecs],
            expected="codecs such as bytes and crc32c",
        )
    return index, None


def _of_index(codecs: tuple[Codec, ...], entries: ChunkSpec) -> Pipeline:
    pipeline = Pipeline(codecs, entries)
    pipeline.is_counted = False
    return pipeline


def shard_of(pipeline: Pipeline) -> Shard | None:
    """Return the sharding codec of a pipeline if its values can be read in parts, else None."""
    if pipeline.compressors or pipeline.filters or not isinstance(pipeline.serializer, Shard):
        return None
    return pipeline.serializer


class Located(NamedTuple):
    """The inner chunks of a shard that a request overlaps."""

    #: The byte ranges of those that are stored, sorted by their starts.
    ranges: list[Range]
    #: These chunks, in the same order.
    stored: Projection
    #: The other chunks.
    missing: Projection
    #: A cache of the chunks, and those that are in it, which are not among the stored ones then.
    cache: ChunkCache | None = None
    cached: tuple[Projection, list[CachedChunk]] = (Projection([], [], []), [])

    def without_cached(self, cache: ChunkCache) -> "Located":
        """Return the same chunks; chunks in a cache are not read."""
        cached_chunks = [cache.get(index) for index in self.stored.indices]
        rest = [n for n, chunk in enumerate(cached_chunks) if chunk is None]
        cached = [n for n, chunk in enumerate(cached_chunks) if chunk is not None]
        return self._replace(
            ranges=[self.ranges[n] for n in rest],
            stored=self.stored.at(rest),
            cache=cache,
            cached=(
                self.stored.at(cached),
                [chunk for chunk in cached_chunks if chunk is not None],
            ),
        )


def locate(pipeline: Pipeline, value: Value, request: AnyRequest | None) -> Located | None:
    """Return the inner chunks that a request overlaps, or None if there is no shard.

    `pipeline` has the codecs of the shard, for which `shard_of` is not None; `value` is the shard
    or only its index. The request None stands for all of the shard.
    """
    shard = cast(Shard, pipeline.serializer)
    if request is None:
        request = whole_region(shard.spec.shape)
    elif pipeline.axes is not None:
        request = permute(request, pipeline.axes)
    return shard.locate(value, request)


def read_shard(
    pipeline: Pipeline,
    value: Value,
    chunks: Located | None,
    out: np.ndarray | Blocks,
    outside: Any,
    *,
    required: bool = False,
) -> None:
    """Read part of a shard into part of a block, `out[outside]`.

    `pipeline` has the codecs of the shard, and `chunks` is what `locate` returned. If the chunks
    are `required`, a missing one raises an error.
    """
    part = out[outside]
    # The destination of points has one axis.
    is_transposed = pipeline.axes is not None and part.ndim > 1
    target = part.transpose(pipeline.axes) if is_transposed else part
    cast(Shard, pipeline.serializer).read(value, chunks, target, required=required)
    if isinstance(outside, np.ndarray) or (
        isinstance(outside, tuple) and any(isinstance(o, np.ndarray) for o in outside)
    ):
        out[outside] = part  # an advanced index makes a copy
