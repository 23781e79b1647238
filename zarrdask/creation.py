"""From what a user asks for to the metadata of a new array: sizes, codecs, defaults. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np

from zarrdask import config
from zarrdask.codecs.base import Codec, Kind
from zarrdask.codecs.blosc import BloscCodec
from zarrdask.codecs.bytes_ import BytesCodec, has_byte_order
from zarrdask.codecs.numcodecs_ import make
from zarrdask.codecs.registry import parse_codec
from zarrdask.codecs.sharding import ShardingCodec
from zarrdask.codecs.transpose import TransposeCodec
from zarrdask.dtypes.fill import cast, zero
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats import v2
from zarrdask.formats.base import parse_lengths
from zarrdask.grids import Shape
from zarrdask.metadata import ArrayMetadata, ChunkKeys

#: One codec or several, as a user may write them: names, dicts, numcodecs objects, instances.
CodecsLike = str | Mapping[str, Any] | Codec | Sequence[Any] | None
ChunksLike = Literal["auto"] | int | Sequence[int] | None


@dataclass(frozen=True, kw_only=True)
class ArrayOptions:
    """What a user may say of a new array; see `zarrdask.create_array`."""

    shape: Any
    dtype: Any
    chunks: ChunksLike = "auto"
    shards: ChunksLike = None
    codecs: CodecsLike = None
    compressors: CodecsLike = None
    filters: CodecsLike = None
    order: Literal["C", "F"] = "C"
    fill_value: Any = None
    dimension_names: Sequence[str | None] | None = None
    attributes: Mapping[str, Any] | None = None
    chunk_key_encoding: Literal["default", "v2"] | None = None
    separator: Literal["/", "."] | None = None
    zarr_format: int = 3


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
        raise MetadataError("not an order", key="order", found=options.order, expected="'C' or 'F'")
    try:
        dtype = np.dtype(options.dtype)
    except TypeError as error:
        raise MetadataError("not a data type", key="dtype", found=options.dtype) from error
    shape = _lengths(options.shape, "shape", 0)
    chunks, shards = plan_shapes(shape, dtype.itemsize, options.chunks, options.shards)
    names = options.dimension_names
    if options.zarr_format == 2:
        chain: Any = _v2_codecs
    elif options.zarr_format == 3:
        chain, dtype = _v3_codecs, dtype.newbyteorder("=")
    else:
        raise MetadataError(
            "unknown format", key="zarr_format", found=options.zarr_format, expected="2 or 3"
        )
    codecs = tuple(_bind(codec, dtype) for codec in chain(options, dtype, chunks, shards))
    fill = options.fill_value
    return ArrayMetadata(
        zarr_format=options.zarr_format,
        shape=shape,
        dtype=dtype,
        chunk_shape=shards or chunks,
        keys=_keys(options),
        fill_value=_default_fill(dtype, codecs) if fill is None else cast(fill, dtype),
        codecs=codecs,
        attributes=_attributes(options.attributes),
        dimension_names=None if names is None else _names(names),
    )


def _attributes(found: Any) -> dict[str, Any]:
    if found is not None and not isinstance(found, Mapping):
        raise MetadataError("not attributes", key="attributes", found=found, expected="a mapping")
    return dict(found or {})


def _names(found: Any) -> tuple[Any, ...]:
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise MetadataError("not names", key="dimension_names", found=found, expected="a sequence")
    return tuple(found)


def _default_fill(dtype: np.dtype[Any], codecs: tuple[Codec, ...]) -> Any:
    return v2.object_fill(codecs, "") if dtype.hasobject else zero(dtype)


def _lengths(found: Any, key: str, least: int) -> Shape:
    if not isinstance(found, int | np.integer | Iterable):
        raise MetadataError("not lengths", key=key, found=found, expected="integers")
    lengths = [found] if isinstance(found, int | np.integer) else list(found)
    return parse_lengths([int(n) if isinstance(n, np.integer) else n for n in lengths], key, least)


def _keys(options: ArrayOptions) -> ChunkKeys:
    name = options.chunk_key_encoding or ("v2" if options.zarr_format == 2 else "default")
    separator = options.separator or ("/" if name == "default" else ".")
    if name not in ("default", "v2") or separator not in ("/", "."):
        raise MetadataError(
            "not a chunk key encoding",
            key="chunk_key_encoding",
            found=(name, separator),
            expected="'default' or 'v2', with the separator '/' or '.'",
        )
    return ChunkKeys(name, separator)


# --------------------------------------------------------------------------------------------
# Sizes


def plan_shapes(
    shape: Shape, itemsize: int, chunks: ChunksLike, shards: ChunksLike
) -> tuple[Shape, Shape | None]:
    """Return the shapes of the chunks, and of the shards if there are to be any.

    ``"auto"`` chunks: halve the longest length of the array's shape until a chunk has at most
    ``zarrdask.chunk-size`` bytes (1 MiB). ``"auto"`` shards: double the shortest length, counted
    in chunks, until a shard has ``zarrdask.shard-size`` bytes (64 MiB) or holds the array.

    Raises
    ------
    MetadataError
        If the lengths don't fit the array, or the chunks don't divide the shards.

    Examples
    --------
    >>> plan_shapes((1000, 1000, 1000), 4, "auto", "auto")
    ((63, 63, 63), (252, 252, 252))
    """
    if chunks is None or isinstance(chunks, str):
        _must_be_auto(chunks or "auto", "chunks")
        chunk = _auto_chunk(shape, itemsize)
    else:
        chunk = _spread(chunks, shape, "chunks")
    if shards is None:
        return chunk, None
    if isinstance(shards, str):
        _must_be_auto(shards, "shards")
        return chunk, _auto_shard(shape, itemsize, chunk)
    shard = _spread(shards, shape, "shards")
    if any(s % c for s, c in zip(shard, chunk, strict=True)):
        raise MetadataError(
            "the chunks must divide the shards",
            key="shards",
            found=shard,
            expected=f"multiples of {chunk}",
        )
    return chunk, shard


def _must_be_auto(found: str, key: str) -> None:
    if found != "auto":
        raise MetadataError("not a size", key=key, found=found, expected="'auto', or lengths")


def _spread(found: Any, shape: Shape, key: str) -> Shape:
    lengths = tuple(found) if isinstance(found, Iterable) else (found,) * len(shape)
    if len(lengths) != len(shape):
        raise MetadataError(
            "there must be one length for each dimension",
            key=key,
            found=found,
            expected=f"{len(shape)}",
        )
    # Dask's way to say "all of it".
    filled = [size or 1 if n in (-1, None) else n for n, size in zip(lengths, shape, strict=True)]
    return _lengths(filled, key, 1)


def _auto_chunk(shape: Shape, itemsize: int) -> Shape:
    limit = config.get("chunk-size")
    chunk = [max(n, 1) for n in shape]
    while prod(chunk) * itemsize > limit and max(chunk) > 1:
        longest = chunk.index(max(chunk))
        chunk[longest] = -(-chunk[longest] // 2)
    return tuple(chunk)


def _auto_shard(shape: Shape, itemsize: int, chunk: Shape) -> Shape:
    limit = config.get("shard-size")
    counts = [1] * len(chunk)
    most = [max(-(-n // c), 1) for n, c in zip(shape, chunk, strict=True)]
    while prod(counts) * prod(chunk) * itemsize * 2 <= limit:
        open_axes = [axis for axis in range(len(chunk)) if counts[axis] < most[axis]]
        if not open_axes:
            break
        axis = min(open_axes, key=lambda axis: counts[axis])
        counts[axis] = min(counts[axis] * 2, most[axis])
    return tuple(n * c for n, c in zip(counts, chunk, strict=True))


# --------------------------------------------------------------------------------------------
# Codecs


def _items(found: CodecsLike) -> list[Any]:
    if found is None:
        return []
    if isinstance(found, Iterable) and not isinstance(found, str | Mapping):
        return list(found)
    return [found]


def _v3_codecs(
    options: ArrayOptions, dtype: np.dtype[Any], chunks: Shape, shards: Shape | None
) -> list[Codec]:
    if options.codecs is not None:
        if options.compressors is not None or options.filters is not None or options.order != "C":
            raise MetadataError(
                "codecs is the whole list: filters, compressors and order can't be given beside it",
                key="codecs",
            )
        codecs = [v3_codec(item) for item in _items(options.codecs)]
        if all(codec.kind is Kind.BYTES_BYTES for codec in codecs):
            codecs.insert(0, _elements(dtype))
    else:
        codecs = [v3_codec(item) for item in _items(options.filters)]
        if options.order == "F" and len(chunks) > 1:
            codecs.insert(0, TransposeCodec(tuple(reversed(range(len(chunks))))))
        codecs.append(_elements(dtype))
        given = "zstd" if options.compressors is None else options.compressors
        codecs += [v3_codec(item) for item in _items(given)]
    if shards is None:
        return codecs
    return [ShardingCodec(chunks, tuple(codecs))]


def _elements(dtype: np.dtype[Any]) -> Codec:
    return BytesCodec("little" if has_byte_order(dtype) else None)


def v3_codec(found: Any) -> Codec:
    """Return the codec that a user means: a name, a v2 or v3 dict, a numcodecs object, a codec.

    Raises
    ------
    MetadataError, UnsupportedError
        If it is none that v3 knows.
    """
    if hasattr(found, "kind") and hasattr(found, "to_json"):
        return found  # type: ignore[no-any-return]
    found = _config(found)
    if isinstance(found, Mapping) and "id" in found:
        return _from_v2(dict(found))
    if not isinstance(found, Mapping):
        return parse_codec(found)
    settings = found.get("configuration")
    if (
        found.get("name") == "blosc"
        and isinstance(settings, Mapping)
        and "typesize" not in settings
    ):
        # Users may leave it out, metadata may not: the array's data type tells.
        codec = parse_codec({**found, "configuration": {**settings, "typesize": 1}})
        return replace(codec, typesize=None)  # type: ignore[type-var]
    return parse_codec(dict(found))


def _config(found: Any) -> Any:
    """Return a numcodecs object's configuration; anything else as it is."""
    return found.get_config() if hasattr(found, "get_config") else found


def _from_v2(found: dict[str, Any]) -> Codec:
    *_, codec = v2.chain("C", [], found, np.dtype("u1"), 1)
    if isinstance(codec, BloscCodec):
        return replace(codec, typesize=None, shuffle=found.get("shuffle", 1))
    codec.to_json()  # raises where v3 has no such codec
    return parse_codec(codec.to_json())


def _v2_codecs(
    options: ArrayOptions, dtype: np.dtype[Any], chunks: Shape, shards: Shape | None
) -> Iterable[Codec]:
    if shards is not None:
        raise UnsupportedError("Zarr v2 has no shards", key="shards", found=shards)
    if options.codecs is not None:
        raise UnsupportedError("Zarr v2 has filters and compressors, no codecs", key="codecs")
    filters = [_v2_config(item) for item in _items(options.filters)]
    if dtype.hasobject and not filters:
        filters = [{"id": "vlen-utf8"}]
    given = _items("zstd" if options.compressors is None else options.compressors)
    if len(given) > 1:
        raise MetadataError("Zarr v2 has one compressor", key="compressors", found=given)
    compressor = _v2_config(given[0]) if given else None
    return v2.chain(options.order, filters, compressor, dtype, len(chunks))


def _v2_config(found: Any) -> dict[str, Any]:
    found = _config(found)
    if isinstance(found, str):
        # The default of numcodecs is Zstandard's fastest level but one; ours is the usual one.
        found = {"id": "zstd", "level": 3} if found == "zstd" else {"id": found}
    if isinstance(found, Mapping) and "id" in found:
        return dict(json.loads(json.dumps(make(dict(found)).get_config())))
    codec = v3_codec(found)
    if isinstance(codec, BloscCodec):
        codec = codec.bind(1)
    return v2.render_codec(codec)


def _bind(codec: Codec, dtype: np.dtype[Any]) -> Codec:
    """Return a codec with what it leaves to the data type filled in."""
    if isinstance(codec, BloscCodec):
        return codec.bind(dtype.itemsize)
    if isinstance(codec, BytesCodec) and codec.endian is None:
        return _elements(dtype)
    if isinstance(codec, ShardingCodec):
        return replace(codec, codecs=tuple(_bind(inner, dtype) for inner in codec.codecs))
    return codec
