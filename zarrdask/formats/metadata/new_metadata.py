"""The metadata of a new array from the options of a user: sizes, codecs, defaults. Pure."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError, one_of
from zarrdask.formats.codecs.array_to_bytes.n5 import N5DefaultCodec
from zarrdask.formats.codecs.codec import ChunkSpec, Codec, complete
from zarrdask.formats.codecs.pipeline import check_sizes
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.fill_json import parse_v2, render_v2
from zarrdask.formats.dtypes.fill_values import DEFAULT_FILL_VALUE, NO_FILL_VALUE
from zarrdask.formats.dtypes.registry import find_data_type
from zarrdask.formats.grids.keys import ChunkKeyEncoding, ChunkKeys
from zarrdask.formats.indexing.selection import is_iterable
from zarrdask.formats.metadata.array_options import (
    ArrayOptions,
    Sizes,
    as_list,
    parse_shape,
    plan_grid,
)
from zarrdask.formats.metadata.format import Format
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.lengths import by_axis
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.v2_codecs import object_fill
from zarrdask.runtime.system import memory_bytes

#: Chunks of this size may exceed the memory of a machine.
_LARGE_BYTES = 2**30


def plan_array(options: ArrayOptions) -> ArrayMetadata:
    """Return the metadata of the array that the options describe."""
    one_of(options.order, "order", ("C", "F"))
    requested = find_data_type(options.dtype)
    if requested.dtype.subdtype is not None:
        return plan_array(_with_axes_of(requested.dtype, options))
    form = find_format(options.zarr_format)
    shape = parse_shape(options.shape)
    chunks, shards = (
        by_axis(lengths, len(shape), options.dimension_names, key)
        for key, lengths in (("chunks", options.chunks), ("shards", options.shards))
    )
    sizes = Sizes(chunks, shards, options.grid)
    grid, inner = plan_grid(shape, requested.dtype.itemsize, sizes)
    data_type = form.data_type(requested)
    chain = tuple(form.codecs(options, requested, len(shape), inner))
    fill = _fill(options, form, data_type, chain)
    chunk_fill = data_type.default if fill is None else fill
    codecs = complete(chain, ChunkSpec(grid.chunk_shape, data_type.dtype, chunk_fill))
    layers = _transformers(options, form, len(shape))
    grid, codecs, transformers = form.arrange(grid, codecs, layers)
    names = options.dimension_names
    if names is not None and (isinstance(names, str) or not is_iterable(names)):
        raise MetadataError(
            "names must be a sequence",
            key="dimension_names",
            found=names,
            expected="a sequence",
        )
    metadata = ArrayMetadata(
        zarr_format=options.zarr_format,
        grid=grid,
        data_type=data_type,
        keys=_keys(options, form, codecs),
        fill_value=fill,
        codecs=codecs,
        attributes=new_attributes(options.attributes),
        dimension_names=None if names is None else tuple(names),
        transformers=transformers,
        extensions=form.extensions(as_list(options.extensions)),
    )
    check_sizes(metadata.pipeline)
    _warn_of_large_chunks(metadata)
    return metadata


def _warn_of_large_chunks(metadata: ArrayMetadata) -> None:
    """Warn of chunks that are larger than the memory, as each is decoded as a whole."""
    nbytes = prod(axis.longest for axis in metadata.read_grid.axes) * metadata.dtype.itemsize
    if nbytes < _LARGE_BYTES:
        return
    memory = memory_bytes()
    if memory is not None and nbytes > memory:
        warnings.warn(
            f"a chunk of {metadata.read_grid.chunk_shape} elements has {nbytes / 2**30:.0f} GiB, "
            f"more than the memory of this machine ({memory / 2**30:.0f} GiB), and is read and "
            "written as a whole; choose smaller chunks, or chunks='auto'",
            stacklevel=2,
        )


def _with_axes_of(dtype: np.dtype[Any], options: ArrayOptions) -> ArrayOptions:
    """Return options in which the axes of a subarray type are axes of the array (A-28)."""
    shape = parse_shape(options.shape)

    def longer(key: str, lengths: Any) -> Any:
        lengths = by_axis(lengths, len(shape), options.dimension_names, key)
        if lengths is None or isinstance(lengths, str):
            return lengths
        each = lengths if is_iterable(lengths) else [lengths] * len(shape)
        return (*each, *dtype.shape)

    return replace(
        options,
        shape=(*shape, *dtype.shape),
        dtype=dtype.base,
        chunks=longer("chunks", options.chunks),
        shards=longer("shards", options.shards),
    )


def new_attributes(attributes: Any) -> dict[str, Any]:
    """Return the attributes of a new node as a dict."""
    if attributes is not None and not isinstance(attributes, Mapping):
        raise MetadataError(
            "attributes must be a mapping", key="attributes", found=attributes, expected="a mapping"
        )
    return dict(attributes or {})


def _fill(
    options: ArrayOptions, form: Format, data_type: DataType, codecs: tuple[Codec, ...]
) -> Any:
    fill = options.fill_value
    if fill is NO_FILL_VALUE:
        check_optional_fill(form)
        return None
    if fill is None and form.optional_fill:
        return None
    if fill is not None and fill is not DEFAULT_FILL_VALUE:
        return stored_fill(data_type.cast(fill), form)
    any_object = type(data_type) is DataType and data_type.dtype.hasobject
    return object_fill(codecs, "") if any_object else data_type.default


def stored_fill(fill: Any, form: Format) -> Any:
    """Return a fill value with the bits with which a document of the format is read."""
    if not form.has_one_nan or not isinstance(fill, np.inexact) or not np.isnan(fill):
        return fill
    return parse_v2(render_v2(fill, fill.dtype), fill.dtype)


def check_optional_fill(form: Format) -> None:
    """Check that an array of a format may have no fill value."""
    if not form.optional_fill:
        raise UnsupportedError(
            "every array of this format has a fill value",
            key="fill_value",
            found=NO_FILL_VALUE,
            expected="a value, or zarr_format=2",
        )


def _transformers(options: ArrayOptions, form: Format, ndim: int) -> tuple[Any, ...]:
    items = as_list(options.storage_transformers)
    if items and not form.has_transformers:
        raise UnsupportedError(
            f"{form.title} has no storage transformers", key="storage_transformers"
        )
    return tuple(
        item if hasattr(item, "wrap") else form.transformers([item], ndim)[0] for item in items
    )


def _keys(options: ArrayOptions, form: Format, codecs: tuple[Codec, ...]) -> ChunkKeyEncoding:
    if not isinstance(codecs[0], N5DefaultCodec):
        return form.keys(options)
    encoding = options.chunk_key_encoding or "v2", options.separator or "/"
    if encoding != ("v2", "/"):
        raise MetadataError(
            "arrays of N5 blocks have a fixed chunk key encoding",
            key="chunk_key_encoding",
            found=encoding,
            expected="'v2' with the separator '/'",
        )
    return ChunkKeys("v2", "/")
