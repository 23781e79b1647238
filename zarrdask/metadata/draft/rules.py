"""The rules of the v3 draft and of its older dialect: features of arrays, how new ones are made."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zarrdask.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.codecs.base import Codec
from zarrdask.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.codecs.coerce import plain_config
from zarrdask.codecs.registry import CODECS
from zarrdask.dtypes.base import DataType
from zarrdask.dtypes.registry import of_dtype, portable
from zarrdask.errors import MetadataError
from zarrdask.grids.base import Shape
from zarrdask.grids.keys import ChunkKeyEncoding, ChunkKeys
from zarrdask.metadata.draft.entry import parse_extensions
from zarrdask.metadata.draft.transformers import INDEX_CODECS, parse_transformers, with_shards
from zarrdask.metadata.options import ArrayOptions, as_list
from zarrdask.metadata.rules import FormatRules, v3_codecs
from zarrdask.metadata.v2 import v2_codecs
from zarrdask.metadata.v2_codecs import COMPRESSORS, chain


def _draft_codecs(
    options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
) -> list[Codec]:
    data_type = portable(data_type)
    if options.codecs is None:
        # The draft has gzip and Blosc, and Zstandard only as a part of Blosc.
        compressors = options.compressors
        items = [BloscCodec("zstd", 3)] if compressors is None else as_list(compressors)
        options = replace(options, compressors=[_codec(item, data_type.dtype) for item in items])
    return _in_shards(v3_codecs(options, data_type, ndim, None), inner)


def _codec(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the codec for a name or configuration of numcodecs that v3 does not have."""
    config = plain_config(value)
    config = {"id": config} if isinstance(config, str) and CODECS.get(config) is None else config
    if not isinstance(config, Mapping) or config.get("id") not in COMPRESSORS:
        return value
    *_, codec = chain("C", [], dict(config), dtype, 1)
    return codec


def _older_codecs(
    options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
) -> list[Codec]:
    return _in_shards(list(v2_codecs(options, data_type, ndim, None)), inner)


def _in_shards(codecs: list[Codec], inner: Shape | None) -> list[Codec]:
    return codecs if inner is None else [ShardingCodec(inner, tuple(codecs), INDEX_CODECS)]


def _keys(options: ArrayOptions) -> ChunkKeyEncoding:
    separator = options.separator or "/"
    if options.chunk_key_encoding is not None or separator not in ("/", "."):
        raise MetadataError(
            "the draft of Zarr v3 has one chunk key encoding",
            key="chunk_key_encoding",
            found=options.chunk_key_encoding or separator,
            expected="the separator '/' or '.'",
        )
    return ChunkKeys("draft", separator)


def _convert_data_type(data_type: DataType, stored: np.dtype[Any]) -> DataType:
    # Each field of a struct may have its own byte order.
    dtype = data_type.dtype
    return data_type if dtype.names else of_dtype(dtype.newbyteorder("="))


def _older_data_type(requested: DataType) -> DataType:
    # Objects are of any type, as in v2: only their codec knows.
    return of_dtype(requested.dtype) if requested.dtype.hasobject else portable(requested)


RULES = FormatRules(
    title="the draft of Zarr v3",
    reserves_names=False,
    index_codecs=INDEX_CODECS,
    uses_numcodecs=True,
    names_in_attributes=True,
    convert_data_type=_convert_data_type,
    codecs=_draft_codecs,
    keys=_keys,
    convert_keys=lambda _: ChunkKeys("draft"),
    transformers=parse_transformers,
    extensions=parse_extensions,
    layout=with_shards,
)
OLDER_RULES = replace(
    RULES,
    title="the older dialect of the draft of Zarr v3",
    optional_fill=True,
    object_filter=True,
    data_type=_older_data_type,
    codecs=_older_codecs,
)
