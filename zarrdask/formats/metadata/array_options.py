"""The options of a new array, as users pass them, and the chunk grid that they describe. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from zarrdask import config
from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.codec import Codec, check_dimensions
from zarrdask.formats.dtypes.fill_values import DEFAULT_FILL_VALUE
from zarrdask.formats.grids.chunk_grid import (
    ChunkGrid,
    Shape,
    check_axes,
    parse_grid,
    parse_lengths,
)
from zarrdask.formats.grids.keys import ChunkKeyEncoding
from zarrdask.formats.grids.rectilinear import Lengths, make_grid
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.indexing.selection import is_integer, is_iterable
from zarrdask.formats.metadata.model import ZarrFormat

#: "auto", a size such as "1 MB", one length for all axes, one length for each axis, a list of the
#: lengths of all chunks for each axis, or any of these lengths by the number or name of the axis.
ChunksLike = (
    str
    | int
    | Sequence[int | Sequence[int] | None]
    | Mapping[Any, int | Sequence[int] | None]
    | None
)
GridLike = str | Mapping[str, Any] | ChunkGrid | None
#: One codec or several: names, configurations (dicts), numcodecs objects or instances.
CodecsLike = str | Mapping[str, Any] | Codec | Sequence[Any] | None
#: A chunk key encoding: its name, its v3 metadata, or an instance.
KeysLike = str | Mapping[str, Any] | ChunkKeyEncoding | None


@dataclass(frozen=True, kw_only=True)
class ArrayOptions:
    """The options of a new array; `zarrdask.create_array` describes them."""

    shape: Any
    dtype: Any
    chunks: ChunksLike = "auto"
    shards: ChunksLike = None
    grid: GridLike = None
    codecs: CodecsLike = None
    compressors: CodecsLike = "auto"
    filters: CodecsLike = "auto"
    order: Literal["C", "F"] = "C"
    fill_value: Any = DEFAULT_FILL_VALUE
    dimension_names: Sequence[str | None] | None = None
    attributes: Mapping[str, Any] | None = None
    chunk_key_encoding: KeysLike = None
    separator: Literal["/", "."] | None = None
    storage_transformers: Sequence[Any] = ()
    extensions: Sequence[Any] = ()
    zarr_format: ZarrFormat = 3


def as_list(value: Any) -> list[Any]:
    """Return the items of an argument that may be None, one item, or several."""
    if value is None:
        return []
    if is_iterable(value) and not isinstance(value, str | Mapping):
        return list(value)
    return [value]


def codec_list(value: Any, default: str | None = None) -> list[Any]:
    """Return the codecs of an argument: none for None, and the default for ``"auto"``.

    >>> codec_list("auto", "zstd"), codec_list(None, "zstd"), codec_list("auto")
    (['zstd'], [], [])
    """
    return as_list(default if is_auto(value) else value)


def is_auto(value: Any) -> bool:
    """Whether an argument leaves the choice to zarrdask."""
    return isinstance(value, str) and value == "auto"


# --------------------------------------------------------------------------------------------
# Chunks and shards


def parse_shape(value: Any) -> Shape:
    """Return the `shape` argument of a user as a tuple."""
    shape = _lengths(value, "shape", 0)
    check_dimensions(len(shape), "shape")
    return shape


def is_disabled(shards: Any) -> bool:
    """Whether the argument means no shards. A length of 0 does not: it raises an error."""
    return isinstance(shards, bool | np.bool_) and not shards


def has_items(lengths: Any) -> bool:
    """Whether an argument is a sequence of lengths, and not a single one."""
    return is_iterable(lengths) and not isinstance(lengths, str | bytes | Mapping)


def _lengths(value: Any, key: str, minimum: int) -> Shape:
    if not (is_integer(value) or has_items(value)):
        raise MetadataError("lengths must be integers", key=key, found=value, expected="integers")
    lengths = list(value) if has_items(value) else [value]
    return parse_lengths([int(n) if is_integer(n) else n for n in lengths], key, minimum)


class Sizes(NamedTuple):
    """The options for chunks and shards, as `zarrdask.create_array` describes them."""

    chunks: ChunksLike = "auto"
    shards: ChunksLike = None
    grid: GridLike = None


def plan_grid(shape: Shape, itemsize: int, sizes: Sizes) -> tuple[ChunkGrid, Shape | None]:
    """Return the grid of the stored objects, and the inner chunk shape if these are shards.

    Chunks or shards may be lists of lengths for each axis, as in Dask: the grid is rectilinear
    then, unless the lengths make a regular grid.
    """
    chunks, shards, grid = sizes
    if grid is not None:
        if shards is not None or not (
            chunks is None or (isinstance(chunks, str) and chunks == "auto")
        ):
            raise MetadataError(
                "a grid determines the chunks; leave out chunks and shards", key="grid"
            )
        if isinstance(grid, str | Mapping):
            return parse_grid(grid if isinstance(grid, str) else dict(grid), shape), None
        if getattr(grid, "shape", None) != shape:
            expected = f"one of shape {shape}"
            raise MetadataError(
                "invalid grid for this array", key="grid", found=grid, expected=expected
            )
        return grid, None
    if _are_lists(chunks):
        if shards is not None:
            raise MetadataError(
                "all chunks in shards must have the same shape; only shards may differ",
                key="chunks",
                found=chunks,
            )
        return make_grid(shape, _lists(chunks, shape, "chunks")), None
    if _are_lists(shards):
        chunk, _ = plan_shapes(shape, itemsize, chunks, None)
        lists = _lists(shards, shape, "shards")
        return make_grid(shape, lists, chunk), chunk
    chunk, shard = plan_shapes(shape, itemsize, chunks, shards)
    return RegularGrid(shape, shard or chunk), None if shard is None else chunk


def _are_lists(value: Any) -> bool:
    return has_items(value) and any(map(has_items, value))


def _lists(value: Any, shape: Shape, key: str) -> tuple[Lengths, ...]:
    """Return the lengths along each axis, without chunks of length 0, which Dask may have."""
    spread = _spread([1 if has_items(axis) else axis for axis in value], shape, key)
    return tuple(
        tuple(n for n in _lengths(axis, key, 0) if n) if has_items(axis) else length
        for axis, length in zip(value, spread, strict=True)
    )


def plan_shapes(
    shape: Shape, itemsize: int, chunks: ChunksLike, shards: ChunksLike
) -> tuple[Shape, Shape | None]:
    """Return the shapes of the chunks and of the shards, or None for shards.

    For ``"auto"`` chunks, the longest length of the array's shape is halved until a chunk has at
    most ``zarrdask.chunk-size`` bytes (1 MiB). For ``"auto"`` shards, the shortest length, counted
    in chunks, is doubled until a shard has ``zarrdask.shard-size`` bytes (64 MiB) or holds the
    array. A size, such as ``"1 MB"``, is used as the limit instead of the setting.

    Examples
    --------
    >>> plan_shapes((1000, 1000, 1000), 4, "auto", "auto")
    ((63, 63, 63), (252, 252, 252))
    >>> plan_shapes((1000, 1000), 8, "1 MB", None)
    ((250, 500), None)
    """
    if isinstance(chunks, bool | np.bool_):
        chunks = "auto" if chunks else -1  # as in zarr-python: False means one chunk
    if chunks is None or isinstance(chunks, str):
        chunk = _auto_chunk(shape, itemsize, _limit(chunks or "auto", "chunks", "chunk-size"))
    else:
        chunk = _spread(chunks, shape, "chunks")
    if shards is None or is_disabled(shards):
        return chunk, None
    if isinstance(shards, str):
        limit = _limit(shards, "shards", "shard-size")
        return chunk, _auto_shard(shape, itemsize, chunk, limit)
    shard = _spread(shards, shape, "shards", chunk)
    if any(s % c for s, c in zip(shard, chunk, strict=True)):
        raise MetadataError(
            "the chunks must divide the shards",
            key="shards",
            found=shard,
            expected=f"multiples of {chunk}",
        )
    return chunk, shard


def _limit(text: str, key: str, setting: str) -> int:
    """Return the maximum number of bytes of a chunk or shard; for "auto" it is the setting."""
    if text == "auto":
        return int(config.get(setting))
    try:
        if text.strip().isdigit():
            raise MetadataError("a number as text may be a length or bytes")
        return config.parse_size(text, key)
    except MetadataError as error:
        raise MetadataError(
            "a size as text needs a unit; lengths are integers",
            key=key,
            found=text,
            expected="'auto', a size such as '1 MB', or lengths such as 5 or (5, 5)",
        ) from error


def _spread(value: Any, shape: Shape, key: str, steps: Shape | None = None) -> Shape:
    """Return one length for each axis; a whole axis is rounded up to a multiple of its step."""
    lengths = tuple(value) if has_items(value) else (value,) * len(shape)
    check_axes(lengths, shape, key)
    steps = steps or (1,) * len(shape)
    # In Dask's chunks, -1 and None stand for the length of the axis.
    filled = [
        -(-(size or 1) // step) * step if n is None or (is_integer(n) and n == -1) else n
        for n, size, step in zip(lengths, shape, steps, strict=True)
    ]
    return _lengths(filled, key, 1)


def _auto_chunk(shape: Shape, itemsize: int, limit: int) -> Shape:
    chunk = [max(n, 1) for n in shape]
    while prod(chunk) * itemsize > limit and max(chunk) > 1:
        longest = chunk.index(max(chunk))
        chunk[longest] = -(-chunk[longest] // 2)
    return tuple(chunk)


def _auto_shard(shape: Shape, itemsize: int, chunk: Shape, limit: int) -> Shape:
    counts = [1] * len(chunk)
    max_counts = [max(-(-n // c), 1) for n, c in zip(shape, chunk, strict=True)]
    while prod(counts) * prod(chunk) * itemsize * 2 <= limit:
        open_axes = [axis for axis in range(len(chunk)) if counts[axis] < max_counts[axis]]
        if not open_axes:
            break
        axis = min(open_axes, key=lambda axis: counts[axis])
        counts[axis] = min(counts[axis] * 2, max_counts[axis])
    return tuple(n * c for n, c in zip(counts, chunk, strict=True))
