"""The metadata of the same array in another format, grid, codec chain or data type. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.array_to_bytes.bytes import stored_type
from zarrdask.formats.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.formats.codecs.codec import ChunkSpec, Codec
from zarrdask.formats.codecs.numcodecs.adapter import ObjectCodec
from zarrdask.formats.codecs.pipeline import check_sizes
from zarrdask.formats.codecs.translate import opened, retyped, to_numcodecs, to_v3
from zarrdask.formats.compliance import strictness
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.fill_values import NO_FILL_VALUE, only_fill
from zarrdask.formats.dtypes.registry import find_data_type, parse_data_type, portable
from zarrdask.formats.extension import Definition
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Shape
from zarrdask.formats.grids.keys import ChunkKeyEncoding, parse_keys
from zarrdask.formats.metadata.array_options import (
    ArrayOptions,
    ChunksLike,
    CodecsLike,
    KeysLike,
    Sizes,
    codec_list,
    is_disabled,
    plan_grid,
)
from zarrdask.formats.metadata.format import Format
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.lengths import with_defaults
from zarrdask.formats.metadata.model import DIMENSIONS, ArrayMetadata, GroupMetadata, ZarrFormat
from zarrdask.formats.metadata.new_metadata import (
    check_optional_fill,
    new_attributes,
    plan_array,
    stored_fill,
)

M = TypeVar("M", ArrayMetadata, GroupMetadata)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Changes to the metadata of an array: options of `zarrdask.create_array`. None: no change.

    `compressors` and `filters` are ``"keep"`` for no change, and None for none. In shards, `chunks`
    are the inner chunks; `shards` may be False, for an array without shards.
    Any of `codecs`, `compressors` and `filters` replaces the whole chain; but the filter of v2 that
    stores objects stays, unless there are other filters. New attributes replace all of the array's,
    and `zarrdask.NO_FILL_VALUE` removes the fill value, in formats that permit this.
    """

    zarr_format: ZarrFormat | None = None
    chunks: ChunksLike = None
    shards: ChunksLike | Literal[False] = None
    codecs: CodecsLike = None
    compressors: CodecsLike = "keep"
    filters: CodecsLike = "keep"
    dtype: Any = None
    fill_value: Any = None
    attributes: Mapping[str, Any] | None = None
    dimension_names: Sequence[str | None] | None = None
    chunk_key_encoding: KeysLike = None


def convert(metadata: ArrayMetadata, **changes: Any) -> ArrayMetadata:
    """Return the metadata of the same array after `Changes`, given by keyword.

    Codecs become the equivalent ones of the other format, with the same bytes where possible.
    Shards become plain chunks in v2, which has no shards. Dimension names are kept (conformance
    A-71), and an undefined fill value of v2 becomes the zero that it reads as (X-A2).
    """
    requested = Changes(**changes)
    target = (
        metadata.format if requested.zarr_format is None else find_format(requested.zarr_format)
    )
    others = replace(requested, zarr_format=None)
    # Not by ==: NumPy takes None for float64, so that dtype("float64") == None is true.
    is_same = all(getattr(others, field.name) is None for field in fields(others))
    if target is metadata.format and is_same:
        return _as_read(metadata)
    converted = _as_read(_Conversion(metadata, requested, target).converted())
    if converted.codecs != metadata.codecs or converted.chunk_shape != metadata.chunk_shape:
        check_sizes(converted.pipeline)
    return converted


def convert_group(metadata: GroupMetadata, zarr_format: ZarrFormat | None) -> GroupMetadata:
    """Return the metadata of the same group in another format."""
    if zarr_format in (None, metadata.zarr_format):
        return _as_read(metadata)
    _drop_extensions(metadata.extensions)
    return GroupMetadata(find_format(zarr_format).version, metadata.attributes)


def _as_read(metadata: M) -> M:
    """Return metadata as readers of its documents get it; what can't be written raises an error."""
    with strictness(strict=False, quiet=True):
        parsed = metadata.format.parse(metadata.render())
    return parsed if isinstance(parsed, type(metadata)) else metadata


def _drop_extensions(extensions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Return no extensions, after a check that all of them may be ignored."""
    required = [item.name for item in extensions if item.must_understand]
    if required:
        raise UnsupportedError(
            "an extension that must be understood can't be converted to another format",
            key="extensions",
            found=required,
        )
    return ()


def _is_kept(codecs: Any) -> bool:
    """Whether an argument means the codecs of the source."""
    return isinstance(codecs, str) and codecs == "keep"


def _or_auto(codecs: CodecsLike) -> CodecsLike:
    """Return codecs for a new chain, which has the default ones instead of the source's."""
    return "auto" if _is_kept(codecs) else codecs


# --------------------------------------------------------------------------------------------
# Elements


def flat_codecs(metadata: ArrayMetadata) -> tuple[Codec, ...]:
    """Return the codecs of the smallest chunks."""
    return opened(metadata.codecs, deep=True)[2]


def element_type(metadata: ArrayMetadata) -> DataType:
    """Return the data type of an array; for objects it is left to the codec in v2."""
    if not metadata.dtype.hasobject or metadata.data_type.serializer != "bytes":
        return metadata.data_type
    names = {codec.name for codec in flat_codecs(metadata) if isinstance(codec, ObjectCodec)}
    types = {"vlen-utf8": "string", "vlen-bytes": "bytes"}
    type_names = [types[name] for name in names if name in types]
    return parse_data_type(type_names[0]) if type_names else metadata.data_type


def convert_fill(value: Any, metadata: ArrayMetadata, data_type: DataType) -> Any:
    """Return a fill value of an array as a scalar of another data type."""
    dtype = data_type.dtype
    if dtype.hasobject:
        # Documents have 0, "" or null for objects of every kind.
        is_empty = isinstance(value, int | None) or (isinstance(value, str | bytes) and not value)
        kind = data_type if data_type.serializer != "bytes" else element_type(metadata)
        return kind.default if is_empty and kind.serializer != "bytes" else value
    is_same = metadata.dtype.newbyteorder("=") == dtype.newbyteorder("=")
    if is_same if dtype.names is None else metadata.dtype.names is not None:
        return np.asarray(value, metadata.dtype).astype(dtype)[()]
    try:
        return data_type.cast(value)
    except MetadataError as error:
        raise MetadataError(
            "the new data type can't represent the fill value; pass another fill_value",
            key="fill_value",
            found=value,
            expected=f"a value of {dtype}",
        ) from error


def has_equal_fill(before: ArrayMetadata, after: ArrayMetadata) -> bool:
    """Return whether missing chunks of an array read the same if they are missing in its copy."""
    try:
        fills = [convert_fill(m.fill, m, after.data_type) for m in (before, after)]
    except ZarrdaskError:
        return False
    one = np.empty(1, after.dtype)
    one[0] = fills[0]
    return only_fill(one, fills[1])


# --------------------------------------------------------------------------------------------
# Arrays


@dataclass(frozen=True)
class _Conversion:
    """The conversion of an array's metadata to a format, with changes."""

    before: ArrayMetadata
    changes: Changes
    target: Format

    @property
    def is_same(self) -> bool:
        """Whether the array has the format already."""
        return self.before.format is self.target

    def converted(self) -> ArrayMetadata:
        """Return the new metadata."""
        before, is_same = self.before, self.is_same
        grid, codecs = self.units()
        transformers = before.transformers if is_same else ()
        grid, codecs, transformers = self.target.arrange(grid, codecs, transformers)
        asked = self.changes.attributes
        attributes = new_attributes(before.attributes if asked is None else asked)
        return ArrayMetadata(
            zarr_format=self.target.version,
            grid=grid,
            data_type=self.data_type,
            keys=self.keys(),
            fill_value=self.fill,
            codecs=codecs,
            attributes=attributes,
            dimension_names=self.names(attributes),
            transformers=transformers,
            extensions=before.extensions if is_same else _drop_extensions(before.extensions),
            extra=before.extra if is_same else {},
        )

    @cached_property
    def data_type(self) -> DataType:
        """The data type in the form that the format has."""
        if self.changes.dtype is not None:
            requested = find_data_type(self.changes.dtype)
            return self.target.convert_data_type(requested, requested.dtype)
        if self.is_same:
            return self.before.data_type
        data_type = self.before.data_type
        if data_type.dtype.hasobject:
            data_type = element_type(self.before)
        return self.target.convert_data_type(
            data_type, stored_type(data_type.dtype, flat_codecs(self.before))
        )

    @cached_property
    def fill(self) -> Any:
        """The fill value as a scalar of the data type, or None."""
        if self.changes.fill_value is NO_FILL_VALUE:
            check_optional_fill(self.target)
            return None
        if self.changes.fill_value is not None:
            return stored_fill(self.data_type.cast(self.changes.fill_value), self.target)
        fill = self.before.fill_value
        if fill is None and self.target.optional_fill:
            return None
        fill = self.before.fill if fill is None else fill
        return stored_fill(convert_fill(fill, self.before, self.data_type), self.target)

    def units(self) -> tuple[ChunkGrid, tuple[Codec, ...]]:
        """Return the grid of the stored objects, and their codecs."""
        changes, target = self.changes, self.target
        # Shards in shards are replaced by their inner chunks, too, where there can't be any.
        is_flat = not target.has_shards or is_disabled(changes.shards)
        outer, sharding, chain = opened(self.before.codecs, deep=is_flat)
        regrids = changes.chunks is not None or changes.shards is not None
        regrids = regrids or (sharding is not None and not target.has_shards)
        sizes = self.sizes() if regrids else Sizes(grid=self.before.grid)
        kept = changes.codecs is None, _is_kept(changes.compressors), _is_kept(changes.filters)
        if not all(kept):
            if not regrids and sharding is not None:
                sizes = self.sizes()
            return self.planned(sizes)
        grid, inner = plan_grid(self.before.shape, self.data_type.dtype.itemsize, sizes)
        keeps_shards = sharding is not None and not regrids
        if keeps_shards:
            inner = self.before.read_grid.chunk_shape
        if sharding is not None and keeps_shards and target.has_free_shards:
            codecs = self.adapt(chain, sharding.chunk_shape)
            return grid, (*outer, replace(sharding, codecs=codecs))
        codecs = self.adapt((*outer, *chain), inner or grid.chunk_shape)
        if inner is None:
            return grid, codecs
        return grid, (self.sharded(sharding, inner, codecs),)

    def sharded(
        self, sharding: ShardingCodec | None, inner: Shape, codecs: tuple[Codec, ...]
    ) -> ShardingCodec:
        """Return the sharding codec in the form that a format has."""
        if self.target.index_codecs is not None:
            return ShardingCodec(inner, codecs, self.target.index_codecs)
        return replace(sharding or ShardingCodec(inner, codecs), chunk_shape=inner, codecs=codecs)

    def sizes(self) -> Sizes:
        """Return the options with which a user would create the changed chunks and shards."""
        chunks, shards, target = self.changes.chunks, self.changes.shards, self.target
        if not (target.has_shards or shards is None or is_disabled(shards)):
            raise UnsupportedError(f"{target.title} has no shards", key="shards", found=shards)
        is_flat = not target.has_shards or is_disabled(shards)
        outer, sharding, _ = opened(self.before.codecs, deep=is_flat)
        stored_shards: Any = self.before.grid.chunks
        stored_chunks = stored_shards
        if sharding is not None:
            axes = list(range(len(self.before.shape)))
            for codec in outer:
                axes = [axes[i] for i in codec.order]  # type: ignore[attr-defined]
            lengths = sharding.chunk_shape
            stored_chunks = tuple(lengths[axes.index(axis)] for axis in range(len(lengths)))
        names = self.changes.dimension_names or self.before.dimension_names
        if chunks is None:
            chunks = stored_chunks
        chunks = with_defaults(chunks, stored_chunks, names, "chunks")
        if shards is None and sharding is not None and target.has_shards:
            shards = stored_shards
        if shards is None or is_disabled(shards):
            return Sizes(chunks)
        if sharding is None:
            itemsize = self.data_type.dtype.itemsize
            stored_shards = plan_grid(self.before.shape, itemsize, Sizes(chunks))[0].chunks
        return Sizes(chunks, with_defaults(shards, stored_shards, names, "shards"))

    def planned(self, sizes: Sizes) -> tuple[ChunkGrid, tuple[Codec, ...]]:
        """Return the grid and codecs of a new array with the requested codecs."""
        reverse = tuple(reversed(range(len(self.before.shape))))
        first = flat_codecs(self.before)[0]
        is_fortran = isinstance(first, TransposeCodec) and first.order == reverse
        planned = plan_array(
            ArrayOptions(
                shape=self.before.shape,
                dtype=self.data_type if self.changes.dtype is None else self.changes.dtype,
                **sizes._asdict(),
                codecs=self.changes.codecs,
                compressors=_or_auto(self.changes.compressors),
                filters=self.filters(),
                order="F" if is_fortran and self.changes.codecs is None else "C",
                zarr_format=self.target.version,
            )
        )
        return planned.grid, planned.codecs

    def filters(self) -> CodecsLike:
        """Return the filters of a new chain; one that stores objects stays, as it is their type.

        In v3 that is the data type.
        """
        filters = _or_auto(self.changes.filters)
        is_open = not codec_list(filters)
        if is_open and self.changes.dtype is None and self.target.object_filter:
            for codec in flat_codecs(self.before):
                if isinstance(codec, ObjectCodec):
                    return json.loads(codec.config)  # type: ignore[no-any-return]
        return filters

    def adapt(self, codecs: tuple[Codec, ...], shape: Shape) -> tuple[Codec, ...]:
        """Return a chain of codecs in the form that a format has, for elements of the data type."""
        *before, last = codecs
        if isinstance(last, ShardingCodec) and (self.target.has_free_shards or not before):
            # Shards in shards. For formats without shards they were replaced by their inner chunks.
            inner = self.adapt(last.codecs, last.chunk_shape)
            return (*before, self.sharded(last, last.chunk_shape, inner))
        spec = ChunkSpec(shape, self.before.dtype, self.before.fill)
        from_numcodecs = self.before.format.uses_numcodecs
        if from_numcodecs and (not self.target.uses_numcodecs or self.changes.dtype is not None):
            codecs = to_v3(codecs, spec)
        if self.changes.dtype is not None:
            kind = find_data_type(self.changes.dtype)
            fill = kind.default if self.fill is None else self.fill
            spec = ChunkSpec(shape, portable(kind).dtype, fill)
            codecs = retyped(codecs, spec, kind.serializer)
        return to_numcodecs(codecs, spec) if self.target.uses_numcodecs else codecs

    def keys(self) -> ChunkKeyEncoding:
        """Return the chunk key encoding."""
        change = self.changes.chunk_key_encoding
        if isinstance(change, str | Mapping):
            return parse_keys(change)
        if change is not None:
            return change
        keys = self.before.keys
        return keys if self.is_same else self.target.convert_keys(keys)

    def names(self, attributes: Mapping[str, Any]) -> tuple[str | None, ...] | None:
        """Return the names of the dimensions."""
        names = self.before.dimension_names
        if self.changes.dimension_names is not None:
            names = tuple(self.changes.dimension_names)
        if names is None or not self.target.names_in_attributes:
            return names
        is_nameless = bool(names) and not any(name is not None for name in names)
        if is_nameless and not self.target.partial_names:
            return None
        if attributes.get(DIMENSIONS, list(names)) != list(names):
            raise MetadataError(
                "the format keeps dimension names in this attribute, but it has another value; "
                "remove the attribute",
                key=DIMENSIONS,
                found=attributes[DIMENSIONS],
                expected=list(names),
            )
        return names
