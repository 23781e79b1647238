"""The metadata of the same array in another format, grid, codec chain or data type. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from zarrdask.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.codecs.array_to_bytes.bytes import stored_type
from zarrdask.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.codecs.base import ChunkSpec, Codec
from zarrdask.codecs.numcodecs.adapter import ObjectCodec
from zarrdask.codecs.translate import opened, retyped, to_numcodecs, to_v3
from zarrdask.compliance import strictness
from zarrdask.dtypes.base import DataType
from zarrdask.dtypes.fill_values import NO_FILL_VALUE
from zarrdask.dtypes.registry import find_data_type, parse_data_type, portable
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.extension import Definition
from zarrdask.grids.base import ChunkGrid, Shape, extents
from zarrdask.grids.keys import ChunkKeyEncoding, parse_keys
from zarrdask.metadata import detect
from zarrdask.metadata.create import check_optional_fill, new_attributes, plan_array
from zarrdask.metadata.model import DIMENSIONS, ArrayMetadata, GroupMetadata, ZarrFormat
from zarrdask.metadata.options import (
    ArrayOptions,
    ChunksLike,
    CodecsLike,
    KeysLike,
    Sizes,
    plan_grid,
)
from zarrdask.metadata.rules import FormatRules

M = TypeVar("M", ArrayMetadata, GroupMetadata)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Changes to the metadata of an array: options of `zarrdask.create_array`. None: no change.

    In shards, `chunks` are the inner chunks; `shards` may be False, for an array without shards.
    Any of `codecs`, `compressors` and `filters` replaces the whole chain; but the filter of v2 that
    stores objects stays, unless there are other filters. New attributes replace all of the array's,
    and `zarrdask.NO_FILL_VALUE` removes the fill value, in formats that permit this.
    """

    zarr_format: ZarrFormat | None = None
    chunks: ChunksLike = None
    shards: ChunksLike | Literal[False] = None
    codecs: CodecsLike = None
    compressors: CodecsLike = None
    filters: CodecsLike = None
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
    asked = Changes(**changes)
    zarr_format = metadata.zarr_format if asked.zarr_format is None else asked.zarr_format
    form, rules = detect.find(zarr_format), detect.rules(zarr_format)
    same = metadata.zarr_format == form.VERSION
    if same and replace(asked, zarr_format=None) == Changes():
        return _as_read(metadata)
    data_type = _data_type(metadata, asked, rules, same=same)
    fill = _fill(metadata, asked, rules, data_type)
    grid, codecs = _units(metadata, asked, form.VERSION, data_type, fill)
    transformers = metadata.transformers if same else ()
    grid, codecs, transformers = rules.layout(grid, codecs, transformers)
    attributes = metadata.attributes if asked.attributes is None else asked.attributes
    attributes = new_attributes(attributes)
    converted = ArrayMetadata(
        zarr_format=form.VERSION,
        grid=grid,
        data_type=data_type,
        keys=_keys(metadata.keys, asked, rules, same=same),
        fill_value=fill,
        codecs=codecs,
        attributes=attributes,
        dimension_names=_names(metadata, asked, rules, attributes),
        transformers=transformers,
        extensions=metadata.extensions if same else _drop_extensions(metadata.extensions),
        extra=metadata.extra if same else {},
    )
    return _as_read(converted)


def convert_group(metadata: GroupMetadata, zarr_format: ZarrFormat | None) -> GroupMetadata:
    """Return the metadata of the same group in another format."""
    if zarr_format in (None, metadata.zarr_format):
        return _as_read(metadata)
    detect.find(zarr_format)
    _drop_extensions(metadata.extensions)
    return GroupMetadata(zarr_format, metadata.attributes)


def _as_read(metadata: M) -> M:
    """Return metadata as readers of its documents get it; what can't be written is an error."""
    form = detect.find(metadata.zarr_format)
    with strictness(strict=False, quiet=True):
        parsed = form.parse(form.render(metadata))
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


# --------------------------------------------------------------------------------------------
# Elements


def _data_type(
    metadata: ArrayMetadata, changes: Changes, rules: FormatRules, *, same: bool
) -> DataType:
    """Return the data type in the form that a format has."""
    if changes.dtype is not None:
        requested = find_data_type(changes.dtype)
        return rules.convert_data_type(requested, requested.dtype)
    if same:
        return metadata.data_type
    data_type = metadata.data_type
    if data_type.dtype.hasobject:
        data_type = _of_objects(metadata)
    return rules.convert_data_type(data_type, stored_type(data_type.dtype, flat_codecs(metadata)))


def flat_codecs(metadata: ArrayMetadata) -> tuple[Codec, ...]:
    """Return the codecs of the smallest chunks."""
    return opened(metadata.codecs, deep=True)[2]


def _of_objects(metadata: ArrayMetadata) -> DataType:
    """Return the data type of an array of objects, which v2 leaves to the codec."""
    if metadata.data_type.serializer != "bytes":
        return metadata.data_type
    names = {codec.name for codec in flat_codecs(metadata) if isinstance(codec, ObjectCodec)}
    types = {"vlen-utf8": "string", "vlen-bytes": "bytes"}
    type_names = [types[name] for name in names if name in types]
    return parse_data_type(type_names[0]) if type_names else metadata.data_type


def _fill(
    metadata: ArrayMetadata, changes: Changes, rules: FormatRules, data_type: DataType
) -> Any:
    if changes.fill_value is NO_FILL_VALUE:
        check_optional_fill(rules)
        return None
    if changes.fill_value is not None:
        return data_type.cast(changes.fill_value)
    fill = metadata.fill_value
    if fill is None and rules.optional_fill:
        return None
    return convert_fill(metadata.fill if fill is None else fill, metadata, data_type)


def convert_fill(value: Any, metadata: ArrayMetadata, data_type: DataType) -> Any:
    """Return a fill value of an array as a scalar of another data type."""
    dtype = data_type.dtype
    if dtype.hasobject:
        # Documents have 0, "" or null for objects of every kind.
        is_empty = isinstance(value, int | None) or (isinstance(value, str | bytes) and not value)
        kind = data_type if data_type.serializer != "bytes" else _of_objects(metadata)
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


# --------------------------------------------------------------------------------------------
# Grid and codecs


def _units(
    metadata: ArrayMetadata,
    changes: Changes,
    zarr_format: ZarrFormat,
    data_type: DataType,
    fill: Any,
) -> tuple[ChunkGrid, tuple[Codec, ...]]:
    """Return the grid of the stored objects, and their codecs."""
    rules = detect.rules(zarr_format)
    # Shards in shards are replaced by their inner chunks, too, where there can't be any.
    is_flat = not rules.has_shards or changes.shards is False
    outer, sharding, chain = opened(metadata.codecs, deep=is_flat)
    regrids = changes.chunks is not None or changes.shards is not None
    regrids = regrids or (sharding is not None and not rules.has_shards)
    sizes = _sizes(metadata, changes, rules) if regrids else Sizes(grid=metadata.grid)
    if any(c is not None for c in (changes.codecs, changes.compressors, changes.filters)):
        if not regrids and sharding is not None:
            sizes = _sizes(metadata, changes, rules)
        return _planned(metadata, changes, zarr_format, data_type, sizes)
    grid, inner = plan_grid(metadata.shape, data_type.dtype.itemsize, sizes)
    keeps_shards = sharding is not None and not regrids
    if keeps_shards:
        inner = metadata.read_grid.chunk_shape
    adapt = partial(_adapt_codecs, metadata, changes, rules, fill)
    if sharding is not None and keeps_shards and rules.has_free_shards:
        codecs = adapt(chain, sharding.chunk_shape)
        return grid, (*outer, replace(sharding, codecs=codecs))
    codecs = adapt((*outer, *chain), inner or grid.chunk_shape)
    if inner is None:
        return grid, codecs
    return grid, (_sharded(sharding, inner, codecs, rules),)


def _sharded(
    sharding: ShardingCodec | None, inner: Shape, codecs: tuple[Codec, ...], rules: FormatRules
) -> ShardingCodec:
    """Return the sharding codec in the form that a format has."""
    if rules.index_codecs is not None:
        return ShardingCodec(inner, codecs, rules.index_codecs)
    return replace(sharding or ShardingCodec(inner, codecs), chunk_shape=inner, codecs=codecs)


def _sizes(metadata: ArrayMetadata, changes: Changes, rules: FormatRules) -> Sizes:
    """Return the options with which a user would create the changed chunks and shards."""
    if not rules.has_shards and changes.shards not in (None, False):
        raise UnsupportedError(f"{rules.title} has no shards", key="shards", found=changes.shards)
    chunks, shards = changes.chunks, changes.shards
    outer, sharding, _ = opened(metadata.codecs, deep=not rules.has_shards or shards is False)
    if chunks is None and sharding is not None:
        axes = list(range(len(metadata.shape)))
        for codec in outer:
            axes = [axes[i] for i in codec.order]  # type: ignore[attr-defined]
        lengths = sharding.chunk_shape
        chunks = tuple(lengths[axes.index(axis)] for axis in range(len(lengths)))
    elif chunks is None:
        chunks = extents(metadata.grid)
    if shards is None and sharding is not None and rules.has_shards:
        shards = extents(metadata.grid)
    return Sizes(chunks, None if shards is False else shards)


def _planned(
    metadata: ArrayMetadata,
    changes: Changes,
    zarr_format: ZarrFormat,
    data_type: DataType,
    sizes: Sizes,
) -> tuple[ChunkGrid, tuple[Codec, ...]]:
    """Return the grid and codecs of a new array with the requested codecs."""
    reverse = tuple(reversed(range(len(metadata.shape))))
    first = flat_codecs(metadata)[0]
    is_fortran = isinstance(first, TransposeCodec) and first.order == reverse
    planned = plan_array(
        ArrayOptions(
            shape=metadata.shape,
            dtype=data_type if changes.dtype is None else changes.dtype,
            **sizes._asdict(),
            codecs=changes.codecs,
            compressors=changes.compressors,
            filters=_filters(metadata, changes, detect.rules(zarr_format)),
            order="F" if is_fortran and changes.codecs is None else "C",
            zarr_format=zarr_format,
        )
    )
    return planned.grid, planned.codecs


def _filters(metadata: ArrayMetadata, changes: Changes, rules: FormatRules) -> CodecsLike:
    """Return the filters of a new chain. A filter that stores objects stays, as it is their type.

    In v3 that is the data type.
    """
    if not changes.filters and changes.dtype is None and rules.object_filter:
        for codec in flat_codecs(metadata):
            if isinstance(codec, ObjectCodec):
                return json.loads(codec.config)  # type: ignore[no-any-return]
    return changes.filters


def _adapt_codecs(
    metadata: ArrayMetadata,
    changes: Changes,
    rules: FormatRules,
    fill: Any,
    codecs: tuple[Codec, ...],
    shape: Shape,
) -> tuple[Codec, ...]:
    """Return a chain of codecs in the form that a format has, for elements of the data type."""
    *before, last = codecs
    if isinstance(last, ShardingCodec) and (rules.has_free_shards or not before):
        # Shards in shards. For formats without shards they were replaced by their inner chunks.
        inner = _adapt_codecs(metadata, changes, rules, fill, last.codecs, last.chunk_shape)
        return (*before, _sharded(last, last.chunk_shape, inner, rules))
    spec = ChunkSpec(shape, metadata.dtype, metadata.fill)
    from_numcodecs = detect.rules(metadata.zarr_format).uses_numcodecs
    if from_numcodecs and (not rules.uses_numcodecs or changes.dtype is not None):
        codecs = to_v3(codecs, spec)
    if changes.dtype is not None:
        kind = find_data_type(changes.dtype)
        spec = ChunkSpec(shape, portable(kind).dtype, kind.default if fill is None else fill)
        codecs = retyped(codecs, spec, kind.serializer)
    return to_numcodecs(codecs, spec) if rules.uses_numcodecs else codecs


# --------------------------------------------------------------------------------------------
# Names


def _keys(
    keys: ChunkKeyEncoding, changes: Changes, rules: FormatRules, *, same: bool
) -> ChunkKeyEncoding:
    change = changes.chunk_key_encoding
    if isinstance(change, str | Mapping):
        return parse_keys(change)
    if change is not None:
        return change
    return keys if same else rules.convert_keys(keys)


def _names(
    metadata: ArrayMetadata, changes: Changes, rules: FormatRules, attributes: Mapping[str, Any]
) -> tuple[str | None, ...] | None:
    names = metadata.dimension_names
    if changes.dimension_names is not None:
        names = tuple(changes.dimension_names)
    if names is None or not rules.names_in_attributes:
        return names
    if not rules.partial_names and not any(name is not None for name in names):
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
