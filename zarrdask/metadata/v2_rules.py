"""The rules of v2: the features of its arrays, and how new ones are made."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from zarrdask.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.codecs.base import Codec
from zarrdask.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.codecs.coerce import find_codec, plain_config
from zarrdask.codecs.numcodecs.adapter import make
from zarrdask.dtypes.base import DataType
from zarrdask.dtypes.registry import of_dtype
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.extension import Definition
from zarrdask.grids.base import Shape
from zarrdask.grids.keys import ChunkKeyEncoding, ChunkKeys
from zarrdask.metadata.options import ArrayOptions, as_list
from zarrdask.metadata.rules import FormatRules, v3_keys
from zarrdask.metadata.v2_codecs import chain, render_codec


def v2_codecs(
    options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
) -> Sequence[Codec]:
    """Return the codecs of a new array in v2; the parameters are those of `v3_codecs`."""
    if inner is not None:
        raise UnsupportedError("Zarr v2 has no shards", key="shards", found=options.shards)
    if options.codecs is not None:
        raise UnsupportedError("Zarr v2 has filters and compressors, no codecs", key="codecs")
    filters = [_config(item) for item in as_list(options.filters)]
    if data_type.dtype.hasobject and not filters:
        # Objects of no particular type are assumed to be text.
        name = data_type.serializer
        filters = [{"id": "vlen-utf8" if name == BytesCodec.name else name}]
    compressors = as_list("zstd" if options.compressors is None else options.compressors)
    if len(compressors) > 1:
        raise MetadataError("Zarr v2 has one compressor", key="compressors", found=compressors)
    compressor = _config(compressors[0]) if compressors else None
    return chain(options.order, filters, compressor, data_type.dtype, ndim)


def _config(value: Any) -> dict[str, Any]:
    """Return the configuration of numcodecs for a codec in any form."""
    value = plain_config(value)
    if isinstance(value, str):
        # The default level is 3 in all formats; that of numcodecs.Zstd is 0.
        value = {"id": "zstd", "level": 3} if value == "zstd" else {"id": value}
    if isinstance(value, Mapping) and "id" in value:
        return dict(json.loads(json.dumps(make(dict(value)).get_config())))
    codec = find_codec(value)
    if isinstance(codec, BloscCodec):
        codec = codec.bind(1)
    return render_codec(codec)


def _data_type(requested: DataType) -> DataType:
    # The byte order is part of the type, and objects are of any type: only their codec knows.
    return of_dtype(requested.dtype)


def _convert_data_type(data_type: DataType, stored: np.dtype[Any]) -> DataType:
    return of_dtype(stored)


def _convert_keys(keys: ChunkKeyEncoding) -> ChunkKeyEncoding:
    return ChunkKeys("v2", "." if getattr(keys, "separator", "/") == "." else "/")


def _no_extensions(items: list[Any]) -> tuple[Definition, ...]:
    if items:
        raise UnsupportedError("only Zarr v3 arrays have extensions", key="extensions")
    return ()


RULES = FormatRules(
    title="Zarr v2",
    has_shards=False,
    optional_fill=True,
    uses_numcodecs=True,
    object_filter=True,
    names_in_attributes=True,
    partial_names=False,
    has_transformers=False,
    data_type=_data_type,
    convert_data_type=_convert_data_type,
    codecs=v2_codecs,
    keys=partial(v3_keys, default="v2"),
    convert_keys=_convert_keys,
    extensions=_no_extensions,
)
