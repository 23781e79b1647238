"""The same array in another format, grid, codec chain or data type. Pure: only descriptions."""

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
from zarrdask.dtypes.registry import find_data_type, of_dtype, parse_data_type, portable
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.extension import Definition
from zarrdask.grids.base import ChunkGrid, Shape, extents
from zarrdask.grids.keys import ChunkKeyEncoding, ChunkKeys, DraftKeys, parse_keys
from zarrdask.metadata import detect
from zarrdask.metadata.chunking import ChunksLike, Sizes, plan_grid
from zarrdask.metadata.create import check_optional_fill, new_attributes, plan_array
from zarrdask.metadata.draft import document
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata, ZarrFormat
from zarrdask.metadata.options import ArrayOptions, CodecsLike, KeysLike
from zarrdask.storage.v3_draft import DRAFT, PROTOCOL

_DRAFTS: tuple[ZarrFormat, ...] = (DRAFT, PROTOCOL)
_DIMENSIONS = "_ARRAY_DIMENSIONS"
M = TypeVar("M", ArrayMetadata, GroupMetadata)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What is to be different; what is None stays as it is.

    Attributes
    ----------
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
    chunks : optional
        Lengths, as in `zarrdask.create_array`; in shards, of the chunks within.
    shards : optional
        Lengths, or False for none.
    codecs, compressors, filters : optional
        As in `zarrdask.create_array`: any of them replaces the whole chain, but for the filter of
        v2 that stores objects, unless there are other filters.
    dtype : optional
        What `zarrdask.create_array` takes.
    fill_value : optional
        `zarrdask.NO_FILL_VALUE` leaves it open, in formats that can.
    attributes : mapping, optional
    dimension_names : sequence of (str or None), optional
    chunk_key_encoding : optional
        As in `zarrdask.create_array`.
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

    @property
    def chain(self) -> bool:
        """Whether other codecs are wanted."""
        return any(c is not None for c in (self.codecs, self.compressors, self.filters))


def convert(metadata: ArrayMetadata, **changes: Any) -> ArrayMetadata:
    """Return the description of the same array in another format, grid, codec chain or type.

    Codecs become those of the other format that do the same, with the same bytes where that can
    be. Shards become plain chunks in v2, which has none. Names of dimensions go with the array
    (conformance A-71), a fill value that v2 leaves open is the zero that it reads as (X-A2).

    Parameters
    ----------
    metadata : ArrayMetadata
    **changes
        See `Changes`.

    Raises
    ------
    MetadataError
        If changes don't fit the array.
    UnsupportedError
        If the format has no such data type, codec, grid, or names.
    """
    wanted = Changes(**changes)
    form = detect.find(metadata.zarr_format if wanted.zarr_format is None else wanted.zarr_format)
    if replace(wanted, zarr_format=None) == Changes() and metadata.zarr_format == form.VERSION:
        return _as_read(metadata)
    same = metadata.zarr_format == form.VERSION
    data_type = _data_type(metadata, wanted, form.VERSION)
    fill = _fill(metadata, wanted, data_type, form.VERSION)
    grid, codecs = _units(metadata, wanted, form.VERSION, data_type, fill)
    layers = metadata.transformers if same else ()
    if form.VERSION in _DRAFTS:
        grid, codecs, layers = document.with_shards(grid, codecs, layers)
    attributes = new_attributes(_or(wanted.attributes, metadata.attributes))
    found = ArrayMetadata(
        zarr_format=form.VERSION,
        grid=grid,
        data_type=data_type,
        keys=_keys(metadata.keys, wanted.chunk_key_encoding, form.VERSION, same=same),
        fill_value=fill,
        codecs=codecs,
        attributes=attributes,
        dimension_names=_names(metadata, wanted, attributes, form.VERSION),
        transformers=layers,
        extensions=metadata.extensions if same else _must_not(metadata.extensions),
        extra=metadata.extra if same else {},
    )
    return _as_read(found)


def convert_group(metadata: GroupMetadata, zarr_format: ZarrFormat | None) -> GroupMetadata:
    """Return the description of the same group in another format.

    Raises
    ------
    UnsupportedError
        If it has an extension that must be understood.
    """
    if zarr_format in (None, metadata.zarr_format):
        return _as_read(metadata)
    detect.find(zarr_format)
    _must_not(metadata.extensions)
    return GroupMetadata(zarr_format, metadata.attributes)


def _as_read(metadata: M) -> M:
    """Return metadata as everyone will read them: what can't be written is an error here."""
    form = detect.find(metadata.zarr_format)
    with strictness(strict=False, quiet=True):
        found = form.parse(form.render(metadata))
    return found if isinstance(found, type(metadata)) else metadata


def _or(wanted: Any, found: Any) -> Any:
    return found if wanted is None else wanted


def _must_not(extensions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Return no extensions, if those that there are may be dropped."""
    needed = [item.name for item in extensions if item.must_understand]
    if needed:
        raise UnsupportedError(
            "an extension that must be understood can't go to another format",
            key="extensions",
            found=needed,
        )
    return ()


# --------------------------------------------------------------------------------------------
# Elements


def _data_type(metadata: ArrayMetadata, wanted: Changes, zarr_format: ZarrFormat) -> DataType:
    """Return the data type in the form that a format has it."""
    found = metadata.data_type
    if wanted.dtype is not None:
        found = find_data_type(wanted.dtype)
    elif zarr_format == metadata.zarr_format:
        return found
    elif found.dtype.hasobject:
        found = _of_objects(metadata)
    if zarr_format == 2:
        # The byte order of v2 is part of its data type.
        dtype = found.dtype
        return of_dtype(
            dtype if wanted.dtype is not None else stored_type(dtype, flat_codecs(metadata))
        )
    if zarr_format == 3:
        return portable(found)
    # Fields of the draft may each have their own byte order.
    return found if found.dtype.names else of_dtype(found.dtype.newbyteorder("="))


def flat_codecs(metadata: ArrayMetadata) -> tuple[Codec, ...]:
    """Return the codecs of the smallest chunks."""
    return opened(metadata.codecs, deep=True)[2]


def _of_objects(metadata: ArrayMetadata) -> DataType:
    """Return the type of the objects, as the codec tells that stores them."""
    if metadata.data_type.serializer != "bytes":
        return metadata.data_type
    names = {codec.name for codec in flat_codecs(metadata) if isinstance(codec, ObjectCodec)}
    types = {"vlen-utf8": "string", "vlen-bytes": "bytes"}
    known = [types[name] for name in names if name in types]
    return parse_data_type(known[0]) if known else metadata.data_type


def _fill(
    metadata: ArrayMetadata, wanted: Changes, data_type: DataType, zarr_format: ZarrFormat
) -> Any:
    if wanted.fill_value is NO_FILL_VALUE:
        check_optional_fill(zarr_format)
        return None
    if wanted.fill_value is not None:
        return data_type.cast(wanted.fill_value)
    found = metadata.fill_value
    if found is None and zarr_format in (2, PROTOCOL):
        return None
    return convert_fill(metadata.fill if found is None else found, metadata, data_type)


def convert_fill(value: Any, metadata: ArrayMetadata, data_type: DataType) -> Any:
    """Return a fill value of an array as one of another data type.

    Raises
    ------
    MetadataError
        If that has no such value.
    """
    dtype = data_type.dtype
    if dtype.hasobject:
        # Documents have 0, "" or null for every kind of object.
        plain = isinstance(value, int | None) or (isinstance(value, str | bytes) and not value)
        kind = data_type if data_type.serializer != "bytes" else _of_objects(metadata)
        return kind.default if plain and kind.serializer != "bytes" else value
    if metadata.dtype.newbyteorder("=") == dtype.newbyteorder("=") and dtype.names is None:
        return np.asarray(value, metadata.dtype).astype(dtype)[()]
    if metadata.dtype.names is not None and dtype.names is not None:
        return np.asarray(value, metadata.dtype).astype(dtype)[()]
    try:
        return data_type.cast(value)
    except MetadataError as error:
        raise MetadataError(
            "the other data type has no such value; give another fill_value",
            key="fill_value",
            found=value,
            expected=f"a value of {dtype}",
        ) from error


# --------------------------------------------------------------------------------------------
# Units


def _units(
    metadata: ArrayMetadata,
    wanted: Changes,
    zarr_format: ZarrFormat,
    data_type: DataType,
    fill: Any,
) -> tuple[ChunkGrid, tuple[Codec, ...]]:
    """Return the grid of the stored units, and their codecs."""
    outer, sharding, chain = opened(metadata.codecs, deep=_deep(wanted, zarr_format))
    moves = wanted.chunks is not None or wanted.shards is not None
    moves = moves or (zarr_format == 2 and sharding is not None)
    sizes = _sizes(metadata, wanted, zarr_format) if moves else Sizes(grid=metadata.grid)
    if wanted.chain:
        if not moves and sharding is not None:
            sizes = _sizes(metadata, wanted, zarr_format)
        return _planned(metadata, wanted, zarr_format, data_type, sizes)
    grid, inner = plan_grid(metadata.shape, data_type.dtype.itemsize, sizes)
    if sharding is not None and not moves:
        inner = metadata.read_grid.chunk_shape
    turn = partial(_turned, metadata, wanted, zarr_format, fill)
    if sharding is not None and not moves and zarr_format == 3:
        codecs = turn(chain, sharding.chunk_shape)
        return grid, (*outer, replace(sharding, codecs=codecs))
    codecs = turn((*outer, *chain), inner or grid.chunk_shape)
    if inner is None:
        return grid, codecs
    return grid, (_sharded(sharding, inner, codecs, zarr_format),)


def _deep(wanted: Changes, zarr_format: ZarrFormat) -> bool:
    """Whether shards in shards are opened, too."""
    return zarr_format == 2 or wanted.shards is False


def _sharded(
    found: ShardingCodec | None, inner: Shape, codecs: tuple[Codec, ...], zarr_format: ZarrFormat
) -> ShardingCodec:
    """Return the codec of shards as a format has it."""
    if zarr_format in _DRAFTS:
        return ShardingCodec(inner, codecs, document.INDEX)
    return replace(found or ShardingCodec(inner, codecs), chunk_shape=inner, codecs=codecs)


def _sizes(metadata: ArrayMetadata, wanted: Changes, zarr_format: ZarrFormat) -> Sizes:
    """Return what a user would ask for to get the chunks and shards that are wanted."""
    if zarr_format == 2 and wanted.shards not in (None, False):
        raise UnsupportedError("Zarr v2 has no shards", key="shards", found=wanted.shards)
    outer, sharding, _ = opened(metadata.codecs, deep=_deep(wanted, zarr_format))
    chunks, shards = wanted.chunks, wanted.shards
    if chunks is None and sharding is not None:
        inner = list(range(len(metadata.shape)))
        for codec in outer:
            inner = [inner[i] for i in codec.order]  # type: ignore[attr-defined]
        lengths = sharding.chunk_shape
        chunks = tuple(lengths[inner.index(axis)] for axis in range(len(lengths)))
    elif chunks is None:
        chunks = extents(metadata.grid)
    if shards is None and sharding is not None and zarr_format != 2:
        shards = extents(metadata.grid)
    return Sizes(chunks, None if shards is False else shards)


def _planned(
    metadata: ArrayMetadata,
    wanted: Changes,
    zarr_format: ZarrFormat,
    data_type: DataType,
    sizes: Sizes,
) -> tuple[ChunkGrid, tuple[Codec, ...]]:
    """Return the units of a new array with the codecs that are wanted."""
    reverse = tuple(reversed(range(len(metadata.shape))))
    first = flat_codecs(metadata)[0]
    turned = isinstance(first, TransposeCodec) and first.order == reverse
    planned = plan_array(
        ArrayOptions(
            shape=metadata.shape,
            dtype=data_type if wanted.dtype is None else wanted.dtype,
            **sizes._asdict(),
            codecs=wanted.codecs,
            compressors=wanted.compressors,
            filters=_filters(metadata, wanted, zarr_format),
            order="F" if turned and wanted.codecs is None else "C",
            zarr_format=zarr_format,
        )
    )
    return planned.grid, planned.codecs


def _filters(metadata: ArrayMetadata, wanted: Changes, zarr_format: ZarrFormat) -> CodecsLike:
    """Return the filters of a new chain: what stores objects in v2 says what these are, and stays.

    v3 has that in its data types.
    """
    if not wanted.filters and wanted.dtype is None and zarr_format in (2, PROTOCOL):
        for codec in flat_codecs(metadata):
            if isinstance(codec, ObjectCodec):
                return json.loads(codec.config)  # type: ignore[no-any-return]
    return wanted.filters


def _turned(
    metadata: ArrayMetadata,
    wanted: Changes,
    zarr_format: ZarrFormat,
    fill: Any,
    codecs: tuple[Codec, ...],
    shape: Shape,
) -> tuple[Codec, ...]:
    """Return a chain of codecs as the format has it, for elements of the data type."""
    *before, last = codecs
    if isinstance(last, ShardingCodec) and (zarr_format == 3 or not before):
        # Shards in shards, which v2 has not: they were opened.
        inner = _turned(metadata, wanted, zarr_format, fill, last.codecs, last.chunk_shape)
        return (*before, _sharded(last, last.chunk_shape, inner, zarr_format))
    spec = ChunkSpec(shape, metadata.dtype, metadata.fill)
    if metadata.zarr_format != 3 and (zarr_format == 3 or wanted.dtype is not None):
        codecs = to_v3(codecs, spec)
    if wanted.dtype is not None:
        kind = find_data_type(wanted.dtype)
        spec = ChunkSpec(shape, portable(kind).dtype, kind.default if fill is None else fill)
        codecs = retyped(codecs, spec, kind.serializer)
    return codecs if zarr_format == 3 else to_numcodecs(codecs, spec)


# --------------------------------------------------------------------------------------------
# Names


def _keys(
    found: ChunkKeyEncoding, wanted: KeysLike, zarr_format: ZarrFormat, *, same: bool
) -> ChunkKeyEncoding:
    if isinstance(wanted, str | Mapping):
        return parse_keys(wanted)
    if wanted is not None or same:
        return found if wanted is None else wanted
    if zarr_format == 3:
        return ChunkKeys()
    if zarr_format in _DRAFTS:
        return DraftKeys()
    return ChunkKeys("v2", "." if getattr(found, "separator", "/") == "." else "/")


def _names(
    metadata: ArrayMetadata, wanted: Changes, attributes: Mapping[str, Any], zarr_format: ZarrFormat
) -> tuple[str | None, ...] | None:
    names = metadata.dimension_names
    if wanted.dimension_names is not None:
        names = tuple(wanted.dimension_names)
    if zarr_format == 3 or names is None:
        return names
    if zarr_format == 2 and not any(name is not None for name in names):
        return None
    if attributes.get(_DIMENSIONS, list(names)) != list(names):
        raise MetadataError(
            "this attribute holds the names of the dimensions in this format, and has others",
            key=_DIMENSIONS,
            found=attributes[_DIMENSIONS],
            expected=list(names),
        )
    return names
