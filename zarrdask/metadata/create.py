"""From what a user asks for to the metadata of a new array: sizes, codecs, defaults. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from zarrdask.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.codecs.array_to_bytes.n5 import N5DefaultCodec
from zarrdask.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.codecs.base import ChunkSpec, Codec, Kind, complete
from zarrdask.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.codecs.coerce import find_codec, plain_config
from zarrdask.codecs.numcodecs.adapter import make
from zarrdask.codecs.registry import CODECS, parse_codec
from zarrdask.dtypes.base import DataType
from zarrdask.dtypes.fill_values import NO_FILL_VALUE
from zarrdask.dtypes.registry import find_data_type, of_dtype, portable
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.extension import Definition
from zarrdask.grids.base import Shape
from zarrdask.grids.keys import KEY_ENCODINGS, ChunkKeyEncoding, ChunkKeys, DraftKeys, parse_keys
from zarrdask.metadata import v2
from zarrdask.metadata.chunking import Sizes, parse_shape, plan_grid
from zarrdask.metadata.draft import document, entry
from zarrdask.metadata.extensions import parse_extensions, parse_transformers
from zarrdask.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.metadata.options import ArrayOptions, as_list
from zarrdask.storage.transformers import StorageTransformer
from zarrdask.storage.v3_draft import DRAFT, PROTOCOL


def plan_array(options: ArrayOptions) -> ArrayMetadata:
    """Return the metadata of the array that the options describe.

    Raises
    ------
    MetadataError
        If an option is wrong, or two don't go together.
    UnsupportedError
        If the format has no such data type or codec.
    """
    if options.order not in ("C", "F"):
        raise MetadataError(
            "this is not an order", key="order", found=options.order, expected="'C' or 'F'"
        )
    wanted = find_data_type(options.dtype)
    if wanted.dtype.subdtype is not None:
        return plan_array(_with_axes_of(wanted.dtype, options))
    shape = parse_shape(options.shape)
    sizes = Sizes(options.chunks, options.shards, options.grid)
    grid, inner = plan_grid(shape, wanted.dtype.itemsize, sizes)
    names = options.dimension_names
    chain, data_type = _chain(options.zarr_format), portable(wanted)
    if options.zarr_format == 2 or (options.zarr_format == PROTOCOL and wanted.dtype.hasobject):
        # Objects of v2 are of any type: only the codec tells.
        data_type = of_dtype(wanted.dtype)
    elif options.zarr_format != PROTOCOL:
        wanted = data_type
    chosen = tuple(chain(options, wanted, len(shape), inner))
    fill = _fill(options, data_type, chosen)
    shown = data_type.default if fill is None else fill
    codecs = complete(chosen, ChunkSpec(grid.chunk_shape, data_type.dtype, shown))
    layers = _transformers(options, len(shape))
    if options.zarr_format in (DRAFT, PROTOCOL):
        grid, codecs, layers = document.with_shards(grid, codecs, layers)
    return ArrayMetadata(
        zarr_format=options.zarr_format,
        grid=grid,
        data_type=data_type,
        keys=_keys(options, codecs),
        fill_value=fill,
        codecs=codecs,
        attributes=new_attributes(options.attributes),
        dimension_names=None if names is None else _names(names),
        transformers=layers,
        extensions=_extensions(options),
    )


def _chain(zarr_format: ZarrFormat) -> Callable[..., Iterable[Codec]]:
    """Return what makes the codecs of a format."""
    chains: dict[ZarrFormat, Callable[..., Iterable[Codec]]] = {
        2: _v2_codecs,
        3: _v3_codecs,
        DRAFT: _draft_codecs,
        PROTOCOL: _older_codecs,
    }
    if not isinstance(zarr_format, int | str) or zarr_format not in chains:
        raise MetadataError(
            "unknown format",
            key="zarr_format",
            found=zarr_format,
            expected=" or ".join(map(repr, chains)),
        )
    return chains[zarr_format]


def _with_axes_of(dtype: np.dtype[Any], options: ArrayOptions) -> ArrayOptions:
    """Return the options in which the axes of a subarray type are axes of the array (A-28)."""
    shape = parse_shape(options.shape)

    def longer(lengths: Any) -> Any:
        if lengths is None or isinstance(lengths, str):
            return lengths
        each = lengths if isinstance(lengths, Iterable) else [lengths] * len(shape)
        return (*each, *dtype.shape)

    return replace(
        options,
        shape=(*shape, *dtype.shape),
        dtype=dtype.base,
        chunks=longer(options.chunks),
        shards=longer(options.shards),
    )


def new_attributes(attributes: Any) -> dict[str, Any]:
    """Return the attributes of a new node.

    Raises
    ------
    MetadataError
        If they are no mapping.
    """
    if attributes is not None and not isinstance(attributes, Mapping):
        raise MetadataError(
            "these are not attributes", key="attributes", found=attributes, expected="a mapping"
        )
    return dict(attributes or {})


def _names(names: Any) -> tuple[Any, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise MetadataError(
            "these are not names", key="dimension_names", found=names, expected="a sequence"
        )
    return tuple(names)


def _fill(options: ArrayOptions, data_type: DataType, codecs: tuple[Codec, ...]) -> Any:
    given = options.fill_value
    if given is NO_FILL_VALUE:
        check_optional_fill(options.zarr_format)
        return None
    return _default_fill(data_type, codecs) if given is None else data_type.cast(given)


def check_optional_fill(zarr_format: ZarrFormat) -> None:
    """Check that the arrays of a format can be without a fill value.

    Raises
    ------
    UnsupportedError
        If not.
    """
    if zarr_format not in (2, PROTOCOL):
        raise UnsupportedError(
            "every array of this format has a fill value",
            key="fill_value",
            found=NO_FILL_VALUE,
            expected="a value, or zarr_format=2",
        )


def _default_fill(data_type: DataType, codecs: tuple[Codec, ...]) -> Any:
    any_object = type(data_type) is DataType and data_type.dtype.hasobject
    return v2.object_fill(codecs, "") if any_object else data_type.default


def _transformers(options: ArrayOptions, ndim: int) -> tuple[StorageTransformer, ...]:
    given = as_list(options.storage_transformers)
    if given and options.zarr_format == 2:
        raise UnsupportedError("Zarr v2 has no storage transformers", key="storage_transformers")
    draft = options.zarr_format in (DRAFT, PROTOCOL)
    parse = partial(document.parse_transformers, ndim=ndim) if draft else parse_transformers
    return tuple(item if hasattr(item, "wrap") else parse([item])[0] for item in given)


def _extensions(options: ArrayOptions) -> tuple[Definition, ...]:
    given = as_list(options.extensions)
    if options.zarr_format in (DRAFT, PROTOCOL):
        return entry.parse_extensions(given)
    if given and options.zarr_format != 3:
        raise UnsupportedError("only Zarr v3 arrays have extensions", key="extensions")
    return parse_extensions({"extensions": given}) if given else ()


def _keys(options: ArrayOptions, codecs: tuple[Codec, ...]) -> ChunkKeyEncoding:
    given = options.chunk_key_encoding
    if isinstance(codecs[0], N5DefaultCodec):
        return _n5_keys(options)
    if options.zarr_format in (DRAFT, PROTOCOL):
        return _draft_keys(options)
    if isinstance(given, Mapping):
        return parse_keys(dict(given))
    if given is not None and not isinstance(given, str):
        if not hasattr(given, "names"):
            raise MetadataError(
                "this is not a chunk key encoding", key="chunk_key_encoding", found=given
            )
        return given
    if given is not None and given not in ("default", "v2") and KEY_ENCODINGS.get(given):
        return parse_keys(given)
    name = given or ("v2" if options.zarr_format == 2 else "default")
    separator = options.separator or ("/" if name == "default" else ".")
    if name not in ("default", "v2") or separator not in ("/", "."):
        raise MetadataError(
            "this is not a chunk key encoding",
            key="chunk_key_encoding",
            found=(name, separator),
            expected="'default' or 'v2', with the separator '/' or '.'",
        )
    return ChunkKeys(name, separator)  # type: ignore[arg-type]


def _n5_keys(options: ArrayOptions) -> ChunkKeyEncoding:
    options_given = options.chunk_key_encoding or "v2", options.separator or "/"
    if options_given != ("v2", "/"):
        raise MetadataError(
            "blocks of N5 have keys of their own",
            key="chunk_key_encoding",
            found=options_given,
            expected="'v2' with the separator '/'",
        )
    return ChunkKeys("v2", "/")


def _draft_keys(options: ArrayOptions) -> ChunkKeyEncoding:
    separator = options.separator or "/"
    if options.chunk_key_encoding is not None or separator not in ("/", "."):
        raise MetadataError(
            "the draft of Zarr v3 has one chunk key encoding",
            key="chunk_key_encoding",
            found=options.chunk_key_encoding or separator,
            expected="the separator '/' or '.'",
        )
    return DraftKeys(separator)


def _v3_codecs(
    options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
) -> list[Codec]:
    if options.codecs is not None:
        if options.compressors is not None or options.filters is not None or options.order != "C":
            raise MetadataError(
                "codecs is the whole list: filters, compressors and order can't be given beside it",
                key="codecs",
            )
        codecs = [find_codec(item) for item in as_list(options.codecs)]
        if all(codec.kind is Kind.BYTES_BYTES for codec in codecs):
            codecs.insert(0, _serializer(data_type))
    else:
        given = "zstd" if options.compressors is None else options.compressors
        codecs = [find_codec(item) for item in (*as_list(options.filters), *as_list(given))]
        if options.order == "F" and ndim > 1:
            codecs.insert(0, TransposeCodec(tuple(reversed(range(ndim)))))
        if all(codec.kind is not Kind.ARRAY_BYTES for codec in codecs):
            codecs.append(_serializer(data_type))
        # numcodecs does not tell the kinds apart: a shuffle is a filter, pcodec a compressor.
        codecs.sort(key=lambda codec: list(Kind).index(codec.kind))
    return codecs if inner is None else [ShardingCodec(inner, tuple(codecs))]


def _serializer(data_type: DataType) -> Codec:
    # The byte order is filled in when it is known what elements it is given.
    name = data_type.serializer
    return BytesCodec(None) if name == BytesCodec.name else parse_codec(name)


def _v2_codecs(
    options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
) -> Iterable[Codec]:
    if inner is not None:
        raise UnsupportedError("Zarr v2 has no shards", key="shards", found=options.shards)
    if options.codecs is not None:
        raise UnsupportedError("Zarr v2 has filters and compressors, no codecs", key="codecs")
    filters = [_v2_config(item) for item in as_list(options.filters)]
    if data_type.dtype.hasobject and not filters:
        # Objects of no particular type are taken for text.
        name = data_type.serializer
        filters = [{"id": "vlen-utf8" if name == BytesCodec.name else name}]
    given = as_list("zstd" if options.compressors is None else options.compressors)
    if len(given) > 1:
        raise MetadataError("Zarr v2 has one compressor", key="compressors", found=given)
    compressor = _v2_config(given[0]) if given else None
    return v2.chain(options.order, filters, compressor, data_type.dtype, ndim)


def _draft_codecs(
    options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
) -> list[Codec]:
    if options.codecs is None:
        # The draft has two compressors of its own; the newer Zstandard is in one of them.
        given = options.compressors
        items = [BloscCodec("zstd", 3)] if given is None else as_list(given)
        compressors = [_compressor(item, data_type.dtype) for item in items]
        options = replace(options, compressors=compressors)
    codecs = _v3_codecs(options, data_type, ndim, None)
    return codecs if inner is None else [ShardingCodec(inner, tuple(codecs), document.INDEX)]


def _compressor(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the codec that a name or a configuration of numcodecs means, if v3 has it not."""
    config = plain_config(value)
    config = {"id": config} if isinstance(config, str) and CODECS.get(config) is None else config
    if not isinstance(config, Mapping) or config.get("id") not in v2.COMPRESSORS:
        return value
    *_, codec = v2.chain("C", [], dict(config), dtype, 1)
    return codec


def _older_codecs(
    options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
) -> list[Codec]:
    codecs = tuple(_v2_codecs(options, data_type, ndim, None))
    return [*codecs] if inner is None else [ShardingCodec(inner, codecs, document.INDEX)]


def _v2_config(value: Any) -> dict[str, Any]:
    value = plain_config(value)
    if isinstance(value, str):
        # The default of numcodecs is Zstandard's fastest level but one; ours is the usual one.
        value = {"id": "zstd", "level": 3} if value == "zstd" else {"id": value}
    if isinstance(value, Mapping) and "id" in value:
        return dict(json.loads(json.dumps(make(dict(value)).get_config())))
    codec = find_codec(value)
    if isinstance(codec, BloscCodec):
        codec = codec.bind(1)
    return v2.render_codec(codec)
