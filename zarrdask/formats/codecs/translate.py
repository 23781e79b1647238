"""Translate lists of codecs between v3 and numcodecs, whose codecs v2 and the draft use.

In v3, codecs of elements precede the array -> bytes codec. In numcodecs, all codecs encode bytes,
and the configuration of a filter contains the data type of the elements.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from zarrdask.errors import UnsupportedError, ZarrdaskError
from zarrdask.formats.codecs.array_to_array.bitround import BitroundCodec
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.array_to_bytes.bytes import (
    BytesCodec,
    Endian,
    endian_of,
    has_byte_order,
    stored_type,
)
from zarrdask.formats.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec, ZlibCodec
from zarrdask.formats.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrdask.formats.codecs.codec import ArrayArray, ChunkSpec, Codec, Json, complete, resolve
from zarrdask.formats.codecs.numcodecs.adapter import BufferCodec, ObjectCodec, make
from zarrdask.formats.codecs.numcodecs.table import NumcodecsFilter, NumcodecsZlibCodec
from zarrdask.formats.codecs.pipeline import split
from zarrdask.formats.codecs.registry import CODECS, parse_codec

#: The codecs of numcodecs that are array -> array codecs in v3.
_FILTERS = frozenset({"astype", "bitround", "delta", "fixedscaleoffset", "packbits", "quantize"})
#: Filters that are array -> bytes codecs in v3.
_SERIALIZERS = frozenset({"pcodec", "zfpy"})
#: Codecs of objects that exist in v3.
_OBJECTS = frozenset({"vlen-utf8", "vlen-bytes"})
#: The default levels of compression of the libraries.
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3
_PREFIX = "numcodecs."
#: The properties of the index of a shard.
_INDEX_SPEC = ChunkSpec((1, 2), np.dtype("u8"), 0)


def _no_equivalent(codec: Codec, zarr_format: str, reason: str = "") -> UnsupportedError:
    return UnsupportedError(
        f"{zarr_format} has no equivalent of this codec{reason}; choose others with codecs, or "
        "with filters and compressors",
        key="codecs",
        found=codec.name,
    )


def opened(
    codecs: tuple[Codec, ...], *, deep: bool
) -> tuple[tuple[Codec, ...], ShardingCodec | None, tuple[Codec, ...]]:
    """Return the codecs before the sharding codec of a list, that codec, and the codecs in it.

    With `deep`, shards in shards are entered, too.
    """
    outer: tuple[Codec, ...] = ()
    sharding = None
    while isinstance(codecs[-1], ShardingCodec) and (deep or sharding is None):
        if not all(isinstance(codec, TransposeCodec) for codec in codecs[:-1]):
            break
        outer += codecs[:-1]
        sharding = codecs[-1]
        codecs = sharding.codecs
    return outer, sharding, codecs


# --------------------------------------------------------------------------------------------
# To v3


def to_v3(codecs: Sequence[Codec], spec: ChunkSpec) -> tuple[Codec, ...]:
    """Return the codecs of v3 that are equivalent to codecs of v2 or the draft (C-66, C-67).

    The data type in `spec` has the stored byte order.
    """
    before, serializer, after = split(codecs)
    chain: list[Codec] = list(before)
    last: Codec = serializer
    if isinstance(serializer, BytesCodec):
        filters, rest = _leading(after)
        chain += [_of_numcodecs(_members(codec)) for codec in filters]
        view = stored_type(spec.dtype, codecs) if not filters else filters[-1].output
        last = _bytes_of(view, serializer)
        if rest and rest[0].name in _SERIALIZERS and isinstance(rest[0], BufferCodec):
            last = _serializer_to_v3(rest[0], len(spec.shape))
            rest = rest[1:]
        after = rest  # type: ignore[assignment]
    elif isinstance(serializer, ObjectCodec):
        if serializer.name not in _OBJECTS:
            raise _no_equivalent(
                serializer, "Zarr v3", ": its data types have no objects of any kind"
            )
        last = parse_codec(serializer.name)
    return (*chain, last, *map(_compressor_to_v3, after))


def _leading(codecs: Sequence[Codec]) -> tuple[list[BufferCodec], list[Codec]]:
    """Return the leading codecs that filter elements, and the other codecs."""
    filters: list[BufferCodec] = []
    for codec in codecs:
        if not isinstance(codec, BufferCodec) or codec.name not in _FILTERS:
            break
        filters.append(codec)
    return filters, list(codecs[len(filters) :])


def _members(codec: BufferCodec | ObjectCodec) -> Json:
    """Return the complete configuration of a codec of numcodecs."""
    return dict(make(json.loads(codec.config)).get_config())


def _bytes_of(stored: np.dtype[Any], serializer: BytesCodec) -> BytesCodec:
    endian = endian_of(stored)
    # In v3, all fields have the same byte order (C-69).
    if serializer.endian == "own" or endian != serializer.endian:
        return BytesCodec("little" if endian == "own" else endian)
    return serializer


def _serializer_to_v3(codec: BufferCodec, ndim: int) -> Codec:
    if codec.name == "zfpy" and ndim > 1:
        # In v2, the codec encodes a chunk as a 1-d array, which compresses differently.
        raise _no_equivalent(codec, "Zarr v3", " for more than one axis")
    return _of_numcodecs(json.loads(codec.config))


def _of_numcodecs(config: Json) -> Codec:
    """Return the codec of v3 for the configuration of a codec of numcodecs."""
    members = {name: value for name, value in config.items() if value is not None}
    return cast(Codec, CODECS.find(_PREFIX + members.pop("id")).from_configuration(members))


def _compressor_to_v3(codec: Codec) -> Codec:
    if isinstance(codec, ZlibCodec):
        return codec if codec.name.startswith(_PREFIX) else NumcodecsZlibCodec(codec.level)
    if isinstance(codec, GzipCodec) and codec.level < 0:
        return replace(codec, level=_GZIP_LEVEL)
    if type(codec) is not BufferCodec:
        return codec
    if codec.name in _FILTERS | _SERIALIZERS:
        raise _no_equivalent(codec, "Zarr v3", " where it stands")
    config = json.loads(codec.config)
    if config["id"] == "crc32c" and config.get("location", "end") == "end":
        return Crc32cCodec()
    if CODECS.get(_PREFIX + config["id"]) is None:
        raise _no_equivalent(codec, "Zarr v3")
    return _of_numcodecs(config)


# --------------------------------------------------------------------------------------------
# To v2 and the draft


def to_numcodecs(codecs: Sequence[Codec], spec: ChunkSpec) -> tuple[Codec, ...]:
    """Return the codecs of v2 and the draft that are equivalent to codecs of v3.

    Codecs of v2 are returned unchanged.
    """
    before, serializer, after = split(codecs)
    axes = tuple(range(len(spec.shape)))
    stages: list[tuple[ArrayArray, ChunkSpec]] = []
    for codec in before:
        if isinstance(codec, TransposeCodec) and not stages:
            axes = tuple(axes[i] for i in codec.order)
        else:
            stages.append((codec, spec))
        spec = resolve(codec, spec)
    chain: list[Codec] = [] if axes == tuple(range(len(axes))) else [TransposeCodec(axes)]
    chain += _elements(stages, serializer, spec)
    return (*chain, *map(_compressor_to_numcodecs, after))


def _elements(
    stages: list[tuple[ArrayArray, ChunkSpec]], serializer: Codec, last: ChunkSpec
) -> list[Codec]:
    """Return the array -> bytes codec, and the filters that follow it."""
    if isinstance(serializer, ObjectCodec) and not stages:
        return [ObjectCodec(serializer.config)]
    endian: Endian | None = "little"
    if isinstance(serializer, BytesCodec):
        if not stages:
            return [serializer]
        endian = serializer.endian or "little"
    elif serializer.name not in {_PREFIX + name for name in _SERIALIZERS}:
        raise _no_equivalent(serializer, "Zarr v2")
    specs = [spec for _, spec in stages] + [last]
    views = [stored_type(spec.dtype, [BytesCodec(endian)]) for spec in specs]
    chain: list[Codec] = [BytesCodec(endian if has_byte_order(views[0]) else None)]
    for at, (codec, _) in enumerate(stages):
        chain.append(_filter_to_numcodecs(codec, views[at], views[at + 1]))
    if not isinstance(serializer, BytesCodec):
        chain.append(_serializer_to_numcodecs(serializer, last, views[-1]))
    return chain


def _filter_to_numcodecs(codec: Codec, before: np.dtype[Any], after: np.dtype[Any]) -> BufferCodec:
    if isinstance(codec, BitroundCodec):
        if before.kind != "f" or before.isbuiltin == 2:
            raise _no_equivalent(codec, "Zarr v2", " for such elements")
        return BufferCodec.made({"id": "bitround", "keepbits": codec.keepbits}, before.str)
    if not isinstance(codec, NumcodecsFilter):
        raise _no_equivalent(codec, "Zarr v2")
    members = json.loads(codec.config)
    if codec.entry.before in codec.entry.members:
        members[codec.entry.before] = before.str
    if codec.entry.after in codec.entry.members:
        members[codec.entry.after] = after.str
    return BufferCodec.made({"id": codec.name.removeprefix(_PREFIX), **members}, before.str)


def _serializer_to_numcodecs(codec: Codec, spec: ChunkSpec, view: np.dtype[Any]) -> BufferCodec:
    if codec.name == "numcodecs.zfpy" and len(spec.shape) > 1:
        raise _no_equivalent(codec, "Zarr v2", " for more than one axis")
    members = dict(codec.to_json()["configuration"])
    return BufferCodec.made({"id": codec.name.removeprefix(_PREFIX), **members}, view.str)


def _compressor_to_numcodecs(codec: Codec) -> Codec:
    for kind in (BloscCodec, ZlibCodec, GzipCodec, ZstdCodec):
        if isinstance(codec, kind):
            return kind(**vars(codec))
    if isinstance(codec, Crc32cCodec):
        return BufferCodec.made({"id": "crc32c"})
    if isinstance(codec, BufferCodec):
        return BufferCodec(codec.config, codec.view)
    if "://" in codec.name:
        return codec  # an extension, which the draft names by its URI
    raise _no_equivalent(codec, "Zarr v2")


# --------------------------------------------------------------------------------------------
# Comparing


def marks(codecs: Sequence[Codec], spec: ChunkSpec) -> tuple[Any, ...]:
    """Return a value that is equal for lists of codecs that encode chunks in the same way."""
    try:
        plain = to_numcodecs(codecs, spec)
    except ZarrdaskError:
        plain = tuple(codecs)
    stored = stored_type(spec.dtype, plain)
    if any(isinstance(codec, BufferCodec) and codec.name in _FILTERS for codec in plain):
        # Filters encode elements in the same way in either byte order.
        stored = stored.newbyteorder("=")
    return tuple(_mark(codec, stored, spec) for codec in plain)


def _mark(codec: Codec, stored: np.dtype[Any], spec: ChunkSpec) -> Any:
    if isinstance(codec, ShardingCodec):
        inner = marks(codec.codecs, replace(spec, shape=codec.chunk_shape))
        index = codec.index_codecs and marks(codec.index_codecs, _INDEX_SPEC)
        return codec.name, codec.chunk_shape, inner, index, codec.index_location
    if isinstance(codec, BytesCodec):
        return "bytes", stored
    if isinstance(codec, BloscCodec):
        # The type size is stored in each frame.
        return "blosc", codec.cname, codec.clevel, codec.shuffle, codec.blocksize
    if isinstance(codec, GzipCodec):
        return codec.name, codec.level if codec.level >= 0 else _GZIP_LEVEL
    if isinstance(codec, ZstdCodec):
        return "zstd", codec.level or _ZSTD_LEVEL, codec.checksum
    if isinstance(codec, BufferCodec | ObjectCodec):
        members = _members(codec)
        for name in {"dtype", "decode_dtype"} & set(members) if codec.name in _FILTERS else ():
            members[name] = np.dtype(members[name]).newbyteorder("<").str
        return json.dumps(members, sort_keys=True)
    return codec


def retyped(codecs: Sequence[Codec], spec: ChunkSpec, serializer: str) -> tuple[Codec, ...]:
    """Return the codecs of v3 for elements of another data type, the one in `spec`.

    `serializer` is its array -> bytes codec, for if the old one can't encode it.
    """
    before, old, after = split(codecs)
    last: Codec = old
    if isinstance(old, ObjectCodec) or spec.dtype.hasobject:
        last = parse_codec(serializer) if serializer in _OBJECTS else BytesCodec(None)
    if isinstance(last, BytesCodec):
        last = BytesCodec(last.endian if has_byte_order(spec.dtype) else None)
    free = [replace(c, typesize=None) if isinstance(c, BloscCodec) else c for c in after]
    return complete([*before, last, *free], spec)
